// Package mover copies directories from the volumes of one data server to those of another (docs/design/2026-11-25-moves-on-volumes.md).
// Each data server does what its DataServer's spec.moves says, and reports it. The target copies with rsync through a connection to the
// source, on which both have shown their certificates. The source makes ganesha refuse the directory's inodes for the end of the copy. What is
// on the volumes says after a crash how far a move was. It must not decide whether a directory moves: the operator does.
package mover
