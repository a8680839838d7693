// Package session is the server side of NFSv4.1 and 4.2 sessions (RFC 8881 section 2.10, RFC 7862):
// client IDs, sessions, slots with exactly-once semantics, the rules about where an operation may
// stand, and the limits of a compound. It keeps state in memory only: after a restart clients
// get that answer (NFS4ERR_BADSESSION, NFS4ERR_STALE_CLIENTID) and recover by themselves.
// Operations on files and directories go to a Handler. It must not import client, Kubernetes or
// anything of Howdah's but rpc.
package session
