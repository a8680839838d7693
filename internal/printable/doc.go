// Package printable escapes text of unknown origin for terminals, log viewers and people: names of directories are any bytes that NFS
// clients send, and must neither control a terminal nor look like something else. It imports the standard library only.
package printable
