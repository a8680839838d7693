package dataserver

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/peertest"
)

// tcpTable and tcp6Table are what proc(5) has on machines with the low byte first, which all are that Howdah is built for.
const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0801 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0000000000000000 100 0 0 10 0
   1: 0200630A:0801 0100630A:C350 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0000000000000000 100 0 0 10 0
   2: 0200630A:0801 0200007E:C350 08 00000000:00000000 00:00000000 00000000     0        0 13 1 0000000000000000 100 0 0 10 0
   3: 0200630A:0801 0300630A:C350 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 100 0 0 10 0
   4: 0100007F:0801 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 14 1 0000000000000000 100 0 0 10 0
   5: 0100007F:0801 4D03427F:0351 01 00000000:00000000 00:00000000 00000000     0        0 15 1 0000000000000000 100 0 0 10 0
   6: 0100630A:C350 0200630A:0801 01 00000000:00000000 00:00000000 00000000     0        0 16 1 0000000000000000 100 0 0 10 0
   7: 0200630A:2574 0100630A:C351 01 00000000:00000000 00:00000000 00000000     0        0 17 1 0000000000000000 100 0 0 10 0
`

const tcp6Table = `  sl  local_address                         remote_address                        st
   0: 0000000000000000FFFF00000200630A:0801 0000000000000000FFFF00000100630A:C350 01
   1: 000000FD000000000000000001000000:0801 000000FD000000000000000002000000:C350 01
   2: 0000000000000000FFFF00000100007F:0801 0000000000000000FFFF00000100007F:C350 01
   3: 00000000000000000000000001000000:0801 00000000000000000000000001000000:C350 01
`

func TestConnectionsAreThoseOfClientsThatAreOpen(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the tables are of a machine with the low byte first")
	}
	for table, want := range map[string]map[string]int{
		tcpTable:  {"10.99.0.1": 1, "126.0.0.2": 1},
		tcp6Table: {"10.99.0.1": 1, "fd00::2": 1},
	} {
		got := map[string]int{}
		if err := countClients(strings.NewReader(table), 2049, got); err != nil || !maps.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}

func TestConnectionsAllowedAreThoseOfTheStart(t *testing.T) {
	text, err := ganesha.Render(ganesha.Config{
		ServerScope: "scope", ServerOwner: "owner", LeaseSeconds: 10, GraceSeconds: 20, RecoveryRoot: "/r", Limits: ganesha.LimitsFor(0).WithConnections(77),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := connectionsAllowed(text); got != 77 {
		t.Errorf("%d", got)
	}
	if got := connectionsAllowed(""); got != 0 {
		t.Errorf("%d without a start", got)
	}
}

// manyConnections has 200 clients with 16 connections each, as nconnect=16 makes them.
func manyConnections(t *testing.T) {
	const clients, connections = 200, 16
	const limit = 4 * clients * connections // All come from one address, which may have a quarter.
	s := boot(t, "many", 1)
	s.apply(func(spec *wanted) {
		spec.MaxConnections = limit
		spec.Exports = []internalv1.ShareExportSpec{shareSpec("alpha")}
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
	used, err := readConnections()
	mustWork(t, "count", err)
	t.Logf("FIGURE %d sessions with %d connections: ganesha has %d MiB, %d MiB before: %d KiB for a connection",
		clients, len(open), after>>20, before>>20, (after-before)/len(open)>>10)
	if used < clients*connections {
		t.Errorf("%d connections are counted", used)
	}
	s.manager.wake <- struct{}{}
	s.await("the connections in the status", func(status told) bool {
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
