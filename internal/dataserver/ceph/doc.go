// Package ceph is a data server's back end for a Ceph file system. Each share is a directory there, with its own Ceph
// user, and ganesha's FSAL_CEPH exports it. Recovery records and Export_Ids are in the data server's own RADOS
// namespace. The package makes no directories and no users: the FileServer's steward or an administrator does. It needs
// only the rights of the shares' users and of the recovery user.
package ceph
