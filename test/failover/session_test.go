package failover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
	"golang.org/x/sys/unix"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

const (
	// lease is that of data servers in Ceph. Linux gives a connection up that has acknowledged nothing for a lease (nfs4_set_lease_period calls
	// rpc_set_connect_timeout, and that sets TCP_USER_TIMEOUT), and a new one that is not made within one.
	lease = 8 * time.Second
	// Linux waits between two tries to connect (XS_TCP_INIT_REEST_TO), at most half a lease; and not at all after a connection that was made
	// and then reset.
	firstWait, lastWait = 3 * time.Second, lease / 2
	// user is who works, in AUTH_SYS.
	user = 1000
)

type (
	operations = []nfsv4.NfsArgop4
	results    = []nfsv4.NfsResop4
)

// silence is how Linux finds out that the other side is gone (xs_tcp_set_socket_timeouts): after a lease without an acknowledgment, or if nothing is to be
// acknowledged, as the server has the request and does not answer, after a lease without a packet and another one for a probe.
var silence = map[int]int{
	unix.TCP_USER_TIMEOUT: int(lease.Milliseconds()),
	unix.TCP_KEEPIDLE:     int(lease.Seconds()), unix.TCP_KEEPINTVL: int(lease.Seconds()), unix.TCP_KEEPCNT: 1,
}

// session is one of an NFSv4.1 client with a data server, and its connection, with one request at a time.
type session struct {
	connect    func(context.Context) (net.Conn, error)
	connection net.Conn
	tried      time.Time
	wait       time.Duration
	// tries has the connections that were lost or not made, refused how many of them a Service without any endpoint refused.
	tries   []string
	refused int

	owner    string
	verifier [8]byte
	clientID uint64
	id       [nfsv4.NFS4_SESSIONID_SIZE]byte
	sequence uint32
	xid      uint32
}

// link returns the connection, and makes one first if there is none, when Linux would.
func (s *session) link(ctx context.Context) (net.Conn, error) {
	if s.connection != nil {
		return s.connection, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Until(s.tried.Add(s.wait))):
	}
	s.tried = time.Now()
	s.wait = min(max(2*s.wait, firstWait), lastWait)
	within, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	connection, err := s.connect(within)
	if err != nil {
		s.note(err)
		return nil, err
	}
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err == nil {
		failure := raw.Control(func(fd uintptr) {
			for option, value := range silence {
				err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, value))
			}
		})
		if err == nil {
			err = failure
		}
	}
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	s.connection, s.wait = connection, 0
	return connection, nil
}

// drop gives the connection up.
func (s *session) drop() {
	if s.connection != nil {
		_ = s.connection.Close()
		s.connection = nil
	}
}

// exchange sends a request and waits for its answer, as long as the connection lasts.
func (s *session) exchange(ctx context.Context, all operations) (nfsv4.Nfsstat4, results, error) {
	connection, err := s.link(ctx)
	if err != nil {
		return 0, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	s.xid++
	if _, err = connection.Write(request(s.xid, all)); err == nil {
		var record []byte
		for record, err = rpc.ReadRecord(connection, 4<<20); err == nil; record, err = rpc.ReadRecord(connection, 4<<20) {
			if len(record) >= 8 && binary.BigEndian.Uint32(record) == s.xid && binary.BigEndian.Uint32(record[4:]) == 1 {
				return answer(record)
			}
		}
	}
	s.note(err)
	s.drop()
	return 0, nil, err
}

// note notes a try that failed, with the time from its beginning to its end.
func (s *session) note(err error) {
	if errors.Is(err, unix.ECONNREFUSED) {
		s.refused++
	}
	s.tries = append(s.tries, fmt.Sprintf("%s to %s: %v", s.tried.Format(clock), time.Now().Format(clock), err))
}

const clock = "05.00"

// request is a compound of version 4.1, as a record.
func request(xid uint32, all operations) []byte {
	var credentials, call bytes.Buffer
	// Writing to a buffer does not fail.
	_, _ = (&rpcv2.AuthsysParms{Machinename: "failover", Uid: user, Gid: user}).WriteTo(&credentials)
	call.Write(rpc.NewRecord(1 << 10))
	_, _ = (&rpcv2.RpcMsg{Xid: xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER, Vers: 4, Proc: 1,
		Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: credentials.Bytes()},
	}}}).WriteTo(&call)
	for _, word := range []uint32{0, 1, uint32(len(all))} { // An empty tag, the minor version.
		call.Write(binary.BigEndian.AppendUint32(nil, word))
	}
	for _, op := range all {
		_, _ = op.WriteTo(&call)
	}
	return rpc.FinishRecord(call.Bytes())
}

func answer(record []byte) (nfsv4.Nfsstat4, results, error) {
	reader := bytes.NewReader(record)
	var head rpcv2.RpcMsg
	if _, err := head.ReadFrom(reader); err != nil {
		return 0, nil, err
	}
	var status, tag, count uint32
	for _, word := range []*uint32{&status, &tag, &count} {
		if err := binary.Read(reader, binary.BigEndian, word); err != nil {
			return 0, nil, err
		}
	}
	var list results
	for range count {
		result, _, err := nfsv4.ReadNfsResop4(reader)
		if err != nil {
			return 0, nil, err
		}
		list = append(list, result)
	}
	return nfsv4.Nfsstat4(status), list, nil
}

// establish makes the client's ID and a session. It reports whether the server knew the client, with all that it has.
func (s *session) establish(ctx context.Context) (known bool, err error) {
	status, list, err := s.exchange(ctx, operations{&nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{
		EiaClientowner: nfsv4.ClientOwner4{CoOwnerid: []byte(s.owner), CoVerifier: s.verifier},
		EiaFlags:       nfsv4.EXCHGID4_FLAG_USE_NON_PNFS, EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{},
	}}})
	if err != nil || status != nfsv4.NFS4_OK {
		return false, failed("EXCHANGE_ID", status, err)
	}
	id := list[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	channel := nfsv4.ChannelAttrs4{
		CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 1 << 16, CaMaxoperations: 16, CaMaxrequests: 1,
	}
	status, list, err = s.exchange(ctx, operations{&nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{
		CsaClientid: id.EirClientid, CsaSequence: id.EirSequenceid, CsaForeChanAttrs: channel, CsaBackChanAttrs: channel,
		CsaCbProgram: 0x40000000, CsaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}},
	}}})
	if err != nil || status != nfsv4.NFS4_OK {
		return false, failed("CREATE_SESSION", status, err)
	}
	s.clientID, s.sequence = id.EirClientid, 0
	s.id = list[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	return id.EirFlags&nfsv4.EXCHGID4_FLAG_CONFIRMED_R != 0, nil
}

// numbered puts a request into the session's one slot. Sent again with the same number it has its effect once.
func (s *session) numbered(all operations) operations {
	return append(operations{&nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: s.id, SaSequenceid: s.sequence, SaCachethis: true,
	}}}, all...)
}

// failure is a status that a server answered.
type failure struct {
	what   string
	status nfsv4.Nfsstat4
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %s", f.what, nfs.StatusName(f.status)) }

func failed(what string, status nfsv4.Nfsstat4, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &failure{what, status}
}
