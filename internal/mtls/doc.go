// Package mtls makes and checks the certificates by which the servers of a FileServer know each other (mutual TLS 1.3,
// RFC 8446). An authority signs those of one key generation and is forgotten: whoever has its certificate knows the
// servers, and nobody can make another. It reads files and decides nothing else.
package mtls
