// Package directorymoves decides which directories of a FileServer get another data server, and carries it out. View is what a pass over the FileServer
// has observed, Plan what follows from it, without side effects, and Writer writes a plan.
//
// A directory moves when its ShareDirectory names another data server. In Ceph this is one write, which fails if the object was changed since it was
// read (plan.go). It is made only while no namespace server works on the directory: its state is Ready, or it was declared and is not made yet. Both the
// old and the new owner export the share, so referrals to either are valid.
//
// On volumes a copy comes first (copies.go, docs/design/2026-11-25-moves-on-volumes.md). How far it is stands in the ShareDirectory, spec.move, which is
// written against the version that was read, so that nothing is decided twice. What the two data servers are to do follows from it, and stands in their
// DataServers (tasks.go).
package directorymoves
