package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/session"
)

// RFC 8881 section 8.3 lets a server drop a client whose lease is over. Linux, whose renewals were held up, would find its session
// gone, and all that walk through the mount would wait until there is another.
func TestASilentClientIsKeptWhileThereIsRoom(t *testing.T) {
	f := newFixture(t, session.Limits{})
	id, silent := f.client("silent")
	if got := f.status(sequence(silent, 0, 1), putRoot, create); got != nfsv4.NFS4_OK {
		t.Fatal(got)
	}
	exchanged(t, f.send(alice, exchangeID("probe", 1, 0)))
	f.clock.advance(18 * lease) // 3 minutes of leases of 10 s.
	f.Expire()
	if got := f.Stats(); got.Clients != 1 || got.SilentClients != 1 || got.Sessions != 1 {
		t.Errorf("only the one that never confirmed itself was to go: %+v", got)
	}
	if got := f.status(sequence(silent, 0, 1), putRoot, create); got != nfsv4.NFS4_OK || f.handler.creates != 1 {
		t.Errorf("the retry of its last request: %v, executed %d times", nfsv4.Nfsstat4_name[got], f.handler.creates)
	}
	if got := f.status(sequence(silent, 0, 2)); got != nfsv4.NFS4_OK {
		t.Errorf("the next request: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.Stats().SilentClients; got != 0 {
		t.Errorf("%d silent clients", got)
	}
	f.clock.advance(18 * lease)
	created(t, f.send(alice, createSession(id, 2)))
	f.clock.advance(25 * time.Hour)
	if got := f.status(sequence(silent, 0, 3)); got != nfsv4.NFS4ERR_BADSESSION {
		t.Errorf("after a day: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.Stats(); got != (session.Stats{}) {
		t.Errorf("left behind: %+v", got)
	}
}

// Where there is no room, newcomers get the places of silent clients, the one that is silent longest first, and before any
// active one.
func TestSilentClientsGiveWayToNewcomers(t *testing.T) {
	for name, limits := range map[string]session.Limits{
		"clients":  {Clients: 8, ClientsPerAddress: 8, SessionsPerAddress: 100},
		"sessions": {Sessions: 8, SessionsPerAddress: 8, ClientsPerAddress: 100},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, limits)
			var silent []sessionID
			for i := range 4 {
				id, _ := f.clientAt(at(byte(10+i)), "silent")
				silent = append(silent, id)
				f.clock.advance(time.Second)
			}
			f.clock.advance(3 * lease)
			// Of one address that holds most.
			var active []sessionID
			for i := range 4 {
				id, _ := f.clientAt(at(1), fmt.Sprint("active", i))
				active = append(active, id)
			}
			for i := range 3 {
				if _, status := f.clientAt(at(byte(20+i)), "newcomer"); status != nfsv4.NFS4_OK {
					t.Errorf("newcomer %d: %v", i, nfsv4.Nfsstat4_name[status])
				}
			}
			for i, id := range active {
				if got := f.send(at(1), sequence(id, 0, 1)).Status; got != nfsv4.NFS4_OK {
					t.Errorf("active client %d: %v", i, nfsv4.Nfsstat4_name[got])
				}
			}
			for i, id := range silent {
				want := nfsv4.NFS4ERR_BADSESSION
				if i == 3 {
					want = nfsv4.NFS4_OK
				}
				if got := f.send(at(byte(10+i)), sequence(id, 0, 1)).Status; got != want {
					t.Errorf("silent client %d: %v, want %v", i, nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[want])
				}
			}
		})
	}
}
