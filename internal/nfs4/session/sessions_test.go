package session_test

import (
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/nfs4/session"
)

func bind(id sessionID, direction nfsv4.ChannelDirFromClient4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{
		BctsaSessid: id, BctsaDir: direction, BctsaUseConnInRdmaMode: true,
	}}
}

// RFC 8881 section 18.36.3: the channel attributes and flags.
func TestCreateSessionNegotiates(t *testing.T) {
	limits := session.Limits{Slots: 3, Operations: 5, RequestBytes: 9000, ResponseBytes: 8000, CachedResponseBytes: 1000}
	for name, test := range map[string]struct {
		change func(*nfsv4.CreateSession4args)
		status nfsv4.Nfsstat4
		fore   nfsv4.ChannelAttrs4
	}{
		"lowered to the limits": {
			change: func(*nfsv4.CreateSession4args) {},
			fore: nfsv4.ChannelAttrs4{
				CaMaxrequestsize: 9000, CaMaxresponsesize: 8000, CaMaxresponsesizeCached: 1000, CaMaxoperations: 5, CaMaxrequests: 3,
			},
		},
		"never raised, no RDMA, no padding": {
			change: func(a *nfsv4.CreateSession4args) {
				a.CsaForeChanAttrs = nfsv4.ChannelAttrs4{
					CaHeaderpadsize: 7, CaMaxrequestsize: 700, CaMaxresponsesize: 600, CaMaxresponsesizeCached: 800,
					CaMaxoperations: 2, CaMaxrequests: 1, CaRdmaIrd: []uint32{1},
				}
			},
			fore: nfsv4.ChannelAttrs4{CaMaxrequestsize: 700, CaMaxresponsesize: 600, CaMaxresponsesizeCached: 600, CaMaxoperations: 2, CaMaxrequests: 1},
		},
		"requests too small":  {change: func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxrequestsize = 20 }, status: nfsv4.NFS4ERR_TOOSMALL},
		"responses too small": {change: func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxresponsesize = 0 }, status: nfsv4.NFS4ERR_TOOSMALL},
		"no slot":             {change: func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxrequests = 0 }, status: nfsv4.NFS4ERR_INVAL},
		"no operation":        {change: func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxoperations = 0 }, status: nfsv4.NFS4ERR_INVAL},
		"an undefined flag":   {change: func(a *nfsv4.CreateSession4args) { a.CsaFlags = 8 }, status: nfsv4.NFS4ERR_INVAL},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, limits)
			id := exchanged(t, f.send(alice, exchangeID("owner", 1, 0)))
			res := f.send(alice, createSession(id.EirClientid, id.EirSequenceid, test.change))
			if res.Status != test.status {
				t.Fatalf("status %v, want %v", nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[test.status])
			}
			if test.status != nfsv4.NFS4_OK {
				return
			}
			made := created(t, res)
			if diff := cmp.Diff(test.fore, made.CsrForeChanAttrs); diff != "" {
				t.Errorf("fore channel (-want +got):\n%s", diff)
			}
			if made.CsrFlags != 0 || made.CsrSequence != id.EirSequenceid || made.CsrSessionid == (sessionID{}) {
				t.Errorf("flags %x, sequence %d, ID %x", made.CsrFlags, made.CsrSequence, made.CsrSessionid)
			}
		})
	}
}

// RFC 8881 section 18.36.4: sequence IDs and principals.
func TestCreateSessionSequence(t *testing.T) {
	f := newFixture(t, session.Limits{})
	id := exchanged(t, f.send(alice, exchangeID("owner", 1, 0))).EirClientid
	fails := func(name string, res *nfsv4.Compound4res, want nfsv4.Nfsstat4) {
		t.Helper()
		if res.Status != want {
			t.Errorf("%s: %v, want %v", name, nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[want])
		}
	}
	fails("an unknown client", f.send(alice, createSession(id+1, 1)), nfsv4.NFS4ERR_STALE_CLIENTID)
	fails("the sequence ID of before the first", f.send(alice, createSession(id, 0)), nfsv4.NFS4ERR_SEQ_MISORDERED)
	fails("a sequence ID too high", f.send(alice, createSession(id, 2)), nfsv4.NFS4ERR_SEQ_MISORDERED)
	fails("another principal confirms", f.send(bob, createSession(id, 1)), nfsv4.NFS4ERR_CLID_INUSE)
	first := created(t, f.send(alice, createSession(id, 1)))
	if diff := cmp.Diff(first, created(t, f.send(alice, createSession(id, 1)))); diff != "" {
		t.Errorf("a retry is not answered alike (-first +retry):\n%s", diff)
	}
	fails("a sequence ID skipped", f.send(alice, createSession(id, 3)), nfsv4.NFS4ERR_SEQ_MISORDERED)
	fails("another principal makes one of a confirmed client", f.send(bob, createSession(id, 2)), nfsv4.NFS4ERR_CLID_INUSE)
	fails("another principal asks for the reply of before", f.send(bob, createSession(id, 1)), nfsv4.NFS4ERR_CLID_INUSE)
	second := created(t, f.send(alice, createSession(id, 2)))
	if second.CsrSessionid == first.CsrSessionid {
		t.Error("two sessions have one ID")
	}
	fails("the retry of one before the last", f.send(alice, createSession(id, 1)), nfsv4.NFS4ERR_SEQ_MISORDERED)
	// An error takes the sequence ID as well, as the Linux client has it.
	small := func(a *nfsv4.CreateSession4args) { a.CsaForeChanAttrs.CaMaxrequestsize = 1 }
	fails("too small", f.send(alice, createSession(id, 3, small)), nfsv4.NFS4ERR_TOOSMALL)
	fails("too small, retried", f.send(alice, createSession(id, 3, small)), nfsv4.NFS4ERR_TOOSMALL)
	if got := exchanged(t, f.send(alice, exchangeID("owner", 1, 0))).EirSequenceid; got != 4 {
		t.Errorf("EXCHANGE_ID gives sequence ID %d", got)
	}
	created(t, f.send(alice, createSession(id, 4)))
	if got := f.Stats().Sessions; got != 3 {
		t.Errorf("%d sessions", got)
	}
}

// A client that there is no room for is put off: NFS4ERR_NOSPC would fail its mount, and its sequence ID stays as it is.
func TestLimitsOfSessions(t *testing.T) {
	f := newFixture(t, session.Limits{Sessions: 3, SessionsPerAddress: 3, SessionsPerClient: 2})
	id, first := f.client("a")
	for i, want := range []nfsv4.Nfsstat4{nfsv4.NFS4_OK, nfsv4.NFS4ERR_DELAY} {
		if got := f.status(createSession(id, uint32(i+2))); got != want {
			t.Errorf("session %d of one client: %v", i+2, nfsv4.Nfsstat4_name[got])
		}
	}
	f.client("b")
	third := exchanged(t, f.send(alice, exchangeID("c", 1, 0)))
	if got := f.Delayed(); got != (session.Delayed{Sessions: 1}) {
		t.Errorf("counted %+v", got)
	}
	if got := f.status(createSession(third.EirClientid, 1)); got != nfsv4.NFS4ERR_DELAY {
		t.Errorf("a fourth session: %v", nfsv4.Nfsstat4_name[got])
	}
	if got := f.status(destroySession(first)); got != nfsv4.NFS4_OK {
		t.Fatal(got)
	}
	created(t, f.send(alice, createSession(third.EirClientid, 1)))
}

// RFC 8881 section 18.37.
func TestDestroySession(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, a := f.client("a")
	_, b := f.client("b")
	_, c := f.client("c")
	for _, step := range []struct {
		name string
		ops  []nfsv4.NfsArgop4
		want nfsv4.Nfsstat4
	}{
		{"unknown", []nfsv4.NfsArgop4{destroySession(sessionID{1})}, nfsv4.NFS4ERR_BADSESSION},
		{"its own, not last", []nfsv4.NfsArgop4{sequence(a, 0, 1), destroySession(a), putRoot}, nfsv4.NFS4ERR_NOT_ONLY_OP},
		{"another's, not last", []nfsv4.NfsArgop4{sequence(a, 0, 2), destroySession(b), putRoot}, nfsv4.NFS4_OK},
		{"destroyed", []nfsv4.NfsArgop4{sequence(b, 0, 1)}, nfsv4.NFS4ERR_BADSESSION},
		{"its own, last", []nfsv4.NfsArgop4{sequence(a, 0, 3), putRoot, destroySession(a)}, nfsv4.NFS4_OK},
		{"destroyed by itself", []nfsv4.NfsArgop4{sequence(a, 0, 3), putRoot, destroySession(a)}, nfsv4.NFS4ERR_BADSESSION},
		{"alone", []nfsv4.NfsArgop4{destroySession(c)}, nfsv4.NFS4_OK},
		{"twice", []nfsv4.NfsArgop4{destroySession(c)}, nfsv4.NFS4ERR_BADSESSION},
	} {
		if got := f.status(step.ops...); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, nfsv4.Nfsstat4_name[got], nfsv4.Nfsstat4_name[step.want])
		}
	}
}

// RFC 8881 section 18.34.
func TestBindConnToSession(t *testing.T) {
	f := newFixture(t, session.Limits{})
	_, id := f.client("a")
	for name, test := range map[string]struct {
		ops  []nfsv4.NfsArgop4
		want nfsv4.Nfsstat4
	}{
		"fore":                     {[]nfsv4.NfsArgop4{bind(id, nfsv4.CDFC4_FORE)}, nfsv4.NFS4_OK},
		"fore or both":             {[]nfsv4.NfsArgop4{bind(id, nfsv4.CDFC4_FORE_OR_BOTH)}, nfsv4.NFS4_OK},
		"back":                     {[]nfsv4.NfsArgop4{bind(id, nfsv4.CDFC4_BACK)}, nfsv4.NFS4ERR_INVAL},
		"back or both":             {[]nfsv4.NfsArgop4{bind(id, nfsv4.CDFC4_BACK_OR_BOTH)}, nfsv4.NFS4ERR_INVAL},
		"unknown session":          {[]nfsv4.NfsArgop4{bind(sessionID{}, nfsv4.CDFC4_FORE)}, nfsv4.NFS4ERR_BADSESSION},
		"not alone":                {[]nfsv4.NfsArgop4{bind(id, nfsv4.CDFC4_FORE), putRoot}, nfsv4.NFS4ERR_NOT_ONLY_OP},
		"after SEQUENCE (18.34.3)": {[]nfsv4.NfsArgop4{sequence(id, 0, 1), bind(id, nfsv4.CDFC4_FORE)}, nfsv4.NFS4ERR_NOT_ONLY_OP},
	} {
		t.Run(name, func(t *testing.T) {
			res := f.send(alice, test.ops...)
			if res.Status != test.want {
				t.Fatalf("%v, want %v", nfsv4.Nfsstat4_name[res.Status], nfsv4.Nfsstat4_name[test.want])
			}
			if test.want == nfsv4.NFS4_OK {
				got := res.Resarray[0].(*nfsv4.NfsResop4_OP_BIND_CONN_TO_SESSION).OpbindConnToSession.(*nfsv4.BindConnToSession4res_NFS4_OK).BctsrResok4
				if got.BctsrDir != nfsv4.CDFS4_FORE || got.BctsrSessid != id || got.BctsrUseConnInRdmaMode {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}
