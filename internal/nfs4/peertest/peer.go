package peertest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

const (
	// slots is how many a session asks for, as Linux does.
	slots = 64
	// testTimeout bounds one call or reply, and a connection that makes neither.
	testTimeout = time.Minute
	// largest is more than any reply has.
	largest = 2 << 20
)

// Peer is a connection, with the session that is used on it.
type Peer struct {
	net.Conn
	// AsRoot makes calls as root's; else they are of user 1000.
	AsRoot bool
	// Verifier is of the client's boot; another one makes it a client that has restarted.
	Verifier byte

	xid     uint32
	client  uint64
	session nfsv4.Sessionid4
	used    [slots]uint32
}

// Connect opens a connection from a local address.
func Connect(ctx context.Context, server, from string) (*Peer, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: testTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, fmt.Errorf("connect from %s: %w", from, err)
	}
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return nil, fmt.Errorf("set the deadline of a connection: %w", err)
	}
	return &Peer{Conn: conn}, nil
}

// Message is a compound as a record.
func (p *Peer) Message(ops ...nfsv4.NfsArgop4) []byte {
	p.xid++
	var parms, body bytes.Buffer
	// The errors of a bytes.Buffer are always nil; what is left are arguments that can't be encoded.
	id := uint32(1000)
	if p.AsRoot {
		id = 0
	}
	_, _ = (&rpcv2.AuthsysParms{Machinename: "test", Uid: id, Gid: id}).WriteTo(&parms)
	msg := rpcv2.RpcMsg{Xid: p.xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: 100003, Vers: 4, Proc: 1, Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: parms.Bytes()},
	}}}
	_, _ = msg.WriteTo(&body)
	if _, err := (&nfsv4.Compound4args{Minorversion: 1, Argarray: ops}).WriteTo(&body); err != nil {
		panic(err)
	}
	return rpc.FinishRecord(append(rpc.NewRecord(body.Len()), body.Bytes()...))
}

// Call sends a compound and reads the reply.
func (p *Peer) Call(ops ...nfsv4.NfsArgop4) (*nfsv4.Compound4res, error) {
	// Not a limit for the connection's life: on a busy machine a test lasts longer than any of its calls may.
	if err := p.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return nil, fmt.Errorf("set the deadline of a call: %w", err)
	}
	if _, err := p.Write(p.Message(ops...)); err != nil {
		return nil, fmt.Errorf("send a compound: %w", err)
	}
	return p.Reply()
}

// Reply reads the next reply.
func (p *Peer) Reply() (*nfsv4.Compound4res, error) {
	if err := p.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return nil, fmt.Errorf("set the deadline of a reply: %w", err)
	}
	reply, err := rpc.ReadRecord(p, largest)
	if err != nil {
		return nil, fmt.Errorf("read a reply: %w", err)
	}
	r := bytes.NewReader(reply)
	var header rpcv2.RpcMsg
	if _, err := header.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("read the header of a reply: %w", err)
	}
	var res nfsv4.Compound4res
	if _, err := res.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("read the results of a compound: %w", err)
	}
	return &res, nil
}

// Status is that of a compound; NFS4ERR_IO if there is none.
func Status(res *nfsv4.Compound4res) nfsv4.Nfsstat4 {
	if res == nil {
		return nfsv4.NFS4ERR_IO
	}
	return res.Status
}

// Sequence is the SEQUENCE of the next request of a slot.
func (p *Peer) Sequence(slot uint32) nfsv4.NfsArgop4 {
	p.used[slot]++
	return &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: p.session, SaSlotid: slot, SaHighestSlotid: slot, SaSequenceid: p.used[slot],
	}}
}

// ExchangeID asks for a client ID.
func ExchangeID(owner string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner:  nfsv4.ClientOwner4{CoVerifier: [8]byte{1}, CoOwnerid: []byte(owner)},
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}}
}

// Login makes a client with a session, or gives the status that keeps it from it.
func (p *Peer) Login(owner string) (nfsv4.Nfsstat4, error) {
	exchange := ExchangeID(owner)
	exchange.(*nfsv4.NfsArgop4_OP_EXCHANGE_ID).OpexchangeId.EiaClientowner.CoVerifier[0] += p.Verifier
	res, err := p.Call(exchange)
	if err != nil || res.Status != nfsv4.NFS4_OK {
		return Status(res), err
	}
	id := res.Resarray[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	channel := nfsv4.ChannelAttrs4{
		CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 4096, CaMaxoperations: 64, CaMaxrequests: slots,
	}
	res, err = p.Call(&nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
	}})
	if err != nil || res.Status != nfsv4.NFS4_OK {
		return Status(res), err
	}
	p.client = id.EirClientid
	p.session = res.Resarray[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	return nfsv4.NFS4_OK, nil
}

// Join uses another connection's session on this one, on a slot of its own.
func (p *Peer) Join(other *Peer, slot uint32) (nfsv4.Nfsstat4, error) {
	p.client, p.session = other.client, other.session
	res, err := p.Call(&nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{
		BctsaSessid: p.session, BctsaDir: nfsv4.CDFC4_FORE,
	}})
	if err != nil || res.Status != nfsv4.NFS4_OK {
		return Status(res), err
	}
	res, err = p.Call(p.Sequence(slot))
	return Status(res), err
}

// Logout leaves nothing behind.
func (p *Peer) Logout() error {
	if p.Conn == nil {
		return nil
	}
	if _, err := p.Call(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: p.session}}); err != nil {
		return err
	}
	if _, err := p.Call(&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: p.client}}); err != nil {
		return err
	}
	return p.Close()
}
