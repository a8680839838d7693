// Package owners reaches the data servers of a FileServer: a session with each for changes
// of directories, and a probe of each that owns some. It decides when a data server
// counts as unreachable, and nothing about directories.
package owners
