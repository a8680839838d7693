// Package operations answers the NFSv4.1 and 4.2 operations on files and directories
// (RFC 8881 section 18) from the tree: it decides what each operation gives to
// which caller. Directories that clients make, remove and rename go to a Mutator.
//
// It must not import a Kubernetes client: what it knows of the cluster is in the tree.
package operations
