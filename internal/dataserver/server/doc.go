// Package server is what a data server's process answers beside ganesha: probes, metrics, sizes and traffic of shares, and the TLS port for
// namespace servers. It also has the prober, which looks at ganesha through NFS as clients do. It changes nothing, and must not import the
// exporter or a storage back end.
package server
