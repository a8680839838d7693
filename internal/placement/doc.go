// Package placement decides which data server and volume own a new directory
// of a share. It is pure: figures in, owners out, and the same figures give the
// same owners in whatever order they come. It knows no API objects, no
// clients, no clock, and imports the standard library only.
//
// The rule (docs/design/2026-11-21-placement.md argues for it): a directory that
// has an owner stays. A new one goes to the server with the fewest directories of
// its share, then the fewest of all shares, then the least used space, then the
// first name; and on that server to the volume that the same rule picks. Servers
// that are not ready are never chosen; volumes with little room (Tight, Full) only while all are.
package placement
