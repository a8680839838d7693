// Package client is a small NFSv4.1 client (RFC 8881) for what the namespace server does on data
// servers: directories are made, removed, renamed and listed with the credentials of the user who
// asked. It holds no state but a session. It must not import session (but in tests), Kubernetes
// or anything of Howdah's but rpc.
package client
