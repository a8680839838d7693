// Command scale measures what the distribution is worth: how much one client
// reads through one mount from one data server and from three, beside the limit of the
// servers' capped links, beside direct mounts of the data servers, and with
// one connection beside sixteen. Everything it prints comes from one run.
//
// It needs a cluster with Howdah installed whose server nodes have capped
// links (hack/bench-scale.sh makes one):
//
//	scale --server-nodes node1,node2,node3 --client-node node4 --cap-mbit 160
package main
