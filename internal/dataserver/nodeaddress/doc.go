// Package nodeaddress finds the address of this node in networks that a FileServer names (spec.network.hostNetwork.addressesIn): it reads
// the addresses of the network interfaces (netlink.go), and chooses (choose.go). It must not import an API or a client.
package nodeaddress
