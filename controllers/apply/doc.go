// Package apply writes the child objects of controllers. It decides whether an object may be written (it must not belong
// to another owner) and whether it needs to be (a steady state causes no writes), and then applies it server-side as the
// field manager of its controller. Prune deletes objects that are no longer desired. Execute writes the changes of
// Howdah's own kinds that a decision has planned. The package also has the one way to write the status and the finalizers
// of Howdah's own objects, and to end a pass. It does not decide what is desired, and must not import a controller or
// controllers/desired.
package apply
