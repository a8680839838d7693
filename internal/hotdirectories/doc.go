// Package hotdirectories decides which data servers serve a hot directory (spec.hotDirectories of a FileShare), and which of them a client
// is sent to. It is pure. It imports internal/brace, internal/subnet and the
// standard library only.
package hotdirectories
