package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

const (
	// answersWithin bounds each call: far more than a busy machine needs, and less than what holds a worker.
	answersWithin = 20 * time.Second
	slots         = 4
	largestReply  = 4 << 20
	port          = "2049"
	// server is one of the addresses that ganesha listens on; each client binds one of its own.
	server = "10.99.0.1:" + port
)

// errSilent is a call without an answer.
var errSilent = errors.New("no answer")

// operation is one of nfsv4, or bytes that are one.
type operation interface {
	WriteTo(io.Writer) (int64, error)
}

// raw is an encoded operation, well-formed or not.
type raw []byte

func (r raw) WriteTo(to io.Writer) (int64, error) {
	n, err := to.Write(r)
	return int64(n), err
}

// wire is a connection that sends anything.
type wire struct {
	net.Conn
	minor, uid, xid uint32
}

func dial(from string, minor, uid uint32) (*wire, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: answersWithin}
	connection, err := dialer.DialContext(context.Background(), "tcp", server)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: connection, minor: minor, uid: uid}, nil
}

// record is a compound as it goes over the wire.
func (w *wire) record(operations ...operation) []byte {
	w.xid++
	var credentials, call bytes.Buffer
	// Writing to a buffer does not fail.
	_, _ = (&rpcv2.AuthsysParms{Machinename: "hostile", Uid: w.uid, Gid: w.uid}).WriteTo(&credentials)
	call.Write(rpc.NewRecord(1 << 10))
	_, _ = (&rpcv2.RpcMsg{Xid: w.xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER, Vers: 4, Proc: 1,
		Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: credentials.Bytes()},
	}}}).WriteTo(&call)
	for _, word := range []uint32{0, w.minor, uint32(len(operations))} { // An empty tag first.
		call.Write(binary.BigEndian.AppendUint32(nil, word))
	}
	for _, op := range operations {
		_, _ = op.WriteTo(&call)
	}
	return rpc.FinishRecord(call.Bytes())
}

// reply is the answer to a compound.
type reply struct {
	// refused is set if the RPC was not executed: bad arguments, no such procedure.
	refused bool
	status  nfsv4.Nfsstat4
	// results are those, from the first, that nfsv4 knows; count is how many there are.
	results []nfsv4.NfsResop4
	count   uint32
}

// receive gives the next record that is a reply; calls of the server are passed over.
func (w *wire) receive(within time.Duration) (reply, error) {
	if err := w.SetReadDeadline(time.Now().Add(within)); err != nil {
		return reply{}, err
	}
	for {
		answer, err := rpc.ReadRecord(w, largestReply)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return reply{}, fmt.Errorf("%w for %s", errSilent, within)
		}
		if err != nil {
			return reply{}, err
		}
		if len(answer) >= 8 && binary.BigEndian.Uint32(answer[4:]) == 0 {
			continue // A callback.
		}
		return parse(answer)
	}
}

func parse(answer []byte) (reply, error) {
	reader := bytes.NewReader(answer)
	var head rpcv2.RpcMsg
	if _, err := head.ReadFrom(reader); err != nil {
		return reply{}, fmt.Errorf("a reply that is none: %w", err)
	}
	body, isReply := head.Body.(*rpcv2.RpcMsgBody_REPLY)
	if !isReply {
		return reply{}, errors.New("a call in place of a reply")
	}
	accepted, isAccepted := body.Rbody.(*rpcv2.ReplyBody_MSG_ACCEPTED)
	if !isAccepted {
		return reply{refused: true}, nil
	}
	if _, succeeded := accepted.Areply.ReplyData.(*rpcv2.AcceptedReplyData_SUCCESS); !succeeded {
		return reply{refused: true}, nil
	}
	var found reply
	var status, tag uint32
	for _, word := range []*uint32{&status, &tag} {
		if err := binary.Read(reader, binary.BigEndian, word); err != nil {
			return reply{refused: true}, nil //nolint:nilerr // NULL's answer, or one that was cut: what counts is that there is one
		}
	}
	if _, err := reader.Seek(int64(tag+3)&^3, io.SeekCurrent); err != nil {
		return reply{}, err
	}
	if err := binary.Read(reader, binary.BigEndian, &found.count); err != nil {
		return reply{refused: true}, nil //nolint:nilerr // as above
	}
	found.status = nfsv4.Nfsstat4(status)
	for range min(found.count, 100) {
		result, _, err := nfsv4.ReadNfsResop4(reader)
		if err != nil {
			break
		}
		found.results = append(found.results, result)
	}
	return found, nil
}

// exchange sends bytes and waits for an answer.
func (w *wire) exchange(record []byte) (reply, error) {
	if err := w.SetWriteDeadline(time.Now().Add(answersWithin)); err != nil {
		return reply{}, err
	}
	if _, err := w.Write(record); err != nil {
		return reply{}, err
	}
	return w.receive(answersWithin)
}

func (w *wire) call(operations ...operation) (reply, error) {
	return w.exchange(w.record(operations...))
}

// session is a wire with a session.
type session struct {
	*wire
	owner    string
	clientID uint64
	id       [nfsv4.NFS4_SESSIONID_SIZE]byte
	used     [slots]uint32
}

func exchangeID(owner string, verifier uint64) *nfsv4.NfsArgop4_OP_EXCHANGE_ID {
	args := nfsv4.ExchangeId4args{
		EiaClientowner: nfsv4.ClientOwner4{CoOwnerid: []byte(owner)}, EiaFlags: nfsv4.EXCHGID4_FLAG_USE_NON_PNFS,
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}
	binary.BigEndian.PutUint64(args.EiaClientowner.CoVerifier[:], verifier)
	return &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: args}
}

func createSession(clientID uint64, sequence uint32, ird ...uint32) *nfsv4.NfsArgop4_OP_CREATE_SESSION {
	channel := nfsv4.ChannelAttrs4{
		CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 1 << 16, CaMaxoperations: 64, CaMaxrequests: slots, CaRdmaIrd: ird,
	}
	return &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: clientID, CsaSequence: sequence, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel, CsaCbProgram: 0x40000000,
		CsaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}},
	}}
}

// statusError is an answer that is not the one that was needed.
type statusError struct {
	what   string
	status nfsv4.Nfsstat4
}

func (e *statusError) Error() string { return e.what + ": " + client.StatusName(e.status) }

// login makes a session for a client owner.
func login(from string, minor, uid uint32, owner string) (*session, error) {
	w, err := dial(from, minor, uid)
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, owner: owner}
	if err := s.open(owner); err != nil {
		_ = w.Close() // The first error counts.
		return nil, err
	}
	return s, nil
}

func (s *session) open(owner string) error { return s.openAs(owner, 1) }

// openAs makes a session for an instance of the client.
func (s *session) openAs(owner string, verifier uint64) error {
	known, err := s.call(exchangeID(owner, verifier))
	if err != nil {
		return err
	}
	if known.status != nfsv4.NFS4_OK || len(known.results) == 0 {
		return &statusError{"EXCHANGE_ID", known.status}
	}
	ok := known.results[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	made, err := s.call(createSession(ok.EirClientid, ok.EirSequenceid))
	if err != nil {
		return err
	}
	if made.status != nfsv4.NFS4_OK || len(made.results) == 0 {
		return &statusError{"CREATE_SESSION", made.status}
	}
	s.clientID, s.used = ok.EirClientid, [slots]uint32{}
	s.id = made.results[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	return nil
}

// leave takes the client off the server, so that it does not count in limits.
func (s *session) leave() {
	defer func() { _ = s.Close() }()
	// Who is gone already has nothing to take off.
	if _, err := s.call(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: s.id}}); err == nil {
		_, _ = s.call(&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: s.clientID}})
	}
}

// inSlot is a compound with SEQUENCE in front, in a slot's next place.
func (s *session) inSlot(slot uint32, cache bool, operations ...operation) []byte {
	return s.record(append([]operation{&nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: s.id, SaSequenceid: s.used[slot] + 1, SaSlotid: slot, SaHighestSlotid: slots - 1, SaCachethis: cache,
	}}}, operations...)...)
}

// settle counts an executed SEQUENCE.
func (s *session) settle(slot uint32, r reply) {
	if len(r.results) == 0 {
		return
	}
	if sequence, ok := r.results[0].(*nfsv4.NfsResop4_OP_SEQUENCE); ok {
		if _, done := sequence.Opsequence.(*nfsv4.Sequence4res_NFS4_OK); done {
			s.used[slot]++
		}
	}
}

// run executes operations in a slot.
func (s *session) run(slot uint32, operations ...operation) (reply, error) {
	answer, err := s.exchange(s.inSlot(slot, false, operations...))
	if err == nil {
		s.settle(slot, answer)
	}
	return answer, err
}

// must is run for what must succeed.
func (s *session) must(operations ...operation) ([]nfsv4.NfsResop4, error) {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		answer, err := s.run(0, operations...)
		switch {
		case err != nil:
			return nil, err
		case answer.refused:
			return nil, errors.New("the call was refused")
		case answer.status == nfsv4.NFS4_OK:
			return answer.results, nil
		case (answer.status != nfsv4.NFS4ERR_GRACE && answer.status != nfsv4.NFS4ERR_DELAY) || time.Since(began) > time.Minute:
			return nil, &statusError{"a call", answer.status}
		}
	}
}

func lookUp(names ...string) []operation {
	ops := []operation{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, name := range names {
		ops = append(ops, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}})
	}
	return ops
}

func putFH(handle []byte) operation {
	return &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
}

// handle is the file handle at a path.
func (s *session) handle(names ...string) ([]byte, error) {
	results, err := s.must(append(lookUp(names...), &nfsv4.NfsArgop4_OP_GETFH{})...)
	if err != nil {
		return nil, fmt.Errorf("handle of %v: %w", names, err)
	}
	return results[len(results)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object, nil
}

func open(owner string, clientID uint64, access uint32, how nfsv4.Openflag4, claim nfsv4.OpenClaim4) operation {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: access, Owner: nfsv4.StateOwner4{Clientid: clientID, Owner: []byte(owner)}, Openhow: how, Claim: claim,
	}}
}

// openFile opens the file of a handle.
func (s *session) openFile(owner string, handle []byte, access uint32) (nfsv4.Stateid4, error) {
	results, err := s.must(putFH(handle), open(owner, s.clientID, access, &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}, &nfsv4.OpenClaim4_CLAIM_FH{}))
	if err != nil {
		return nfsv4.Stateid4{}, fmt.Errorf("open: %w", err)
	}
	return results[2].(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid, nil
}

// lockFile locks a byte of an open file.
func (s *session) lockFile(owner string, handle []byte, opened nfsv4.Stateid4, kind nfsv4.NfsLockType4, offset uint64) (nfsv4.Stateid4, error) {
	results, err := s.must(putFH(handle), &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{Locktype: kind, Offset: offset, Length: 1, Locker: &nfsv4.Locker4_TRUE{
		OpenOwner: nfsv4.OpenToLockOwner4{OpenStateid: opened, LockOwner: nfsv4.StateOwner4{Clientid: s.clientID, Owner: []byte(owner)}},
	}}})
	if err != nil {
		return nfsv4.Stateid4{}, fmt.Errorf("lock: %w", err)
	}
	return results[2].(*nfsv4.NfsResop4_OP_LOCK).Oplock.(*nfsv4.Lock4res_NFS4_OK).Resok4.LockStateid, nil
}
