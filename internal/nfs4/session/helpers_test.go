package session_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// clock is the tests' time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// handler is a file server that counts CREATEs and answers a GETFH with a large handle
// and a READLINK with a larger text.
type handler struct {
	mu      sync.Mutex
	creates int
	// entered and leave, if set, hold each CREATE.
	entered, leave chan struct{}
	// noHandle makes GETFH fail before a PUTROOTFH, instead of panicking always.
	noHandle, hasHandle bool
}

func (h *handler) Begin(context.Context, rpc.Caller, uint32) session.Compound { return h }

func (h *handler) Do(_ context.Context, op nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	switch op.(type) {
	case *nfsv4.NfsArgop4_OP_CREATE:
		if h.entered != nil {
			h.entered <- struct{}{}
			<-h.leave
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.creates++
		return &nfsv4.NfsResop4_OP_CREATE{Opcreate: &nfsv4.Create4res_NFS4_OK{
			Resok4: nfsv4.Create4resok{Cinfo: nfsv4.ChangeInfo4{After: uint64(h.creates)}},
		}}
	case *nfsv4.NfsArgop4_OP_READLINK:
		return &nfsv4.NfsResop4_OP_READLINK{Opreadlink: &nfsv4.Readlink4res_NFS4_OK{
			Resok4: nfsv4.Readlink4resok{Link: bytes.Repeat([]byte{'x'}, 5000)},
		}}
	case *nfsv4.NfsArgop4_OP_GETFH:
		if h.noHandle && !h.hasHandle {
			return session.Fail(op, nfsv4.NFS4ERR_NOFILEHANDLE)
		}
		if h.noHandle {
			return session.Fail(op, nfsv4.NFS4_OK)
		}
		panic("a mistake in the handler")
	case *nfsv4.NfsArgop4_OP_SAVEFH:
		return nil
	case *nfsv4.NfsArgop4_OP_PUTROOTFH:
		if h.noHandle {
			h.hasHandle = true
		}
		return session.Fail(op, nfsv4.NFS4_OK)
	}
	return session.Fail(op, nfsv4.NFS4ERR_NOTSUPP)
}

// fixture is a server with its handler and clock.
type fixture struct {
	*testing.T
	*session.Server
	handler *handler
	clock   *clock
}

const lease = 10 * time.Second

func newFixture(t *testing.T, limits session.Limits) *fixture {
	t.Helper()
	f := &fixture{T: t, handler: &handler{}, clock: &clock{now: time.Unix(1_000_000, 0)}}
	s, err := session.New(session.Config{
		Handler: f.handler, Owner: "owner", Scope: "scope", Lease: lease, Limits: limits, Now: f.clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = s
	return f
}

var alice, bob = rpc.Caller{UID: 1}, rpc.Caller{UID: 2}

// encode makes COMPOUND4args.
func encode(minor uint32, ops ...nfsv4.NfsArgop4) []byte {
	var args bytes.Buffer
	if _, err := (&nfsv4.Compound4args{Tag: "täg", Minorversion: minor, Argarray: ops}).WriteTo(&args); err != nil {
		panic(err)
	}
	return args.Bytes()
}

// raw sends encoded arguments and decodes the reply, which must be well-formed.
func (f *fixture) raw(caller rpc.Caller, args []byte) (*nfsv4.Compound4res, []byte) {
	f.Helper()
	encoded, stat := f.Compound(context.Background(), caller, args)
	if stat != rpcv2.SUCCESS {
		f.Fatalf("accept_stat %v", stat)
	}
	var res nfsv4.Compound4res
	reader := bytes.NewReader(encoded)
	if _, err := res.ReadFrom(reader); err != nil || reader.Len() > 0 {
		f.Fatalf("malformed reply (%d bytes left): %v", reader.Len(), err)
	}
	if n := len(res.Resarray); n > 0 && session.StatusOf(res.Resarray[n-1]) != res.Status {
		f.Fatalf("status %v, but the last result has %v", res.Status, session.StatusOf(res.Resarray[n-1]))
	}
	return &res, encoded
}

// send is raw for operations of minor version 1.
func (f *fixture) send(caller rpc.Caller, ops ...nfsv4.NfsArgop4) *nfsv4.Compound4res {
	f.Helper()
	res, _ := f.raw(caller, encode(1, ops...))
	return res
}

// status is the status of a compound.
func (f *fixture) status(ops ...nfsv4.NfsArgop4) nfsv4.Nfsstat4 {
	f.Helper()
	return f.send(alice, ops...).Status
}

// statuses are those of all results.
func statuses(res *nfsv4.Compound4res) (list []nfsv4.Nfsstat4) {
	for _, result := range res.Resarray {
		list = append(list, session.StatusOf(result))
	}
	return list
}

func exchangeID(owner string, verifier byte, flags uint32) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner: nfsv4.ClientOwner4{CoVerifier: [8]byte{verifier}, CoOwnerid: []byte(owner)},
		EiaFlags:       flags, EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}}
}

func exchanged(t *testing.T, res *nfsv4.Compound4res) nfsv4.ExchangeId4resok {
	t.Helper()
	if res.Status != nfsv4.NFS4_OK {
		t.Fatalf("EXCHANGE_ID: %v", nfsv4.Nfsstat4_name[res.Status])
	}
	return res.Resarray[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
}

var channel = nfsv4.ChannelAttrs4{
	CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 3000, CaMaxoperations: 8, CaMaxrequests: 4,
}

func createSession(client uint64, sequence uint32, changes ...func(*nfsv4.CreateSession4args)) nfsv4.NfsArgop4 {
	args := nfsv4.CreateSession4args{
		CsaClientid: client, CsaSequence: sequence, CsaFlags: nfsv4.CREATE_SESSION4_FLAG_PERSIST | nfsv4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN,
		CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
	}
	for _, change := range changes {
		change(&args)
	}
	return &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: args}
}

func created(t *testing.T, res *nfsv4.Compound4res) nfsv4.CreateSession4resok {
	t.Helper()
	if res.Status != nfsv4.NFS4_OK {
		t.Fatalf("CREATE_SESSION: %v", nfsv4.Nfsstat4_name[res.Status])
	}
	return res.Resarray[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4
}

type sessionID = [16]byte

// client makes a confirmed client with one session.
func (f *fixture) client(owner string, changes ...func(*nfsv4.CreateSession4args)) (uint64, sessionID) {
	f.Helper()
	id := exchanged(f.T, f.send(alice, exchangeID(owner, 1, 0)))
	made := created(f.T, f.send(alice, createSession(id.EirClientid, id.EirSequenceid, changes...)))
	return id.EirClientid, made.CsrSessionid
}

func sequence(id sessionID, slot, number uint32) *nfsv4.NfsArgop4_OP_SEQUENCE {
	return &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: id, SaSlotid: slot, SaSequenceid: number, SaHighestSlotid: slot, SaCachethis: true,
	}}
}

func uncached(op *nfsv4.NfsArgop4_OP_SEQUENCE) *nfsv4.NfsArgop4_OP_SEQUENCE {
	op.Opsequence.SaCachethis = false
	return op
}

var (
	create   = &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: "d"}}
	putRoot  = &nfsv4.NfsArgop4_OP_PUTROOTFH{}
	readLink = &nfsv4.NfsArgop4_OP_READLINK{}
)

func destroySession(id sessionID) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: id}}
}

func destroyClient(id uint64) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: id}}
}
