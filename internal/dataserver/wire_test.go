package dataserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// wire is a client that sends what no decent one does: any operation, of any minor version, one at a time.
type wire struct {
	t          *testing.T
	connection net.Conn
	minor      uint32
	id         nfsv4.ExchangeId4resok
	session    [nfsv4.NFS4_SESSIONID_SIZE]byte
	sequence   uint32
	clientID   uint64
}

// operation is one of nfsv4, or bytes that are one.
type operation interface {
	WriteTo(io.Writer) (int64, error)
}

// rawOperation is an operation that nfsv4 does not know, encoded.
type rawOperation []byte

func (r rawOperation) WriteTo(to io.Writer) (int64, error) {
	n, err := to.Write(r)
	return int64(n), err
}

// setXattr is SETXATTR with SETXATTR4_EITHER (RFC 8276 section 8.4.3).
func setXattr(name, value string) rawOperation {
	encoded := binary.BigEndian.AppendUint32(nil, 73)
	encoded = binary.BigEndian.AppendUint32(encoded, 0)
	for _, text := range []string{name, value} {
		encoded = binary.BigEndian.AppendUint32(encoded, uint32(len(text)))
		encoded = append(encoded, text...)
		encoded = append(encoded, make([]byte, -len(text)&3)...)
	}
	return encoded
}

func setMode(mode uint32) operation {
	return &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
		Attrmask: nfsv4.Bitmap4{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: binary.BigEndian.AppendUint32(nil, mode),
	}}}
}

func lookUp(names ...string) []operation {
	ops := []operation{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range names {
		ops = append(ops, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}})
	}
	return ops
}

// dialWire makes a session of the minor version.
func dialWire(t *testing.T, address string, minor uint32) *wire {
	t.Helper()
	return dialWireAs(t, "wire "+t.Name(), address, minor)
}

// dialWireAs makes a session of the minor version for a client owner.
func dialWireAs(t *testing.T, owner, address string, minor uint32) *wire {
	t.Helper()
	connection, err := net.DialTimeout("tcp", address, timeout)
	mustWork(t, "connect", err)
	t.Cleanup(func() { _ = connection.Close() })
	return wireOver(t, connection, owner, minor)
}

// wireFrom makes a session of version 4.1 for a client owner at a local address.
func wireFrom(t *testing.T, owner, local string) *wire {
	t.Helper()
	return wireOver(t, connectFrom(t, local), owner, 1)
}

// wireOver makes a session over a connection.
func wireOver(t *testing.T, connection net.Conn, owner string, minor uint32) *wire {
	t.Helper()
	w := &wire{t: t, connection: connection, minor: minor}
	if status := w.identify(owner, [8]byte{}); status != nfsv4.NFS4_OK {
		t.Fatalf("EXCHANGE_ID: %s", client.StatusName(status))
	}
	if status := w.createSession(); status != nfsv4.NFS4_OK {
		t.Fatalf("CREATE_SESSION: %s", client.StatusName(status))
	}
	return w
}

// identify asks for a client ID.
func (w *wire) identify(owner string, verifier [8]byte) nfsv4.Nfsstat4 {
	w.t.Helper()
	status, known := w.send(client.Credentials{}, exchangeID(owner, verifier))
	w.identified(status, known)
	return status
}

func exchangeID(owner string, verifier [8]byte) operation {
	return &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner:  nfsv4.ClientOwner4{CoOwnerid: []byte(owner), CoVerifier: verifier},
		EiaFlags:        nfsv4.EXCHGID4_FLAG_USE_NON_PNFS,
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}}
}

// identified takes the answer to exchangeID.
func (w *wire) identified(status nfsv4.Nfsstat4, known []nfsv4.NfsResop4) {
	if status == nfsv4.NFS4_OK {
		w.id = known[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
		w.clientID = w.id.EirClientid
	}
}

// createSession makes a session for the client ID, and makes the session that of run.
func (w *wire) createSession() nfsv4.Nfsstat4 {
	w.t.Helper()
	status, made := w.send(client.Credentials{}, w.newSession())
	w.inSession(status, made)
	return status
}

func (w *wire) newSession() operation {
	channel := nfsv4.ChannelAttrs4{
		CaMaxrequestsize: 2 << 20, CaMaxresponsesize: 1 << 16, CaMaxresponsesizeCached: 1 << 16, CaMaxoperations: 32, CaMaxrequests: 1,
	}
	return &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: w.id.EirClientid, CsaSequence: w.id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
		CsaCbProgram: 0x40000000, CsaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}},
	}}
}

// inSession takes the answer to newSession.
func (w *wire) inSession(status nfsv4.Nfsstat4, made []nfsv4.NfsResop4) {
	if status == nfsv4.NFS4_OK {
		w.session = made[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
		w.sequence = 0
		w.id.EirSequenceid++
	}
}

// Run executes operations in the session and gives the status of the last one that was executed.
func (w *wire) Run(cred client.Credentials, operations ...operation) nfsv4.Nfsstat4 {
	w.t.Helper()
	status, _ := w.call(cred, operations...)
	return status
}

// results are those of operations that must succeed.
func (w *wire) results(cred client.Credentials, operations ...operation) []nfsv4.NfsResop4 {
	w.t.Helper()
	status, results := w.call(cred, operations...)
	if status != nfsv4.NFS4_OK || len(results) != len(operations)+1 {
		w.t.Fatalf("%s, %d results", client.StatusName(status), len(results))
	}
	return results
}

// call executes operations in the session, after SEQUENCE, whose result is the first.
func (w *wire) call(cred client.Credentials, operations ...operation) (nfsv4.Nfsstat4, []nfsv4.NfsResop4) {
	w.t.Helper()
	return w.send(cred, w.inOrder(operations)...)
}

// inOrder are the operations after the next SEQUENCE of the session.
func (w *wire) inOrder(operations []operation) []operation {
	w.sequence++
	return append([]operation{&nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: w.session, SaSequenceid: w.sequence,
	}}}, operations...)
}

// send returns the status and those results, from the first, that nfsv4 knows.
func (w *wire) send(cred client.Credentials, operations ...operation) (nfsv4.Nfsstat4, []nfsv4.NfsResop4) {
	w.t.Helper()
	answer, err := w.exchange(w.encode(cred, operations...))
	mustWork(w.t, "receive", err)
	return w.decode(answer)
}

// encode gives the record of a compound.
func (w *wire) encode(cred client.Credentials, operations ...operation) []byte {
	w.t.Helper()
	var credentials, call bytes.Buffer
	parms := rpcv2.AuthsysParms{Machinename: "wire", Uid: cred.UID, Gid: cred.GID, Gids: cred.GIDs}
	_, err := parms.WriteTo(&credentials)
	mustWork(w.t, "encode credentials", err)
	header := rpcv2.RpcMsg{Xid: 1, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER, Vers: 4, Proc: 1,
		Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: credentials.Bytes()},
	}}}
	call.Write(rpc.NewRecord(1 << 10))
	_, err = header.WriteTo(&call)
	mustWork(w.t, "encode a call", err)
	for _, word := range []uint32{0, w.minor, uint32(len(operations))} { // An empty tag first.
		call.Write(binary.BigEndian.AppendUint32(nil, word))
	}
	for _, op := range operations {
		_, err := op.WriteTo(&call)
		mustWork(w.t, "encode an operation", err)
	}
	return rpc.FinishRecord(call.Bytes())
}

// exchange sends a record and gives the answer's.
func (w *wire) exchange(record []byte) ([]byte, error) {
	w.t.Helper()
	mustWork(w.t, "set a deadline", w.connection.SetDeadline(time.Now().Add(timeout)))
	if _, err := w.connection.Write(record); err != nil {
		return nil, err
	}
	return rpc.ReadRecord(w.connection, 1<<20)
}

// decode returns the status of an answer and those results, from the first, that nfsv4 knows.
func (w *wire) decode(answer []byte) (nfsv4.Nfsstat4, []nfsv4.NfsResop4) {
	w.t.Helper()
	reader := bytes.NewReader(answer)
	var reply rpcv2.RpcMsg
	_, err := reply.ReadFrom(reader)
	mustWork(w.t, "decode a reply", err)
	var status, tag, count uint32
	for _, word := range []*uint32{&status, &tag, &count} {
		mustWork(w.t, "decode a reply", binary.Read(reader, binary.BigEndian, word))
	}
	var results []nfsv4.NfsResop4
	for range count {
		result, _, err := nfsv4.ReadNfsResop4(reader)
		if err != nil {
			break
		}
		results = append(results, result)
	}
	return nfsv4.Nfsstat4(status), results
}
