// Package mountinfo reads the kernel's table of mounts and decides whether a volume is a file system of its own. A client
// with a forged or leaked file handle can reach everything on that handle's file system, so nothing else may be on it.
//
// It turns text into values: it opens nothing, and imports no other package of the project.
package mountinfo
