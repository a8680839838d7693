// Command scale measures what the distribution is worth: how much one client
// reads through one mount from one data server and from three, beside the limit of the
// servers' capped links, beside direct mounts of the data servers, and with
// one connection beside sixteen. Everything it prints comes from one run.
//
// It needs a cluster with Howdah installed whose server nodes have capped
// links (hack/bench-scale.sh makes one):
//
//	scale --server-nodes node1,node2,node3 --client-node node4 --cap-mbit 160
//
// It runs on the machine that the nodes run on. Its exit code is 0 if the goals are met, 4 if one is not, 3
// if the run is INVALID (the links were slow before anything was measured, or this machine had no CPU to
// spare), and 1 if it could not measure.
package main
