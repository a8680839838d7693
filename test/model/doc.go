// Package model judges what make bench-model measured: N data servers, each behind a link of the same speed, read and written through one
// mount of one client. It is pure; test/kernels measures, with native data servers in network namespaces and a client in User-mode Linux.
package model
