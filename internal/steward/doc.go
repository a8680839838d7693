// Package steward is the program that has a FileServer's credential for Ceph: it makes a subvolume and a user for each share
// (ShareStorage), a user for each data server's recovery records, writes what data servers need into the one Secret that they mount, and
// shuts out what is left of a dead data server. It has no clients, speaks no NFS, and touches nothing in Ceph whose name was not made from
// its FileServer's UID. What to say to Ceph is internal/ceph's to decide; it must not import internal/dataserver.
package steward
