// Package tree is the directory tree that a namespace server answers from: the
// shares of one FileServer, the directories that exist in the namespace only, and
// the junctions that refer clients to the data server that owns a directory.
//
// It is built from API objects one event at a time (an event touches one node) and
// decides what exists, what it looks like and who may do what. Handles, file ids and cookies are
// hashes of the ShareDirectories' identities, change attributes of their content, never
// counters or clocks, so that any replica gives the same answers, also after a restart.
//
// It is pure: it must not import a client, a context, a logger or the wire types.
package tree
