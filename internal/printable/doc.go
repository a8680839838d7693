// Package printable decides how text of unknown origin is shown where a terminal, a log viewer or a person reads it: names of
// directories are any bytes that NFS clients give, and must neither steer a terminal nor look like something else. It imports the
// standard library only.
package printable
