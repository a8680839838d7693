// Package ceph holds the stories that need a real Ceph: that of hack/lab/ceph, in whatever cluster KUBECONFIG names, with Howdah
// installed beside it. `make test-ceph` makes a lab of both and runs them.
//
// Those of this package are about what Howdah relies on: that the Ceph is whole, what the accounts may do, and that a client of
// one share gets nothing of another by guessing file handles; and about Howdah on it: a FileServer with storage.ceph.external, also while
// the Ceph fails (label failures; `make test-ceph-failures`).
package ceph
