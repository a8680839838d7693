package session_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/session"
)

// counting is a source of bytes that are the same in every run, so that a
// fuzzer's input can name a session.
type counting struct{ next byte }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		c.next++
		p[i] = c.next
	}
	return len(p), nil
}

// fuzzed is a server with one client and one session, the same every time.
func fuzzed(t testing.TB) (*session.Server, uint64, sessionID) {
	f := &fixture{handler: &handler{}}
	s, err := session.New(session.Config{Handler: f.handler, Owner: "owner", Scope: "scope", Random: &counting{}})
	if err != nil {
		t.Fatal(err)
	}
	decode := func(args []byte) nfsv4.NfsResop4 {
		encoded, _ := s.Compound(context.Background(), alice, args)
		var res nfsv4.Compound4res
		if _, err := res.ReadFrom(bytes.NewReader(encoded)); err != nil || res.Status != nfsv4.NFS4_OK {
			t.Fatalf("%v, %v", res.Status, err)
		}
		return res.Resarray[0]
	}
	id := decode(encode(1, exchangeID("owner", 1, 0))).(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	made := decode(encode(1, createSession(id.EirClientid, 1))).(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4
	return s, id.EirClientid, made.CsrSessionid
}

// FuzzCompound: whatever comes, there is a well-formed reply with the status of its last result, or
// GARBAGE_ARGS and nothing; what a slot has answered it answers again; and no slot stays in flight.
func FuzzCompound(f *testing.F) {
	_, client, id := fuzzed(f)
	for _, seed := range [][]byte{
		encode(1, exchangeID("owner", 2, 0)),
		encode(1, createSession(client, 2)),
		encode(1, destroySession(id)),
		encode(1, destroyClient(client)),
		encode(1, bind(id, nfsv4.CDFC4_FORE)),
		encode(1, sequence(id, 0, 1)),
		encode(1, uncached(sequence(id, 1, 1)), putRoot, readLink),
		encode(1, sequence(id, 0, 1), putRoot, create),
		encode(1, sequence(id, 0, 1), putRoot, lookup(5), &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1, 2}}}),
		encode(1, sequence(id, 0, 1), &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}, destroySession(id)),
		encode(2, sequence(id, 0, 1), putRoot, &nfsv4.NfsArgop4_OP_SEEK{}),
		encode(1, sequence(id, 0, 1), &nfsv4.NfsArgop4_OP_TEST_STATEID{OptestStateid: nfsv4.TestStateid4args{TsStateids: make([]nfsv4.Stateid4, 2)}}),
		encode(0, putRoot),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		s, _, id := fuzzed(t)
		check := func(args []byte) (nfsv4.Compound4res, []byte) {
			encoded, stat := s.Compound(context.Background(), alice, args)
			var res nfsv4.Compound4res
			if stat != rpcv2.SUCCESS {
				if stat != rpcv2.GARBAGE_ARGS || encoded != nil {
					t.Fatalf("%v with %d bytes", stat, len(encoded))
				}
				return res, nil
			}
			reader := bytes.NewReader(encoded)
			if _, err := res.ReadFrom(reader); err != nil || reader.Len() > 0 {
				t.Fatalf("malformed reply %x: %v", encoded, err)
			}
			if n := len(res.Resarray); n > 0 && session.StatusOf(res.Resarray[n-1]) != res.Status {
				t.Fatalf("status %v, the last result %v", res.Status, session.StatusOf(res.Resarray[n-1]))
			}
			for _, before := range res.Resarray[:max(0, len(res.Resarray)-1)] {
				if session.StatusOf(before) != nfsv4.NFS4_OK {
					t.Fatal("a failure in the middle")
				}
			}
			return res, encoded
		}
		first, encoded := check(args)
		granted := len(first.Resarray) > 0 && first.Resarray[0].GetResop() == nfsv4.OP_SEQUENCE && session.StatusOf(first.Resarray[0]) == nfsv4.NFS4_OK
		_, again := check(args)
		if granted && s.Stats().Sessions == 1 && len(encoded) < 2000 && !bytes.Equal(encoded, again) {
			t.Fatalf("first %x, then %x", encoded, again)
		}
		if s.Stats().Sessions == 1 && s.InFlight(id) != 0 {
			t.Fatal("a slot stays in flight")
		}
	})
}
