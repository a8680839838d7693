// Package mtls makes and checks the certificates by which the servers of a FileServer authenticate each other (mutual TLS 1.3,
// RFC 8446). An authority signs the certificates of one key generation, and its key is then dropped: its certificate verifies
// the servers, and no further certificate can be signed.
package mtls
