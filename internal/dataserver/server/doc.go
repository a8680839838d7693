// Package server has the ports of a data server's process: probes, metrics, sizes and traffic of shares, and the TLS
// port for namespace servers. It also has the prober, which checks ganesha through NFS as clients do. It changes
// nothing, and must not import the exporter or a storage back end.
package server
