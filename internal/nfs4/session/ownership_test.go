package session_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// from is a caller with a connection of its own.
func from(address byte, uid uint32) rpc.Caller {
	return rpc.Caller{Addr: netip.AddrFrom4([4]byte{192, 0, 2, address}), UID: uid, Link: &rpc.Link{}}
}

// owned is a client at 192.0.2.1, with user ID 1, that has made one request in its session.
type owned struct {
	*fixture
	caller  rpc.Caller
	id      uint64
	session sessionID
}

func newOwned(t *testing.T) *owned {
	o := &owned{fixture: newFixture(t, session.Limits{}), caller: from(1, 1)}
	id := exchanged(t, o.send(o.caller, exchangeID("owner", 1, 0)))
	o.id = id.EirClientid
	o.session = created(t, o.send(o.caller, createSession(o.id, id.EirSequenceid))).CsrSessionid
	if got := o.send(o.caller, sequence(o.session, 0, 1), putRoot, create).Status; got != nfsv4.NFS4_OK {
		t.Fatal(got)
	}
	return o
}

// leaks tells whether a reply has the client's ID or its session's.
func (o *owned) leaks(reply []byte) bool {
	return bytes.Contains(reply, o.session[:]) || bytes.Contains(reply, binary.BigEndian.AppendUint64(nil, o.id))
}

// Every operation on clients and sessions, by callers that are not on the owner's connection. After a refusal the owner must be able
// to continue, and a refusal must contain no ID.
func TestAnotherCallerCannotActOnAClient(t *testing.T) {
	const (
		ok        = nfsv4.NFS4_OK
		bad       = nfsv4.NFS4ERR_BADSESSION
		stale     = nfsv4.NFS4ERR_STALE_CLIENTID
		inUse     = nfsv4.NFS4ERR_CLID_INUSE
		notBound  = nfsv4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION
		notSame   = nfsv4.NFS4ERR_SEQ_FALSE_RETRY
		sessioned = nfsv4.NFS4ERR_CLIENTID_BUSY
	)
	callers := []struct {
		name   string
		caller func() rpc.Caller
	}{
		{"same address and principal", func() rpc.Caller { return from(1, 1) }},
		{"another address", func() rpc.Caller { return from(2, 1) }},
		{"another principal", func() rpc.Caller { return from(1, 4711) }},
		{"another address and principal", func() rpc.Caller { return from(2, 4711) }},
	}
	for _, test := range []struct {
		name string
		ops  func(o *owned) []nfsv4.NfsArgop4
		// connected and gone are what each of the callers gets while the owner's connection is there, and afterwards.
		connected, gone [4]nfsv4.Nfsstat4
	}{
		{
			"CREATE_SESSION", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{createSession(o.id, 2)} },
			[4]nfsv4.Nfsstat4{ok, stale, inUse, stale},
			[4]nfsv4.Nfsstat4{ok, ok, inUse, stale},
		},
		{
			"CREATE_SESSION again", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{createSession(o.id, 1)} },
			[4]nfsv4.Nfsstat4{ok, stale, inUse, stale},
			[4]nfsv4.Nfsstat4{ok, ok, inUse, stale},
		},
		{
			"BIND_CONN_TO_SESSION", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{bind(o.session, nfsv4.CDFC4_FORE)} },
			[4]nfsv4.Nfsstat4{ok, bad, bad, bad},
			[4]nfsv4.Nfsstat4{ok, ok, bad, bad},
		},
		{
			"DESTROY_SESSION", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{destroySession(o.session)} },
			[4]nfsv4.Nfsstat4{notBound, bad, bad, bad},
			[4]nfsv4.Nfsstat4{ok, ok, bad, bad},
		},
		{
			"DESTROY_CLIENTID", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{destroyClient(o.id)} },
			[4]nfsv4.Nfsstat4{sessioned, stale, stale, stale},
			[4]nfsv4.Nfsstat4{sessioned, sessioned, stale, stale},
		},
		{
			// A client's users share its sessions.
			"SEQUENCE", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(o.session, 1, 1), putRoot} },
			[4]nfsv4.Nfsstat4{ok, bad, ok, bad},
			[4]nfsv4.Nfsstat4{ok, ok, ok, ok},
		},
		{
			"a request again", func(o *owned) []nfsv4.NfsArgop4 { return []nfsv4.NfsArgop4{sequence(o.session, 0, 1), putRoot, create} },
			[4]nfsv4.Nfsstat4{ok, bad, notSame, bad},
			[4]nfsv4.Nfsstat4{ok, ok, notSame, notSame},
		},
	} {
		for i, who := range callers {
			for state, want := range map[string]nfsv4.Nfsstat4{"connected": test.connected[i], "gone": test.gone[i]} {
				t.Run(test.name+"/"+who.name+"/owner "+state, func(t *testing.T) {
					o := newOwned(t)
					if state == "gone" {
						o.caller.Link.End()
					}
					res, encoded := o.raw(who.caller(), encode(1, test.ops(o)...))
					if res.Status != want {
						t.Fatalf("%v, want %v", nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[want])
					}
					if o.handler.creates != 1 {
						t.Errorf("the owner's request was executed %d times", o.handler.creates)
					}
					if want == ok {
						return
					}
					if o.leaks(encoded) {
						t.Errorf("the refusal has an ID of the owner's: %x", encoded)
					}
					if state == "gone" && i == 3 {
						return // When the client is gone, a caller that knows its session's random ID is taken for it.
					}
					// The owner goes on, on a connection of its own, and with the sequence that it knows.
					again := from(1, 1)
					if got := o.send(again, sequence(o.session, 0, 1), putRoot, create).Status; got != ok {
						t.Errorf("the owner's retry: %v", nfsv4.Nfsstat4_name[got])
					}
					if got := o.send(again, sequence(o.session, 0, 2), putRoot).Status; got != ok {
						t.Errorf("the owner's next request: %v", nfsv4.Nfsstat4_name[got])
					}
					created(t, o.send(again, createSession(o.id, 2)))
				})
			}
		}
	}
}

// A caller at another address with the same owner string becomes a client of its own, at once and whatever the owner does. At the same
// address, where the owner may have restarted, the principal decides.
func TestAnOwnerStringIsGoodAtItsAddressOnly(t *testing.T) {
	for _, test := range []struct {
		name     string
		caller   rpc.Caller
		verifier byte
		status   nfsv4.Nfsstat4
		// same: it gets the owner's client ID. survives: the owner's session is there after the other has made one.
		same, survives bool
	}{
		{"the same address, restarted", from(1, 1), 2, nfsv4.NFS4_OK, false, false},
		{"the same address, on another connection", from(1, 1), 1, nfsv4.NFS4_OK, true, true},
		{"the same address, another principal", from(1, 4711), 2, nfsv4.NFS4ERR_CLID_INUSE, false, true},
		{"another address, another verifier", from(2, 1), 2, nfsv4.NFS4_OK, false, true},
		{"another address, the same verifier", from(2, 1), 1, nfsv4.NFS4_OK, false, true},
		{"another address, another principal", from(2, 4711), 2, nfsv4.NFS4_OK, false, true},
	} {
		for _, state := range []string{"connected", "gone"} {
			t.Run(test.name+"/owner "+state, func(t *testing.T) {
				o := newOwned(t)
				if state == "gone" {
					o.caller.Link.End()
				}
				res, encoded := o.raw(test.caller, encode(1, exchangeID("owner", test.verifier, 0)))
				if res.Status != test.status {
					t.Fatalf("%v, want %v", nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[test.status])
				}
				if o.leaks(encoded) != test.same {
					t.Errorf("the reply has the owner's client ID: %v", !test.same)
				}
				if res.Status == nfsv4.NFS4_OK {
					id := exchanged(t, res)
					made := created(t, o.send(test.caller, createSession(id.EirClientid, id.EirSequenceid))).CsrSessionid
					if got := o.send(test.caller, sequence(made, 0, 1), putRoot).Status; got != nfsv4.NFS4_OK {
						t.Errorf("its session: %v", nfsv4.Nfsstat4_name[got])
					}
				}
				want := nfsv4.NFS4ERR_BADSESSION
				if test.survives {
					want = nfsv4.NFS4_OK
				}
				if got := o.send(from(1, 1), sequence(o.session, 0, 2), putRoot).Status; got != want {
					t.Errorf("the owner's session: %v, want %v", nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[want])
				}
			})
		}
	}
}

// Another principal at the same address gets in when the owner's lease is over: a machine may have been installed again.
func TestALeaseThatIsOverIsNoClaim(t *testing.T) {
	o := newOwned(t)
	o.clock.advance(2*lease + 1)
	id := exchanged(t, o.send(from(1, 4711), exchangeID("owner", 2, 0)))
	created(t, o.send(from(1, 4711), createSession(id.EirClientid, id.EirSequenceid)))
}

// A client whose address changes goes on with its session as soon as its connections from before are known to be gone, or its lease
// is over. Until then it has none, and a new one at once.
func TestAClientThatChangesItsAddress(t *testing.T) {
	moved := from(2, 1)
	for name, leaves := range map[string]func(o *owned){
		"its connection has ended": func(o *owned) { o.caller.Link.End() },
		"its lease is over":        func(o *owned) { o.clock.advance(2*lease + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwned(t)
			if got := o.send(moved, sequence(o.session, 0, 1), putRoot, create).Status; got != nfsv4.NFS4ERR_BADSESSION {
				t.Fatalf("while the connection from before is there: %v", nfsv4.Nfsstat4_name[got])
			}
			leaves(o)
			if got := o.send(moved, sequence(o.session, 0, 1), putRoot, create).Status; got != nfsv4.NFS4_OK || o.handler.creates != 1 {
				t.Errorf("the retry from the new address: %v, executed %d times", nfsv4.Nfsstat4_name[got], o.handler.creates)
			}
			if got := o.send(o.caller, sequence(o.session, 0, 2), putRoot).Status; got != nfsv4.NFS4ERR_BADSESSION {
				t.Errorf("from the old address: %v", nfsv4.Nfsstat4_name[got])
			}
			created(t, o.send(moved, createSession(o.id, 2)))
			if got := exchanged(t, o.send(moved, exchangeID("owner", 1, 0))).EirClientid; got != o.id {
				t.Errorf("it is another client: %x, before %x", got, o.id)
			}
			// What is counted for an address has moved, too.
			for _, id := range []sessionID{o.session} {
				if got := o.send(moved, destroySession(id)).Status; got != nfsv4.NFS4_OK {
					t.Errorf("its end: %v", nfsv4.Nfsstat4_name[got])
				}
			}
			o.clock.advance(25 * 3600e9)
			o.Expire()
			if addresses, sums := o.Held(); addresses != 0 || sums != 0 {
				t.Errorf("left behind: %d addresses, %d", addresses, sums)
			}
		})
	}
}

// An unconfirmed client is not replaced from another address: its owner could not mount.
func TestAMountIsNotUpsetFromAnotherAddress(t *testing.T) {
	f := newFixture(t, session.Limits{})
	mine, other := from(1, 1), from(2, 1)
	id := exchanged(t, f.send(mine, exchangeID("owner", 1, 0)))
	exchanged(t, f.send(other, exchangeID("owner", 2, 0)))
	if got := f.send(other, createSession(id.EirClientid, id.EirSequenceid)).Status; got != nfsv4.NFS4ERR_STALE_CLIENTID {
		t.Errorf("another confirms it: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.send(other, destroyClient(id.EirClientid)).Status; got != nfsv4.NFS4ERR_STALE_CLIENTID {
		t.Errorf("another destroys it: %v", nfsv4.Nfsstat4_name[got])
	}
	created(t, f.send(mine, createSession(id.EirClientid, id.EirSequenceid)))
}

// With nconnect=16 the connections come one after the other, end and come back; those of one address are one client's.
func TestAllConnectionsOfAnAddressUseTheSession(t *testing.T) {
	o := newOwned(t)
	for i := range uint32(40) {
		connection := from(1, 1)
		if got := o.send(connection, sequence(o.session, 1, i+1), putRoot).Status; got != nfsv4.NFS4_OK {
			t.Fatalf("connection %d: %v", i, nfsv4.Nfsstat4_name[got])
		}
		if i%2 == 0 {
			connection.Link.End()
		}
	}
	// One is enough to keep others out, also where that on which the session was made is gone.
	o.caller.Link.End()
	if got := o.send(from(2, 1), sequence(o.session, 0, 2), putRoot).Status; got != nfsv4.NFS4ERR_BADSESSION {
		t.Errorf("another address: %v", nfsv4.Nfsstat4_name[got])
	}
}

// Of IPv6 a client has the whole /64, and may use several addresses of it.
func TestAddressesOfOneSubnetAreOneClient(t *testing.T) {
	f := newFixture(t, session.Limits{})
	at := func(address string) rpc.Caller {
		return rpc.Caller{UID: 1, Addr: netip.MustParseAddr(address), Link: &rpc.Link{}}
	}
	id, _ := f.clientAt(at("2001:db8::1"), "owner")
	for address, want := range map[string]nfsv4.Nfsstat4{"2001:db8::ffff": nfsv4.NFS4_OK, "2001:db8:0:1::1": nfsv4.NFS4ERR_BADSESSION} {
		if got := f.send(at(address), sequence(id, 0, 1)).Status; got != want {
			t.Errorf("%s: %v, want %v", address, nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[want])
		}
	}
}

// A cluster's nodes are mostly in one /64. Each is a client of its own (Caller.Client): no other one can use or end its session, or
// use up what it may have.
func TestNodesOfOneSubnetAreClientsOfTheirOwn(t *testing.T) {
	f := newFixture(t, session.Limits{ClientsPerAddress: 1})
	at := func(address string, counts bool) rpc.Caller {
		caller := rpc.Caller{UID: 1, Addr: netip.MustParseAddr(address), Link: &rpc.Link{}}
		if counts {
			caller.Client = caller.Addr
		}
		return caller
	}
	node := at("2001:db8::1", true)
	id, _ := f.clientAt(node, "owner")
	for name, tc := range map[string]struct {
		caller rpc.Caller
		want   nfsv4.Nfsstat4
	}{
		"itself":                          {at("2001:db8::1", true), nfsv4.NFS4_OK},
		"itself, not known to be a node":  {at("2001:db8::1", false), nfsv4.NFS4_OK},
		"another node":                    {at("2001:db8::2", true), nfsv4.NFS4ERR_BADSESSION},
		"another machine of the subnet":   {at("2001:db8::3", false), nfsv4.NFS4ERR_BADSESSION},
		"another machine, another subnet": {at("2001:db8:0:1::1", false), nfsv4.NFS4ERR_BADSESSION},
	} {
		got := f.send(tc.caller, bind(id, nfsv4.CDFC4_FORE)).Status
		if got != tc.want {
			t.Errorf("%s: %v, want %v", name, nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[tc.want])
		}
	}
	// Each has the clients that one address may have.
	for _, caller := range []rpc.Caller{at("2001:db8::2", true), at("2001:db8::3", false)} {
		if _, status := f.clientAt(caller, "owner"); status != nfsv4.NFS4_OK {
			t.Errorf("a client of %s: %v", caller.Addr, nfsv4.Nfsstat4_name[status])
		}
	}
}

// A node that was not known to be one when it mounted keeps its session when it is.
func TestAClientThatIsFoundToBeANodeKeepsItsSession(t *testing.T) {
	f := newFixture(t, session.Limits{})
	before := rpc.Caller{UID: 1, Addr: netip.MustParseAddr("2001:db8::1"), Link: &rpc.Link{}}
	id, _ := f.clientAt(before, "owner")
	after := rpc.Caller{UID: 1, Addr: before.Addr, Client: before.Addr, Link: &rpc.Link{}}
	for i, caller := range []rpc.Caller{after, before, after} {
		if got := f.send(caller, sequence(id, 0, uint32(i+1))).Status; got != nfsv4.NFS4_OK {
			t.Errorf("request %d: %v", i, nfsv4.Nfsstat4_name[got])
		}
	}
}

// repeating is a source of random bytes that gives the same 16 again and again, and then others.
type repeating struct{ left int }

func (r *repeating) Read(p []byte) (int, error) {
	r.left--
	for i := range p {
		p[i] = 7
		if r.left < 0 {
			p[i] = byte(8 - r.left)
		}
	}
	return len(p), nil
}

// An ID that is in use is not given out again.
func TestIDsAreNotGivenTwice(t *testing.T) {
	s, err := session.New(session.Config{Handler: &handler{}, Owner: "owner", Scope: "scope", Random: &repeating{left: 5}})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, Server: s}
	first, one := f.client("a")
	second, two := f.client("b")
	if first == second || one == two {
		t.Errorf("client IDs %x and %x, session IDs %x and %x", first, second, one, two)
	}
	constant, err := session.New(session.Config{Handler: &handler{}, Owner: "owner", Scope: "scope", Random: &repeating{left: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = constant
	f.client("a")
	if got := f.status(exchangeID("b", 1, 0)); got != nfsv4.NFS4ERR_SERVERFAULT {
		t.Errorf("without random bytes: %v", nfsv4.Nfsstat4_name[got])
	}
}

// Two doors are two servers to a client: were they one, Linux would take what is mounted through the second for mounted through
// the first, and ask there.
func TestEachDoorIsAServerOfItsOwn(t *testing.T) {
	f := newFixture(t, session.Limits{})
	inside, outside := from(1, 1), from(1, 1)
	outside.Door = "outside"
	first := exchanged(t, f.send(inside, exchangeID("owner", 1, 0)))
	session1 := created(t, f.send(inside, createSession(first.EirClientid, first.EirSequenceid))).CsrSessionid
	second := exchanged(t, f.send(outside, exchangeID("owner", 1, 0)))
	if bytes.Equal(first.EirServerOwner.SoMajorId, second.EirServerOwner.SoMajorId) || first.EirClientid == second.EirClientid {
		t.Errorf("one server: owners %q and %q, client IDs %x and %x",
			first.EirServerOwner.SoMajorId, second.EirServerOwner.SoMajorId, first.EirClientid, second.EirClientid)
	}
	if !bytes.Equal(first.EirServerScope, second.EirServerScope) {
		t.Errorf("scopes %q and %q: file handles are the same", first.EirServerScope, second.EirServerScope)
	}
	// A client that comes through the second as after a restart does not end the first.
	again := exchanged(t, f.send(outside, exchangeID("owner", 2, 0)))
	created(t, f.send(outside, createSession(again.EirClientid, again.EirSequenceid)))
	if got := f.send(inside, sequence(session1, 0, 1), putRoot).Status; got != nfsv4.NFS4_OK {
		t.Errorf("the session at the first door: %v", got)
	}
}
