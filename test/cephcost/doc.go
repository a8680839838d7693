// Command cephcost measures what serving a Ceph file system through Howdah costs: one client at work through a FileServer of one data server
// and through one of three, beside ceph-fuse, which speaks to Ceph itself, and beside one plain ganesha with the settings of Rook's CephNFS.
// Everything it prints comes from one run, in which all of them take turns.
//
// It needs a cluster with Howdah and the Ceph of hack/lab/ceph (hack/bench-ceph.sh makes one):
//
//	cephcost --server-nodes node1,node2,node3 --client-node node4
//
// It runs on the machine that the nodes run on. Its exit code is 0 if the limits are kept, 4 if one is not, 3 if the run is INVALID (this
// machine had other things to do), and 1 if it could not measure.
package main
