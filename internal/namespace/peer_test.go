package namespace

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// peer is a client that says what it likes: it may send without reading, and gives errors instead of ending the test.
type peer struct {
	net.Conn
	xid     uint32
	client  uint64
	session nfsv4.Sessionid4
	seq     [64]uint32
}

// connect opens a connection from one of the loopback addresses, each a client of its own.
func connect(ctx context.Context, server, from string) (*peer, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 30 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &peer{Conn: conn}, nil
}

// message is a compound as a record.
func (p *peer) message(ops ...nfsv4.NfsArgop4) []byte {
	p.xid++
	var parms, body bytes.Buffer
	_, _ = (&rpcv2.AuthsysParms{Machinename: "test", Uid: 1000, Gid: 1000}).WriteTo(&parms)
	msg := rpcv2.RpcMsg{Xid: p.xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: 100003, Vers: 4, Proc: 1, Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: parms.Bytes()},
	}}}
	_, _ = msg.WriteTo(&body)
	if _, err := (&nfsv4.Compound4args{Minorversion: 1, Argarray: ops}).WriteTo(&body); err != nil {
		panic(err)
	}
	return rpc.FinishRecord(append(rpc.NewRecord(body.Len()), body.Bytes()...))
}

// call sends a compound and reads the reply.
func (p *peer) call(ops ...nfsv4.NfsArgop4) (*nfsv4.Compound4res, error) {
	if _, err := p.Write(p.message(ops...)); err != nil {
		return nil, err
	}
	return p.reply()
}

// status is that of the next reply.
func (p *peer) status() (nfsv4.Nfsstat4, error) {
	res, err := p.reply()
	return statusOf(res), err
}

func (p *peer) reply() (*nfsv4.Compound4res, error) {
	reply, err := rpc.ReadRecord(p, 2<<20)
	if err != nil {
		return nil, err
	}
	r := bytes.NewReader(reply)
	var header rpcv2.RpcMsg
	if _, err := header.ReadFrom(r); err != nil {
		return nil, err
	}
	var res nfsv4.Compound4res
	if _, err := res.ReadFrom(r); err != nil {
		return nil, err
	}
	return &res, nil
}

// sequence is the SEQUENCE of the next request of a slot.
func (p *peer) sequence(slot uint32) nfsv4.NfsArgop4 {
	p.seq[slot]++
	return &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: p.session, SaSlotid: slot, SaHighestSlotid: slot, SaSequenceid: p.seq[slot],
	}}
}

func exchange(owner string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner:  nfsv4.ClientOwner4{CoVerifier: [8]byte{1}, CoOwnerid: []byte(owner)},
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}}
}

// login makes a client with a session, or gives the status that keeps it from it.
func (p *peer) login(owner string) (nfsv4.Nfsstat4, error) {
	res, err := p.call(exchange(owner))
	if err != nil || res.Status != nfsv4.NFS4_OK {
		return statusOf(res), err
	}
	id := res.Resarray[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	channel := nfsv4.ChannelAttrs4{CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 4096, CaMaxoperations: 64, CaMaxrequests: 64}
	res, err = p.call(&nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
	}})
	if err != nil || res.Status != nfsv4.NFS4_OK {
		return statusOf(res), err
	}
	p.client = id.EirClientid
	p.session = res.Resarray[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	return nfsv4.NFS4_OK, nil
}

// logout leaves nothing behind.
func (p *peer) logout() {
	if p.Conn == nil {
		return
	}
	_ = p.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = p.call(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: p.session}})
	_, _ = p.call(&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: p.client}})
	_ = p.Close()
}

func statusOf(res *nfsv4.Compound4res) nfsv4.Nfsstat4 {
	if res == nil {
		return nfsv4.NFS4ERR_IO
	}
	return res.Status
}

var getattr = &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{0x0010011a, 0x00b0a23a}}}

// readdir asks for as much of a listing as there is.
func readdir() nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
		Dircount: 1 << 20, Maxcount: 1 << 20, AttrRequest: []uint32{0x0018091a, 0x00b0a23a},
	}}
}

// wellBehaved is the address of the clients that the attacks are to leave in peace.
const wellBehaved = "127.0.0.1"

// stalls is the longest that a well-behaved client waited for anything.
type stalls struct {
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	longest time.Duration
	failed  []string
}

// watchWellBehaved runs two clients: one with a session of its own that walks about, and one that comes, lists, and goes.
func watchWellBehaved(s *target) *stalls {
	ctx, cancel := context.WithCancel(s.Context())
	w := &stalls{cancel: cancel}
	w.workers.Go(func() { w.resident(ctx, s.address) })
	w.workers.Go(func() { w.newcomer(ctx, s.address) })
	return w
}

// timed does something until it is done; what the server wants repeated is repeated, as a kernel would.
func (w *stalls) timed(what string, do func() (nfsv4.Nfsstat4, error)) bool {
	began := time.Now()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.longest = max(w.longest, time.Since(began))
	}()
	for {
		status, err := do()
		switch {
		case err == nil && status == nfsv4.NFS4_OK:
			return true
		case err == nil && status == nfsv4.NFS4ERR_DELAY && time.Since(began) < time.Minute:
			time.Sleep(50 * time.Millisecond)
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = append(w.failed, fmt.Sprintf("%s: %s, %v", what, nfs.StatusName(status), err))
		return false
	}
}

func (w *stalls) resident(ctx context.Context, server string) {
	p := &peer{}
	defer func() { p.logout() }()
	enter := func() (status nfsv4.Nfsstat4, err error) {
		if p, err = connect(ctx, server, wellBehaved); err != nil {
			p = &peer{}
			return nfsv4.NFS4ERR_IO, err
		}
		return p.login("resident")
	}
	if !w.timed("the resident's mount", enter) {
		return
	}
	for ctx.Err() == nil {
		if !w.timed("the resident's walk", func() (nfsv4.Nfsstat4, error) {
			res, err := p.call(append([]nfsv4.NfsArgop4{p.sequence(0)}, append(walk("/data"), getattr)...)...)
			return statusOf(res), err
		}) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *stalls) newcomer(ctx context.Context, server string) {
	for i := 0; ctx.Err() == nil; i++ {
		var p *peer
		ok := w.timed("a newcomer's mount", func() (status nfsv4.Nfsstat4, err error) {
			if p, err = connect(ctx, server, wellBehaved); err != nil {
				return nfsv4.NFS4ERR_IO, err
			}
			status, err = p.login(fmt.Sprint("newcomer ", i))
			if status != nfsv4.NFS4_OK {
				_ = p.Close()
			}
			return status, err
		})
		if !ok {
			if ctx.Err() != nil { // It was cut short by the end.
				w.forgive()
			}
			return
		}
		w.timed("a newcomer's listing", func() (nfsv4.Nfsstat4, error) {
			res, err := p.call(append([]nfsv4.NfsArgop4{p.sequence(0)}, append(walk("/data"), readdir())...)...)
			return statusOf(res), err
		})
		p.logout()
		time.Sleep(50 * time.Millisecond)
	}
}

// forgive takes the last failure back.
func (w *stalls) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = w.failed[:len(w.failed)-1]
}

// end stops the clients and gives the longest stall, and what failed.
func (w *stalls) end() (time.Duration, string) {
	w.cancel()
	w.workers.Wait()
	return w.longest, strings.Join(w.failed, "; ")
}
