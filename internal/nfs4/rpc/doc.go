// Package rpc is ONC RPC version 2 (RFC 5531) over TCP for one program: NFS version 4.
// It decides what a client may make the server hold: message sizes, connections, requests in
// flight, and how long a silent or a deaf client is kept. It knows nothing of NFS operations:
// the arguments of COMPOUND go to a Handler as bytes. It must not import session, client,
// Kubernetes or anything of Howdah's.
package rpc
