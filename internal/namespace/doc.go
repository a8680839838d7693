// Package namespace is the shell of a namespace server: it feeds the tree from the API, listens
// for NFS clients and for probes, elects the leader, and stops all of it in order. What a
// client gets is decided in operations, what becomes of directories in directories.
package namespace
