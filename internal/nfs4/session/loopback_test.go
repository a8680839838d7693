package session_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/peertest"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// A client on sockets, and an attacker at another address that even knows its session's ID.
func TestAHostileNeighbourOnSockets(t *testing.T) {
	sessions, err := session.New(session.Config{Handler: &handler{}, Owner: "owner", Scope: "scope"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- rpc.NewServer(rpc.Config{Handler: sessions, Limits: rpc.Limits{Drain: time.Millisecond}}).Serve(ctx, listener)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	connect := func(address string) *peertest.Peer {
		t.Helper()
		p, err := peertest.Connect(ctx, listener.Addr().String(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	want := func(what string, want nfsv4.Nfsstat4, do func() (nfsv4.Nfsstat4, error)) {
		t.Helper()
		if got, err := do(); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", what, nfsv4.Nfsstat4_name[got], err, nfsv4.Nfsstat4_name[want])
		}
	}
	node, hostile := connect("127.0.0.1"), connect("127.0.0.2")
	works := func(p *peertest.Peer, slot uint32) func() (nfsv4.Nfsstat4, error) {
		return func() (nfsv4.Nfsstat4, error) {
			res, err := p.Call(p.Sequence(slot), putRoot)
			return peertest.Status(res), err
		}
	}
	want("the client's mount", nfsv4.NFS4_OK, func() (nfsv4.Nfsstat4, error) { return node.Login("node-1") })
	for range 3 {
		hostile.Verifier++
		want("the attacker's mount as that client", nfsv4.NFS4_OK, func() (nfsv4.Nfsstat4, error) { return hostile.Login("node-1") })
		want("the client afterwards", nfsv4.NFS4_OK, works(node, 0))
	}
	want("the attacker binds the client's session", nfsv4.NFS4ERR_BADSESSION, func() (nfsv4.Nfsstat4, error) { return hostile.Join(node, 1) })
	want("the attacker uses it", nfsv4.NFS4ERR_BADSESSION, works(hostile, 2))
	_ = hostile.Logout() // DESTROY_SESSION and DESTROY_CLIENTID of what it knows, which is the client's.
	want("the client afterwards", nfsv4.NFS4_OK, works(node, 0))

	// The client's machine loses its power: its connection is still there when it comes back at the same address.
	back := connect("127.0.0.1")
	back.Verifier = 9
	want("the client's mount after its restart", nfsv4.NFS4_OK, func() (nfsv4.Nfsstat4, error) { return back.Login("node-1") })
	want("its request from before", nfsv4.NFS4ERR_BADSESSION, works(node, 0))

	// Its address changes: it can go on when its connection is gone, and meanwhile has another client ID.
	moved, fresh := connect("127.0.0.3"), connect("127.0.0.3")
	want("its session while its connection is there", nfsv4.NFS4ERR_BADSESSION, func() (nfsv4.Nfsstat4, error) { return moved.Join(back, 3) })
	_ = back.Close()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if status, err := moved.Join(back, 3); err != nil || status == nfsv4.NFS4_OK || time.Since(began) > 10*time.Second {
			want("its session afterwards", nfsv4.NFS4_OK, func() (nfsv4.Nfsstat4, error) { return status, err })
			break
		}
	}
	fresh.Verifier = 9
	want("its mount", nfsv4.NFS4_OK, func() (nfsv4.Nfsstat4, error) { return fresh.Login("node-1") })
}
