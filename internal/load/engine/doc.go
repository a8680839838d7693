// Package engine runs the load of package load on real directories: it opens files around the client's cache, keeps the ledger, and ends in
// time even if operations wait for a server.
package engine
