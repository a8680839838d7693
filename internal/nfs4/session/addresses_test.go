package session_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// at is alice at an address.
func at(number byte) rpc.Caller {
	return rpc.Caller{UID: 1, Addr: netip.AddrFrom4([4]byte{192, 0, 2, number})}
}

// clientAt makes a confirmed client at an address, with the status of what it did last.
func (f *fixture) clientAt(caller rpc.Caller, owner string) (sessionID, nfsv4.Nfsstat4) {
	f.Helper()
	res := f.send(caller, exchangeID(owner, 1, 0))
	if res.Status != nfsv4.NFS4_OK {
		return sessionID{}, res.Status
	}
	id := exchanged(f.T, res)
	res = f.send(caller, createSession(id.EirClientid, id.EirSequenceid))
	if res.Status != nfsv4.NFS4_OK {
		return sessionID{}, res.Status
	}
	return created(f.T, res).CsrSessionid, nfsv4.NFS4_OK
}

// However many clients one or a few addresses make, a newcomer at another gets in, and who came first stays.
func TestNoAddressLocksOthersOut(t *testing.T) {
	for name, limits := range map[string]session.Limits{
		"clients":  {Clients: 40},
		"sessions": {Sessions: 40},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, limits)
			first, status := f.clientAt(at(1), "first")
			if status != nfsv4.NFS4_OK {
				t.Fatal(nfsv4.Nfsstat4_name[status])
			}
			put := map[nfsv4.Nfsstat4]int{}
			for i := range 200 {
				_, status := f.clientAt(at(2+byte(i%5)), fmt.Sprint("attacker", i))
				put[status]++
			}
			if put[nfsv4.NFS4_OK] == 0 || put[nfsv4.NFS4ERR_DELAY] == 0 || put[nfsv4.NFS4_OK]+put[nfsv4.NFS4ERR_DELAY] != 200 {
				t.Errorf("the attackers got %v", put)
			}
			newcomer, status := f.clientAt(at(9), "newcomer")
			if status != nfsv4.NFS4_OK {
				t.Errorf("the newcomer: %v", nfsv4.Nfsstat4_name[status])
			}
			for who, id := range map[string]sessionID{"the newcomer": newcomer, "the first": first} {
				if got := f.send(at(1), sequence(id, 0, 1)).Status; got != nfsv4.NFS4_OK {
					t.Errorf("%s: %v", who, nfsv4.Nfsstat4_name[got])
				}
			}
			if got := f.Stats(); got.Clients > f.Limits().Clients || got.Sessions > f.Limits().Sessions {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Clients that do not confirm themselves push out those of their own address only.
func TestAFloodOfExchangeIDsHitsItsOwnAddress(t *testing.T) {
	f := newFixture(t, session.Limits{Clients: 40})
	mine := exchanged(t, f.send(at(1), exchangeID("mine", 1, 0)))
	for i := range 500 {
		exchanged(t, f.send(at(2), exchangeID(fmt.Sprint("flood", i), 1, 0)))
	}
	if res := f.send(at(1), createSession(mine.EirClientid, mine.EirSequenceid)); res.Status != nfsv4.NFS4_OK {
		t.Error(nfsv4.Nfsstat4_name[res.Status])
	}
	if got := f.Stats().Clients; got != 11 { // A quarter of 40, and mine.
		t.Errorf("%d clients", got)
	}
}

// Nor do those of several addresses that are full push out the one of an address that has no other.
func TestAFloodFromSeveralAddressesLeavesOthersTheirPlace(t *testing.T) {
	f := newFixture(t, session.Limits{Clients: 40})
	for i := range 500 {
		mine := exchanged(t, f.send(at(1), exchangeID(fmt.Sprint("mine", i), 1, 0)))
		for k := range byte(8) {
			exchanged(t, f.send(at(2+k), exchangeID(fmt.Sprint("flood ", i, " ", k), 1, 0)))
		}
		res := f.send(at(1), createSession(mine.EirClientid, mine.EirSequenceid))
		made := created(t, res)
		f.send(at(1), destroySession(made.CsrSessionid))
		f.send(at(1), destroyClient(mine.EirClientid))
	}
}

// At its own limit an address gets a new client when one of its own has been silent for a lease.
func TestASilentClientGivesItsPlaceToItsNeighbour(t *testing.T) {
	f := newFixture(t, session.Limits{ClientsPerAddress: 2})
	_, _ = f.clientAt(at(1), "a")
	second, _ := f.clientAt(at(1), "b")
	if _, status := f.clientAt(at(1), "c"); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("at the limit: %v", nfsv4.Nfsstat4_name[status])
	}
	f.clock.advance(lease + time.Second)
	if got := f.send(at(1), sequence(second, 0, 1)).Status; got != nfsv4.NFS4_OK {
		t.Fatal(got)
	}
	if _, status := f.clientAt(at(1), "c"); status != nfsv4.NFS4_OK {
		t.Errorf("after the lease: %v", nfsv4.Nfsstat4_name[status])
	}
	if got := f.send(at(1), sequence(second, 0, 2)).Status; got != nfsv4.NFS4_OK {
		t.Errorf("the one that was not silent: %v", nfsv4.Nfsstat4_name[got])
	}
}

// The changes of an address are limited by second; others are not delayed by it.
func TestRateOfChanges(t *testing.T) {
	f := newFixture(t, session.Limits{ChangesPerSecond: 1, ChangeBurst: 3, ChangesPerAddress: 4})
	mine, _ := f.clientAt(at(1), "a")
	other, _ := f.clientAt(at(2), "b")
	mkdir := func(caller rpc.Caller, id sessionID, number uint32) nfsv4.Nfsstat4 {
		return f.send(caller, sequence(id, 0, number), putRoot, create).Status
	}
	number := uint32(0)
	for range 3 {
		number++
		if got := mkdir(at(1), mine, number); got != nfsv4.NFS4_OK {
			t.Fatalf("change %d: %v", number, nfsv4.Nfsstat4_name[got])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // No client waits in this test.
	number++
	if encoded, _ := f.Compound(ctx, at(1), encode(1, sequence(mine, 0, number), putRoot, create)); encoded[3] != byte(nfsv4.NFS4ERR_DELAY&0xff) {
		t.Errorf("one more: %x", encoded[:4])
	}
	if got := f.Delayed().Changes; got != 1 {
		t.Errorf("%d changes are counted as put off", got)
	}
	if got := mkdir(at(2), other, 1); got != nfsv4.NFS4_OK {
		t.Errorf("another address: %v", nfsv4.Nfsstat4_name[got])
	}
	f.clock.advance(2 * time.Second)
	number++
	if got := mkdir(at(1), mine, number); got != nfsv4.NFS4_OK {
		t.Errorf("later: %v", nfsv4.Nfsstat4_name[got])
	}
}

// Who makes one change after the other is not held to the rate of those who make many at a time.
func TestOneChangeAfterTheOtherIsFasterThanTheRate(t *testing.T) {
	f := newFixture(t, session.Limits{ChangesPerSecond: 100, ChangeBurst: 1, ChangesPerAddress: 4})
	mine, _ := f.clientAt(at(1), "a")
	for number := range uint32(400) {
		if got := f.send(at(1), sequence(mine, 0, number+1), putRoot, create).Status; got != nfsv4.NFS4_OK {
			t.Fatalf("change %d: %v", number, nfsv4.Nfsstat4_name[got])
		}
		f.clock.advance(2 * time.Millisecond)
	}
}

// wideSession is a session of the client at address 1 with some slots: as many requests at a time.
func (f *fixture) wideSession(t *testing.T, slots uint32) nfsv4.Sessionid4 {
	t.Helper()
	id := exchanged(t, f.send(at(1), exchangeID("a", 1, 0)))
	wide := func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxrequests = slots }
	return created(t, f.send(at(1), createSession(id.EirClientid, 1, wide))).CsrSessionid
}

// Beyond the rate an address has one change under way, and no more.
func TestBeyondTheRateAnAddressHasOneChangeAtATime(t *testing.T) {
	f := newFixture(t, session.Limits{ChangesPerSecond: 1, ChangeBurst: 2, ChangesPerAddress: 8, Slots: 16})
	f.handler.entered, f.handler.leave = make(chan struct{}, 100), make(chan struct{})
	mine := f.wideSession(t, 16)
	statuses := make(chan nfsv4.Nfsstat4, 8)
	for slot := range uint32(8) {
		go func() { statuses <- f.send(at(1), sequence(mine, slot, 1), putRoot, create).Status }()
	}
	for range 3 {
		<-f.handler.entered
	}
	select {
	case <-f.handler.entered:
		t.Error("a fourth change is under way, of two at once and one beyond")
	case <-time.After(200 * time.Millisecond):
	}
	close(f.handler.leave)
	for range 8 {
		<-statuses
	}
}

// The changes of an address at a time are limited; a few more wait, and further ones get NFS4ERR_DELAY at once.
func TestChangesAtATime(t *testing.T) {
	f := newFixture(t, session.Limits{ChangesPerSecond: 1000, ChangeBurst: 1000, ChangesPerAddress: 2, Slots: 16})
	f.handler.entered, f.handler.leave = make(chan struct{}, 100), make(chan struct{})
	mine := f.wideSession(t, 16)
	other, _ := f.clientAt(at(2), "b")
	statuses := make(chan nfsv4.Nfsstat4, 16)
	for slot := range uint32(16) {
		go func() { statuses <- f.send(at(1), sequence(mine, slot, 1), putRoot, create).Status }()
	}
	for range 2 {
		<-f.handler.entered
	}
	for range 14 { // Those that wait are put off after a second.
		if got := <-statuses; got != nfsv4.NFS4ERR_DELAY {
			t.Error(nfsv4.Nfsstat4_name[got])
		}
	}
	go func() { statuses <- f.send(at(2), sequence(other, 0, 1), putRoot, create).Status }()
	<-f.handler.entered
	for range 3 {
		f.handler.leave <- struct{}{}
		if got := <-statuses; got != nfsv4.NFS4_OK {
			t.Error(nfsv4.Nfsstat4_name[got])
		}
	}
}

// Replies that are kept for retries have a limit, and go with their clients.
func TestMemoryForRetries(t *testing.T) {
	f := newFixture(t, session.Limits{CachedBytes: 4096})
	var last sessionID
	for i := range 100 {
		id, status := f.clientAt(at(byte(i%5)), fmt.Sprint(i))
		if status != nfsv4.NFS4_OK {
			t.Fatal(nfsv4.Nfsstat4_name[status])
		}
		if got := f.send(at(byte(i%5)), sequence(id, 0, 1), putRoot, create).Status; got != nfsv4.NFS4_OK {
			t.Fatal(nfsv4.Nfsstat4_name[got])
		}
		if got := f.Stats().CachedBytes; got > 4096 {
			t.Fatalf("%d bytes are kept", got)
		}
		last = id
	}
	if got := f.send(at(99%5), sequence(last, 0, 1), putRoot, create).Status; got != nfsv4.NFS4_OK || f.handler.creates != 100 {
		t.Errorf("the last one's retry: %v, %d changes", nfsv4.Nfsstat4_name[got], f.handler.creates)
	}
	// Silent clients keep theirs while there is room, and give way to those that speak.
	f.clock.advance(3 * lease)
	now, _ := f.clientAt(at(9), "now")
	for i := range uint32(40) {
		before := f.handler.creates
		request := []nfsv4.NfsArgop4{sequence(now, i%4, i/4+1), putRoot, create}
		f.send(at(9), request...)
		if f.send(at(9), request...); f.handler.creates != before+1 {
			t.Fatalf("request %d was executed %d times", i, f.handler.creates-before)
		}
	}
	if got := f.Stats(); got.CachedBytes > 4096/2 || got.Clients > 100 {
		t.Errorf("after silent ones gave way: %+v", got)
	}
	f.clock.advance(25 * time.Hour)
	f.Expire()
	if got := f.Stats(); got != (session.Stats{}) {
		t.Errorf("left behind: %+v", got)
	}
}

// RFC 8881 section 18.37.3 and 2.10.3.1: the connection of a DESTROY_SESSION.
func TestDestroySessionFromAnotherConnection(t *testing.T) {
	for name, test := range map[string]struct {
		associate func(f *fixture, id sessionID, on rpc.Caller)
		// ended: the connection that the session was made on is gone.
		ended bool
		want  nfsv4.Nfsstat4
	}{
		"a foreign one":                   {func(*fixture, sessionID, rpc.Caller) {}, false, nfsv4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION},
		"one that a SEQUENCE came on":     {func(f *fixture, id sessionID, on rpc.Caller) { f.send(on, sequence(id, 0, 1)) }, false, nfsv4.NFS4_OK},
		"one that was bound":              {func(f *fixture, id sessionID, on rpc.Caller) { f.send(on, bind(id, nfsv4.CDFC4_FORE)) }, false, nfsv4.NFS4_OK},
		"a new one in place of the first": {func(*fixture, sessionID, rpc.Caller) {}, true, nfsv4.NFS4_OK},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{})
			first, second := alice, alice
			first.Link, second.Link = &rpc.Link{}, &rpc.Link{}
			id, status := f.clientAt(first, "owner")
			if status != nfsv4.NFS4_OK {
				t.Fatal(nfsv4.Nfsstat4_name[status])
			}
			if test.ended {
				first.Link.End()
			}
			test.associate(f, id, second)
			if got := f.send(second, destroySession(id)).Status; got != test.want {
				t.Errorf("%v, want %v", nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[test.want])
			}
			if test.want == nfsv4.NFS4_OK {
				return
			}
			if got := f.send(first, destroySession(id)).Status; got != nfsv4.NFS4_OK {
				t.Errorf("on its own: %v", nfsv4.Nfsstat4_name[got])
			}
		})
	}
}

// A session remembers the connections in use, not all that ever were.
func TestASessionForgetsOldConnections(t *testing.T) {
	f := newFixture(t, session.Limits{})
	first := alice
	first.Link = &rpc.Link{}
	id, _ := f.clientAt(first, "owner")
	old := alice
	old.Link = &rpc.Link{}
	f.send(old, sequence(id, 0, 1))
	for i := range uint32(100) {
		another := alice
		another.Link = &rpc.Link{}
		f.send(another, sequence(id, 0, i+2))
	}
	if got := f.send(old, destroySession(id)).Status; got != nfsv4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION {
		t.Errorf("on a connection of long ago: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.send(first, destroySession(id)).Status; got != nfsv4.NFS4_OK {
		t.Errorf("on the first one: %v", nfsv4.Nfsstat4_name[got])
	}
}

// RFC 8881 section 18.46.3: the reply to be kept does not even hold the SEQUENCE.
func TestSequenceThatCanNotBeKept(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner", func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxresponsesizeCached = 10 })
	for _, step := range []struct {
		name string
		op   nfsv4.NfsArgop4
		want nfsv4.Nfsstat4
	}{
		{"to be kept", sequence(id, 0, 1), nfsv4.NFS4ERR_REP_TOO_BIG_TO_CACHE},
		{"not to be kept, and the slot is as before", uncached(sequence(id, 0, 1)), nfsv4.NFS4_OK},
	} {
		if res := f.send(alice, step.op); res.Status != step.want || len(res.Resarray) != 1 {
			t.Errorf("%s: %v", step.name, nfsv4.Nfsstat4_name[res.Status])
		}
	}
}

// A listing is no longer than the server's limit, and not begun without memory for it.
func TestListingsAskForMemory(t *testing.T) {
	f := newFixture(t, session.Limits{ListingBytes: 64 << 10})
	_, id := f.client("owner")
	listing := func() nfsv4.NfsArgop4 {
		return &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{Maxcount: 1 << 20}}
	}
	for i, test := range []struct {
		allowed int
		want    nfsv4.Nfsstat4
	}{
		{1 << 20, nfsv4.NFS4ERR_NOTSUPP}, // The test's handler lists nothing.
		{64 << 10, nfsv4.NFS4ERR_DELAY},
	} {
		asked := 0
		caller := alice
		caller.Keep = func(bytes int) bool {
			asked += bytes
			return bytes <= test.allowed
		}
		got := f.send(caller, sequence(id, 0, uint32(i+1)), putRoot, listing()).Status
		if got != test.want || asked < 128<<10 || asked > 129<<10 {
			t.Errorf("%v after %d bytes", nfsv4.Nfsstat4_name[got], asked)
		}
	}
}

// A client that comes back after a long silence asks for another session, and no address may have more. It must not give its own place to itself: its
// session would be one of no client and never end, and such sessions would leave no room for others.
func TestAClientThatComesBackDoesNotPushItselfOut(t *testing.T) {
	for name, test := range map[string]struct {
		limits session.Limits
		silent time.Duration
	}{
		"at the limit of its address": {session.Limits{SessionsPerAddress: 2}, lease + time.Second},
		"at the limit of all":         {session.Limits{Sessions: 2, SessionsPerAddress: 3}, 2*lease + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.limits)
			id := exchanged(t, f.send(at(1), exchangeID("a", 1, 0)))
			for i := range uint32(2) {
				created(t, f.send(at(1), createSession(id.EirClientid, id.EirSequenceid+i)))
			}
			f.clock.advance(test.silent)
			res := f.send(at(1), createSession(id.EirClientid, id.EirSequenceid+2))
			if res.Status != nfsv4.NFS4ERR_DELAY && res.Status != nfsv4.NFS4ERR_STALE_CLIENTID {
				t.Errorf("the third session: %v", nfsv4.Nfsstat4_name[res.Status])
			}
			f.clock.advance(48 * time.Hour)
			f.Expire()
			if got := f.Stats(); got.Clients != 0 || got.Sessions != 0 {
				t.Errorf("days later there is %+v", got)
			}
		})
	}
}

// An address whose state was forgotten while room was made for it has no second one beside the first.
func TestALimitOfAnAddressHoldsWhileThereIsRoomForNoOther(t *testing.T) {
	f := newFixture(t, session.Limits{Clients: 2, ClientsPerAddress: 1})
	_, _ = f.clientAt(at(1), "a")
	_, _ = f.clientAt(at(2), "b")
	f.clock.advance(2*lease + time.Second) // Both are silent, and give their places.
	f.send(at(9), sequence(sessionID{}, 0, 1))
	f.clock.advance(time.Second)
	for i := range 3 {
		exchanged(t, f.send(at(3), exchangeID(fmt.Sprint("c", i), 1, 0)))
		f.clock.advance(time.Second)
	}
	addresses, _ := f.Held()
	if got := f.Stats(); got.Clients-got.ConfirmedClients != 1 || addresses == 0 {
		t.Errorf("an address that may have one client has %d; there are %d addresses", got.Clients-got.ConfirmedClients, addresses)
	}
}

// Whoever has many addresses makes the server keep no more of them than it keeps clients: each newcomer looks at all of them while there is no room.
func TestAddressesWithoutClientsAreNotKept(t *testing.T) {
	f := newFixture(t, session.Limits{Clients: 40})
	for i := range 2000 {
		from := rpc.Caller{UID: 1, Addr: netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, byte(i >> 8), byte(i), 15: 1})}
		f.send(from, exchangeID(fmt.Sprint("flood", i), 1, 0))
	}
	if addresses, _ := f.Held(); addresses > 40 {
		t.Errorf("%d addresses are kept", addresses)
	}
}
