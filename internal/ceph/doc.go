// Package ceph has what Howdah sends to a Ceph cluster, as values: names of subvolumes, users and RADOS namespaces, commands to
// monitors and managers and their answers, and the object in which ganesha keeps its grace period. internal/ceph/client sends
// them through the program in internal/ceph/helper. This package must not import either.
package ceph
