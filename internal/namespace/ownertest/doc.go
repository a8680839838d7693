// Package ownertest is a data server for tests: directories in memory behind the real NFS
// protocol layer, on the loopback interface. It is imported by tests only.
package ownertest
