// Package bundle makes the archive of kubectl howdah support-bundle: objects, events and logs, without what must not leave a cluster. It
// decides what is taken out, and reads nothing itself. Secrets and ConfigMaps are not among what it takes at all.
package bundle
