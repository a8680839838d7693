// Package ceph has the tests that need a real Ceph: the one of hack/lab/ceph, in the cluster that KUBECONFIG names, with
// Howdah installed beside it. `make test-ceph` makes a lab with both and runs them.
//
// They test what Howdah relies on (Ceph is healthy, the accounts have the right permissions, a client of one share cannot
// reach another share by guessing file handles), and Howdah on Ceph: a FileServer with storage.ceph.external, also while
// parts of Ceph fail (label failures; `make test-ceph-failures`).
package ceph
