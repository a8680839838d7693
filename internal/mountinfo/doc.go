// Package mountinfo reads the kernel's table of mounts and decides whether a volume is a file system of its own. Who has a
// file handle, forged or leaked, reaches no further than the file system that the handle is of, so nothing else may be on it.
//
// It gets text and gives values: it opens nothing, and imports no other package of the project.
package mountinfo
