// Package bundle makes the archive of kubectl howdah support-bundle: objects, events and logs without secrets. It
// decides what is removed, and does not read a cluster. It refuses Secrets and ConfigMaps.
package bundle
