// Package rook is what storage.ceph.rook needs of Rook: which of its objects are read, what follows from them, and the two that are
// made. Rook's types are not imported: the fields that are used are written down here (ceph.rook.io/v1, as of Rook 1.17 and 1.18).
//
// It decides by values alone: no client, no context. Whatever it asks for is Howdah's own; CephNFS, and groups, pools and Secrets of
// others, are never touched.
package rook
