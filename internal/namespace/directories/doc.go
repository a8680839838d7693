// Package directories makes, removes and renames the directories of shares: their ShareDirectories in the API and,
// through the owners' NFS service, the directories themselves. The ShareDirectory is the lock between namespace
// servers, and the journal of changes. The Leader finishes or undoes what a crash left unfinished.
//
// It must not import the operations of the namespace server's own NFS service but for
// the interface that it implements.
package directories
