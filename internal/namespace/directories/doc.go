// Package directories makes, removes and renames the directories of shares: their
// ShareDirectories in the API and, through the owners' NFS service, the directories themselves.
// The ShareDirectory is the lock between namespace servers and the journal of what was begun; what
// is left unfinished by a crash is finished or undone by the Leader.
//
// It must not import the operations of the namespace server's own NFS service but for
// the interface that it implements.
package directories
