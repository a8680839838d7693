package rpc

import (
	"bytes"
	"net/netip"
	"sync/atomic"

	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/subnet"
)

// Caller is who sent a request: what AUTH_SYS claims, and from where.
type Caller struct {
	// Addr is the client's address as the connection has it, without a zone, IPv4 unmapped.
	Addr netip.Addr
	// Client is what the client counts as to limits, and whose a client ID is (Config.Client); the zero value: subnet.Of(Addr).
	Client netip.Addr
	// Port is the port that the client's connection comes from; 0: not known.
	Port uint16
	// UID, GID and GIDs are the credentials of AUTH_SYS (RFC 5531 appendix A). GIDs has at most 16.
	UID, GID uint32
	GIDs     []uint32
	// Anonymous is true for AUTH_NONE: UID, GID and GIDs mean nothing then.
	Anonymous bool

	// Door is the name of the listener that the client's connection came through (Server.ServeDoor); "" is the main one.
	Door string

	// Link is the connection that the request came on; nil if there is none, as in tests.
	Link *Link
	// Keep asks for memory for a large result before it is made. False: there is none now, and the client
	// is to ask again later. It is for the goroutine that executes the request; nil: there is always memory.
	Keep func(bytes int) bool
}

// CountsAs is Client, or what it is by default.
func (c Caller) CountsAs() netip.Addr {
	if c.Client.IsValid() {
		return c.Client
	}
	return subnet.Of(c.Addr)
}

// Link stands for a connection, whose identity is the pointer's.
type Link struct{ ended atomic.Bool }

// Ended is true when no further request can come on the connection.
func (l *Link) Ended() bool { return l.ended.Load() }

// End marks the connection as ended.
func (l *Link) End() { l.ended.Store(true) }

// authenticate decodes credentials. Any flavor but AUTH_NONE and AUTH_SYS, so also
// RPCSEC_GSS, is AUTH_REJECTEDCRED: the credential may be sound but not for this server
// (RFC 5531 section 9), and the Linux client falls back to AUTH_SYS on it.
func authenticate(cred, verf *rpcv2.OpaqueAuth) (Caller, rpcv2.AuthStat) {
	switch cred.Flavor {
	case rpcv2.AUTH_NONE:
		return Caller{Anonymous: true}, rpcv2.AUTH_OK
	case rpcv2.AUTH_SYS:
	default:
		return Caller{}, rpcv2.AUTH_REJECTEDCRED
	}
	// RFC 5531 appendix A: the verifier of AUTH_SYS is AUTH_NONE.
	if verf.Flavor != rpcv2.AUTH_NONE {
		return Caller{}, rpcv2.AUTH_BADVERF
	}
	var parms rpcv2.AuthsysParms
	body := bytes.NewReader(cred.Body)
	if _, err := parms.ReadFrom(body); err != nil || body.Len() > 0 {
		return Caller{}, rpcv2.AUTH_BADCRED
	}
	return Caller{UID: parms.Uid, GID: parms.Gid, GIDs: parms.Gids}, rpcv2.AUTH_OK
}
