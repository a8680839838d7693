package session_test

import (
	"fmt"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

const update = nfsv4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A

// RFC 8881 section 18.35.4: the numbered cases.
func TestExchangeIDCases(t *testing.T) {
	type want struct {
		status            nfsv4.Nfsstat4
		sameID, confirmed bool
		// survives: the session of before still works afterwards.
		survives bool
	}
	const ok = nfsv4.NFS4_OK
	for name, test := range map[string]struct {
		// before is what is there: "", "unconfirmed", "confirmed", "sessionless".
		before   string
		caller   rpc.Caller
		verifier byte
		flags    uint32
		want     want
	}{
		"1: a new owner":                                {"", alice, 1, 0, want{status: ok}},
		"2: a confirmed client asks again":              {"confirmed", alice, 1, 0, want{ok, true, true, true}},
		"3: another principal, client with state":       {"confirmed", bob, 1, 0, want{status: nfsv4.NFS4ERR_CLID_INUSE, survives: true}},
		"3: another principal, client without state":    {"sessionless", bob, 1, 0, want{status: ok}},
		"4: an unconfirmed client is replaced":          {"unconfirmed", alice, 1, 0, want{status: ok}},
		"4: an unconfirmed client of another principal": {"unconfirmed", bob, 1, 0, want{status: ok}},
		"5: a client that has restarted":                {"confirmed", alice, 2, 0, want{status: ok, survives: true}},
		"6: update":                                     {"confirmed", alice, 1, update, want{ok, true, true, true}},
		"7: update of nothing":                          {"", alice, 1, update, want{status: nfsv4.NFS4ERR_NOENT}},
		"7: update of an unconfirmed client":            {"unconfirmed", alice, 1, update, want{status: nfsv4.NFS4ERR_NOENT}},
		"8: update with another verifier":               {"confirmed", alice, 2, update, want{status: nfsv4.NFS4ERR_NOT_SAME, survives: true}},
		"9: update of another principal":                {"confirmed", bob, 1, update, want{status: nfsv4.NFS4ERR_PERM, survives: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, session.Limits{})
			var id uint64
			var old sessionID
			switch test.before {
			case "unconfirmed":
				id = exchanged(t, f.send(alice, exchangeID("owner", 1, 0))).EirClientid
			case "confirmed":
				id, old = f.client("owner")
			case "sessionless":
				id, old = f.client("owner")
				if got := f.status(destroySession(old)); got != ok {
					t.Fatal(got)
				}
			}
			res := f.send(test.caller, exchangeID("owner", test.verifier, test.flags))
			if res.Status != test.want.status {
				t.Fatalf("status %v, want %v", nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[test.want.status])
			}
			if res.Status == ok {
				got := exchanged(t, res)
				if (got.EirClientid == id) != test.want.sameID {
					t.Errorf("client ID %x, before %x", got.EirClientid, id)
				}
				wantFlags := uint32(nfsv4.EXCHGID4_FLAG_USE_NON_PNFS | nfsv4.EXCHGID4_FLAG_SUPP_MOVED_REFER)
				if test.want.confirmed {
					wantFlags |= nfsv4.EXCHGID4_FLAG_CONFIRMED_R
				}
				if got.EirFlags != wantFlags {
					t.Errorf("flags %x, want %x", got.EirFlags, wantFlags)
				}
				if string(got.EirServerOwner.SoMajorId) != "owner" || string(got.EirServerScope) != "scope" {
					t.Errorf("owner %q, scope %q", got.EirServerOwner.SoMajorId, got.EirServerScope)
				}
				wantSequence := uint32(1)
				if test.want.confirmed {
					wantSequence = 2
				}
				if got.EirSequenceid != wantSequence {
					t.Errorf("eir_sequenceid %d, want %d", got.EirSequenceid, wantSequence)
				}
			}
			if survives := f.status(sequence(old, 0, 1)) == ok; survives != test.want.survives {
				t.Errorf("the session of before works: %v", survives)
			}
		})
	}
}

// RFC 8881 section 18.35.3.
func TestExchangeIDRefusesWhatItDoesNotKnow(t *testing.T) {
	protect := func(how nfsv4.StateProtect4A) nfsv4.NfsArgop4 {
		op := exchangeID("owner", 1, 0).(*nfsv4.NfsArgop4_OP_EXCHANGE_ID)
		op.OpexchangeId.EiaStateProtect = how
		return op
	}
	for name, test := range map[string]struct {
		op   nfsv4.NfsArgop4
		want nfsv4.Nfsstat4
	}{
		"an undefined flag":                   {exchangeID("owner", 1, 0x8), nfsv4.NFS4ERR_INVAL},
		"CONFIRMED_R, which only servers set": {exchangeID("owner", 1, nfsv4.EXCHGID4_FLAG_CONFIRMED_R), nfsv4.NFS4ERR_INVAL},
		"all flags of clients":                {exchangeID("owner", 1, 0x103|nfsv4.EXCHGID4_FLAG_MASK_PNFS), nfsv4.NFS4_OK},
		"SUPP_FENCE_OPS, which 4.1 has not":   {exchangeID("owner", 1, nfsv4.EXCHGID4_FLAG_SUPP_FENCE_OPS), nfsv4.NFS4ERR_INVAL},
		"SP4_MACH_CRED without RPCSEC_GSS":    {protect(&nfsv4.StateProtect4A_SP4_MACH_CRED{}), nfsv4.NFS4ERR_INVAL},
		"SP4_SSV":                             {protect(&nfsv4.StateProtect4A_SP4_SSV{}), nfsv4.NFS4ERR_HASH_ALG_UNSUPP},
		"an owner of 1024 bytes":              {exchangeID(fmt.Sprintf("%01024d", 0), 1, 0), nfsv4.NFS4_OK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newFixture(t, session.Limits{}).status(test.op); got != test.want {
				t.Errorf("status %v, want %v", nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[test.want])
			}
		})
	}
}

// RFC 8881 section 18.35.4 case 5 and 18.36.4: the old incarnation goes with the first
// session of the new one, not earlier.
func TestARestartedClientReplacesItself(t *testing.T) {
	f := newFixture(t, session.Limits{})
	oldID, old := f.client("owner")
	restarted := exchanged(t, f.send(alice, exchangeID("owner", 2, 0)))
	if got := f.status(sequence(old, 0, 1)); got != nfsv4.NFS4_OK {
		t.Fatalf("before CREATE_SESSION: %v", got)
	}
	made := created(t, f.send(alice, createSession(restarted.EirClientid, restarted.EirSequenceid)))
	for name, test := range map[string]struct {
		got, want nfsv4.Nfsstat4
	}{
		"the old session":   {f.status(sequence(old, 0, 2)), nfsv4.NFS4ERR_BADSESSION},
		"the old client ID": {f.status(createSession(oldID, 2)), nfsv4.NFS4ERR_STALE_CLIENTID},
		"the new session":   {f.status(sequence(made.CsrSessionid, 0, 1)), nfsv4.NFS4_OK},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", name, nfsv4.Nfsstat4_name[test.got], nfsv4.Nfsstat4_name[test.want])
		}
	}
	if got := f.Stats(); got != (session.Stats{Clients: 1, ConfirmedClients: 1, Sessions: 1, CachedBytes: got.CachedBytes}) {
		t.Errorf("%+v", got)
	}
}

// RFC 8881 section 18.50.
func TestDestroyClientID(t *testing.T) {
	f := newFixture(t, session.Limits{})
	id, own := f.client("owner")
	otherID, other := f.client("other")
	for _, step := range []struct {
		name string
		got  func() nfsv4.Nfsstat4
		want nfsv4.Nfsstat4
	}{
		{"unknown", func() nfsv4.Nfsstat4 { return f.status(destroyClient(42)) }, nfsv4.NFS4ERR_STALE_CLIENTID},
		{"with a session", func() nfsv4.Nfsstat4 { return f.status(destroyClient(id)) }, nfsv4.NFS4ERR_CLIENTID_BUSY},
		{"its own, in a session", func() nfsv4.Nfsstat4 { return f.status(sequence(own, 0, 1), destroyClient(id)) }, nfsv4.NFS4ERR_CLIENTID_BUSY},
		{"session gone", func() nfsv4.Nfsstat4 { return f.status(destroySession(own)) }, nfsv4.NFS4_OK},
		{"without a session, in another's", func() nfsv4.Nfsstat4 { return f.status(sequence(other, 0, 1), destroyClient(id)) }, nfsv4.NFS4_OK},
		{"again", func() nfsv4.Nfsstat4 { return f.status(destroyClient(id)) }, nfsv4.NFS4ERR_STALE_CLIENTID},
		{"the other's session", func() nfsv4.Nfsstat4 { return f.status(destroySession(other)) }, nfsv4.NFS4_OK},
		{"the other, alone", func() nfsv4.Nfsstat4 { return f.status(destroyClient(otherID)) }, nfsv4.NFS4_OK},
	} {
		if got := step.got(); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[step.want])
		}
	}
	if got := f.Stats(); got != (session.Stats{}) {
		t.Errorf("%+v", got)
	}
}

// RFC 7862 section 14.1: SUPP_FENCE_OPS came with 4.2.
func TestFenceOpsInMinorVersion2(t *testing.T) {
	res, _ := newFixture(t, session.Limits{}).raw(alice, encode(2, exchangeID("owner", 1, nfsv4.EXCHGID4_FLAG_SUPP_FENCE_OPS)))
	if res.Status != nfsv4.NFS4_OK {
		t.Error(nfsv4.Nfsstat4_name[res.Status])
	}
}

// RFC 8881 section 18.51.
func TestReclaimComplete(t *testing.T) {
	all, one := &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}
	one.OpreclaimComplete.RcaOneFs = true
	f := newFixture(t, session.Limits{})
	f.handler.noHandle = true
	_, id := f.client("owner")
	for i, step := range []struct {
		name string
		ops  []nfsv4.NfsArgop4
		want nfsv4.Nfsstat4
	}{
		{"of one file system without a file handle", []nfsv4.NfsArgop4{one}, nfsv4.NFS4ERR_NOFILEHANDLE},
		{"of one file system", []nfsv4.NfsArgop4{putRoot, one}, nfsv4.NFS4_OK},
		{"of all", []nfsv4.NfsArgop4{all}, nfsv4.NFS4_OK},
		{"of all, again", []nfsv4.NfsArgop4{all}, nfsv4.NFS4ERR_COMPLETE_ALREADY},
		{"of all, once more", []nfsv4.NfsArgop4{putRoot, all}, nfsv4.NFS4ERR_COMPLETE_ALREADY},
		{"of one file system, afterwards", []nfsv4.NfsArgop4{putRoot, one}, nfsv4.NFS4_OK},
	} {
		f.handler.hasHandle = false
		if got := f.status(append([]nfsv4.NfsArgop4{sequence(id, 0, uint32(i+1))}, step.ops...)...); got != step.want {
			t.Errorf("%s: %v", step.name, nfsv4.Nfsstat4_name[got])
		}
	}
}

// A request that takes longer than the lease keeps its client.
func TestARequestInFlightKeepsItsClient(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("owner")
	f.handler.entered, f.handler.leave = make(chan struct{}), make(chan struct{})
	done := make(chan *nfsv4.Compound4res, 1)
	go func() { done <- f.send(alice, sequence(id, 0, 1), create) }()
	<-f.handler.entered
	f.clock.advance(10 * lease)
	f.Expire()
	f.handler.leave <- struct{}{}
	if res := <-done; res.Status != nfsv4.NFS4_OK {
		t.Fatal(res.Status)
	}
	if got := f.status(sequence(id, 0, 2)); got != nfsv4.NFS4_OK {
		t.Errorf("afterwards: %v", nfsv4.Nfsstat4_name[got])
	}
}

// Two servers, or one before and after a restart, don't give out the same IDs.
func TestAnotherServerKnowsNothingOfTheIDs(t *testing.T) {
	one, two := newFixture(t, session.Limits{}), newFixture(t, session.Limits{})
	id, made := one.client("owner")
	if other, _ := two.client("owner"); id == other {
		t.Errorf("both gave client ID %x", id)
	}
	for name, test := range map[string]struct {
		got, want nfsv4.Nfsstat4
	}{
		"SEQUENCE":             {two.status(sequence(made, 0, 1)), nfsv4.NFS4ERR_BADSESSION},
		"CREATE_SESSION":       {two.status(createSession(id, 2)), nfsv4.NFS4ERR_STALE_CLIENTID},
		"DESTROY_SESSION":      {two.status(destroySession(made)), nfsv4.NFS4ERR_BADSESSION},
		"DESTROY_CLIENTID":     {two.status(destroyClient(id)), nfsv4.NFS4ERR_STALE_CLIENTID},
		"BIND_CONN_TO_SESSION": {two.status(bind(made, nfsv4.CDFC4_FORE)), nfsv4.NFS4ERR_BADSESSION},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", name, nfsv4.Nfsstat4_name[test.got], nfsv4.Nfsstat4_name[test.want])
		}
	}
}

func TestLimitOfClients(t *testing.T) {
	f := newFixture(t, session.Limits{Clients: 3, ClientsPerAddress: 3})
	f.client("a")
	f.client("b")
	for i := range 10 {
		// Unconfirmed client IDs push each other out.
		exchanged(t, f.send(alice, exchangeID(fmt.Sprint("probe", i), 1, 0)))
	}
	f.client("c")
	if got := f.status(exchangeID("d", 1, 0)); got != nfsv4.NFS4ERR_DELAY {
		t.Errorf("a fourth client: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.Stats(); got != (session.Stats{Clients: 3, ConfirmedClients: 3, Sessions: 3}) {
		t.Errorf("%+v", got)
	}
	if got := f.Delayed(); got != (session.Delayed{Clients: 1}) {
		t.Errorf("%+v", got)
	}
	f.clock.advance(2*lease + 1)
	exchanged(t, f.send(alice, exchangeID("d", 1, 0)))
}
