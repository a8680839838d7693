package steward

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/ganesha/realtest"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

const (
	// slots are how many requests a client has on the way. Slot 0 is for those whose answers are waited for.
	slots = 16
	// answersWithin bounds each answer of a ganesha that is not frozen.
	answersWithin = 30 * time.Second
)

// nfsClient is an NFS client that can leave its requests unanswered, as one of a frozen server has to.
type nfsClient struct {
	t        *testing.T
	conn     net.Conn
	clientID uint64
	session  [nfsv4.NFS4_SESSIONID_SIZE]byte
	used     [slots]uint32
	xid      uint32
}

// nfsAnswer is the answer to a request: its number, its status, and the results that nfsv4 knows.
type nfsAnswer struct {
	xid     uint32
	status  nfsv4.Nfsstat4
	results []nfsv4.NfsResop4
}

type operations = []nfsv4.NfsArgop4

// connect makes a session with the ganesha at a port. The status is that of what failed.
func connect(t *testing.T, port uint16, owner string) (*nfsClient, nfsv4.Nfsstat4, error) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(realtest.Address1)}, Timeout: answersWithin}
	conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(realtest.Address1, fmt.Sprint(port)))
	if err != nil {
		return nil, 0, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &nfsClient{t: t, conn: conn}
	known, err := c.call(operations{&nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner: nfsv4.ClientOwner4{CoOwnerid: []byte(owner)}, EiaFlags: nfsv4.EXCHGID4_FLAG_USE_NON_PNFS,
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}}})
	if err != nil || known.status != nfsv4.NFS4_OK {
		return nil, known.status, err
	}
	id := known.results[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	channel := nfsv4.ChannelAttrs4{
		CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 1 << 16, CaMaxoperations: 16, CaMaxrequests: slots,
	}
	made, err := c.call(operations{&nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
		CsaCbProgram: 0x40000000, CsaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}},
	}}})
	if err != nil || made.status != nfsv4.NFS4_OK {
		return nil, made.status, err
	}
	c.clientID = id.EirClientid
	c.session = made.results[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	return c, nfsv4.NFS4_OK, nil
}

// mustConnect is a new client of the ganesha at a port.
func mustConnect(t *testing.T, port uint16, owner string) *nfsClient {
	t.Helper()
	c, status, err := connect(t, port, owner)
	if err != nil || status != nfsv4.NFS4_OK {
		t.Fatalf("connect %s: %s, %v", owner, nfs.StatusName(status), err)
	}
	if answer := c.run(&nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}); answer.status != nfsv4.NFS4_OK {
		t.Fatalf("RECLAIM_COMPLETE of %s: %s", owner, nfs.StatusName(answer.status))
	}
	return c
}

// send sends a request and returns its number.
func (c *nfsClient) send(all operations) (uint32, error) {
	c.xid++
	var credentials, call bytes.Buffer
	// Writing to a buffer does not fail.
	_, _ = (&rpcv2.AuthsysParms{Machinename: "frozen"}).WriteTo(&credentials)
	call.Write(rpc.NewRecord(1 << 10))
	_, _ = (&rpcv2.RpcMsg{Xid: c.xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER, Vers: 4, Proc: 1,
		Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: credentials.Bytes()},
	}}}).WriteTo(&call)
	for _, word := range []uint32{0, 1, uint32(len(all))} { // An empty tag, the minor version.
		call.Write(binary.BigEndian.AppendUint32(nil, word))
	}
	for _, op := range all {
		_, _ = op.WriteTo(&call)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(answersWithin)); err != nil {
		return 0, err
	}
	_, err := c.conn.Write(rpc.FinishRecord(call.Bytes()))
	return c.xid, err
}

// receive returns the next answer. Callbacks of the server are passed over.
func (c *nfsClient) receive() (nfsAnswer, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(answersWithin)); err != nil {
		return nfsAnswer{}, err
	}
	record, err := rpc.ReadRecord(c.conn, 4<<20)
	for err == nil && len(record) >= 8 && binary.BigEndian.Uint32(record[4:]) == 0 {
		record, err = rpc.ReadRecord(c.conn, 4<<20)
	}
	if err != nil {
		return nfsAnswer{}, err
	}
	reader := bytes.NewReader(record)
	var head rpcv2.RpcMsg
	if _, err := head.ReadFrom(reader); err != nil {
		return nfsAnswer{}, err
	}
	var status, tag, count uint32
	for _, word := range []*uint32{&status, &tag, &count} {
		if err := binary.Read(reader, binary.BigEndian, word); err != nil {
			return nfsAnswer{}, err
		}
	}
	answer := nfsAnswer{xid: head.Xid, status: nfsv4.Nfsstat4(status)}
	for range count {
		result, _, err := nfsv4.ReadNfsResop4(reader)
		if err != nil {
			return nfsAnswer{}, err
		}
		answer.results = append(answer.results, result)
	}
	return answer, nil
}

func (c *nfsClient) call(all operations) (nfsAnswer, error) {
	xid, err := c.send(all)
	if err != nil {
		return nfsAnswer{}, err
	}
	for {
		if answer, err := c.receive(); err != nil || answer.xid == xid {
			return answer, err
		}
	}
}

// inSlot is a compound for the next place of a slot.
func (c *nfsClient) inSlot(slot uint32, all ...nfsv4.NfsArgop4) operations {
	c.used[slot]++
	return append(operations{&nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: c.session, SaSequenceid: c.used[slot], SaSlotid: slot, SaHighestSlotid: slots - 1,
	}}}, all...)
}

// run executes operations, again while the server is in grace or busy.
func (c *nfsClient) run(all ...nfsv4.NfsArgop4) nfsAnswer {
	c.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		answer, err := c.call(c.inSlot(0, all...))
		switch {
		case err != nil:
			c.t.Fatalf("no answer: %v", err)
		case answer.status != nfsv4.NFS4ERR_GRACE && answer.status != nfsv4.NFS4ERR_DELAY || time.Since(began) > answersWithin:
			return answer
		}
	}
}

// must is run for what must succeed.
func (c *nfsClient) must(what string, all ...nfsv4.NfsArgop4) []nfsv4.NfsResop4 {
	c.t.Helper()
	answer := c.run(all...)
	if answer.status != nfsv4.NFS4_OK {
		c.t.Fatalf("%s: %s", what, nfs.StatusName(answer.status))
	}
	return answer.results
}

// at goes to a path of the server.
func at(names ...string) operations {
	all := operations{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range names {
		all = append(all, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}})
	}
	return all
}

// file is a file that a client has open.
type file struct {
	*nfsClient
	handle  []byte
	stateID nfsv4.Stateid4
}

// open opens a file of a directory for reading and writing, and makes it if there is none.
func (c *nfsClient) open(directory, name string) *file {
	c.t.Helper()
	results := c.must("open "+name, append(at(directory), openOperation(c.clientID, name), &nfsv4.NfsArgop4_OP_GETFH{})...)
	opened := results[len(results)-2].(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4
	handle := results[len(results)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	return &file{c, handle, opened.Stateid}
}

func openOperation(clientID uint64, name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_BOTH, Owner: nfsv4.StateOwner4{Clientid: clientID, Owner: []byte("process")},
		Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}}, Claim: &nfsv4.OpenClaim4_CLAIM_NULL{File: name},
	}}
}

func (f *file) putFH() nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: f.handle}}
}

func (f *file) writing(offset uint64, data []byte, stable nfsv4.StableHow4) operations {
	return operations{f.putFH(), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: f.stateID, Offset: offset, Stable: stable, Data: data}}}
}

func (f *file) reading(offset uint64, count uint32) operations {
	return operations{f.putFH(), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: f.stateID, Offset: offset, Count: count}}}
}

func (f *file) committing() operations {
	return operations{f.putFH(), &nfsv4.NfsArgop4_OP_COMMIT{}}
}

// dataOf is what a READ has read.
func dataOf(answer nfsAnswer) []byte {
	return answer.results[len(answer.results)-1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4.Data
}
