// Package apply is the only writer of child objects. It decides whether an
// object may be written (it must not belong to somebody else) and whether it
// needs to be (a steady state makes no API write), and then applies it
// server-side as the field manager of its controller. Objects that are no longer
// desired go with Prune. It also has the one way to write a status and a
// finalizer of an object of ours, and to end a pass. It decides nothing about what is desired, and
// must not import a controller or controllers/desired.
package apply
