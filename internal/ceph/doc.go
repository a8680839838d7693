// Package ceph decides what Howdah says to a Ceph cluster: names of subvolumes, users and RADOS namespaces, commands to monitors and
// managers and what their answers mean, and the object in which ganesha keeps its grace period. It gives values; who sends them is
// internal/ceph/client, by way of the program in internal/ceph/helper. It must not import either.
package ceph
