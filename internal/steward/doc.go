// Package steward is the program that has a FileServer's provisioning account in Ceph. It makes a subvolume and a user for
// each share (ShareStorage) and a user for each data server's recovery records, writes what data servers need into the
// Secret that they mount, and blocklists the Ceph clients of a dead data server. It serves no NFS, and it touches only
// objects in Ceph whose names derive from its FileServer's UID. internal/ceph has the commands; this package must not import
// internal/dataserver.
package steward
