// Package ceph is the back end of a Ceph file system on the side of the instance manager: each share is a directory there, with a user of
// its own, exported by ganesha's FSAL_CEPH; recovery records and Export_Ids are in a RADOS namespace of the data server's own. It makes
// no directories and no users, and needs no rights but those of the shares' and of the recovery user: somebody else makes them, or the
// FileServer's steward.
package ceph
