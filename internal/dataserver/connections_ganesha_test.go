package dataserver

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/peertest"
)

// manyConnections has 200 clients with 16 connections each, as nconnect=16 makes them.
func manyConnections(t *testing.T) {
	const clients, connections = 200, 16
	const limit = 4 * clients * connections // All come from one address, which may have a quarter.
	s := boot(t, "many", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.MaxConnections = limit
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	before := s.memory()
	var open []*peertest.Peer
	for i := range clients {
		first, err := peertest.Connect(t.Context(), "10.99.0.1:2049", "10.99.0.1")
		mustWork(t, "connect", err)
		status, err := first.Login(fmt.Sprint("client ", i))
		if mustWork(t, "login", err); status != nfsv4.NFS4_OK {
			t.Fatalf("login of client %d: %s", i, client.StatusName(status))
		}
		open = append(open, first)
		for k := uint32(1); k < connections; k++ {
			another, err := peertest.Connect(t.Context(), "10.99.0.1:2049", "10.99.0.1")
			mustWork(t, "connect once more", err)
			status, err := another.Join(first, k)
			if mustWork(t, "join", err); status != nfsv4.NFS4_OK {
				t.Fatalf("connection %d of client %d: %s", k, i, client.StatusName(status))
			}
			open = append(open, another)
		}
	}
	after := s.memory()
	used, err := s.options.ganesha().ReadConnections()
	mustWork(t, "count", err)
	t.Logf("FIGURE %d sessions with %d connections: ganesha has %d MiB, %d MiB before: %d KiB for a connection",
		clients, len(open), after>>20, before>>20, (after-before)/len(open)>>10)
	if used < clients*connections {
		t.Errorf("%d connections are counted", used)
	}
	s.exporter.Wake()
	s.await("the connections in the status", func(status dataservertest.Reported) bool {
		c := status.Connections
		return c.Used != nil && *c.Used >= clients*connections && c.Limit == limit
	})
	for i, p := range open { // All of them still serve.
		if _, err := p.Call(p.Sequence(uint32(i % connections))); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	refused := 0
	for range 200 {
		p, err := peertest.Connect(t.Context(), "10.99.0.1:2049", "10.99.0.1")
		if err != nil {
			refused++
			continue
		}
		open = append(open, p)
		if _, err := p.Login("too many"); err != nil {
			refused++
		}
	}
	if refused < 100 {
		t.Errorf("only %d of 200 connections above the limit were refused", refused)
	}
	for _, p := range open {
		_ = p.Close()
	}
	mustWork(t, "a connection after all have gone", eventuallyDials(s))
}

// eventuallyDials is nil as soon as a client gets a session.
func eventuallyDials(s *dataServer) (err error) {
	for range 100 {
		var p *peertest.Peer
		if p, err = peertest.Connect(s.t.Context(), "10.99.0.1:2049", "10.99.0.1"); err != nil {
			continue
		}
		_, err = p.Login("afterwards")
		_ = p.Close()
		if err == nil {
			return nil
		}
	}
	return err
}

// memory is what ganesha has in memory, in bytes.
func (s *dataServer) memory() int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid()))
	mustWork(s.t, "read ganesha's status", err)
	var kilobytes int
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(after, &kilobytes); err != nil {
		s.t.Fatal(err)
	}
	return kilobytes << 10
}
