package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

const (
	// messageLimit is for requests and replies, and what the session asks for.
	messageLimit = 256 << 10
	// silence is how long a server may send nothing while there is no answer to a call, before the connection is given up,
	// also if the caller has given up earlier: a connection to a node without power would last for 15 minutes more. It is
	// safe, because a call is sent again and has one effect.
	silence = 10 * time.Second
	// writeTimeout is for one request.
	writeTimeout = 10 * time.Second
)

// errSilent is why a connection was given up.
var errSilent = errors.New("the server is silent")

// link is one TCP connection that carries calls and replies in any order.
type link struct {
	conn  net.Conn
	write sync.Mutex
	heard atomic.Int64 // UnixNano of the last bytes
	done  chan struct{}

	mu      sync.Mutex
	err     error
	xid     uint32
	pending map[uint32]chan []byte
	// since is when the first call was sent of those that are pending.
	since time.Time
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, done: make(chan struct{}), pending: map[uint32]chan []byte{}, xid: uint32(time.Now().UnixNano())}
	l.heard.Store(time.Now().UnixNano())
	go l.read()
	return l
}

// dial connects, with a bound of its own for hosts that swallow packets.
func dial(ctx context.Context, connect func(context.Context, string) (net.Conn, error), addr string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := connect(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the NFS server: %w", err)
	}
	return newLink(conn), nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// fail closes the link once; everything that waits on it sees done.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	_ = l.conn.Close()
	close(l.done)
}

func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Read notes that the server is there, also within a long reply.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.conn.Read(p)
	l.heard.Store(time.Now().UnixNano())
	return n, err
}

// judge fails the link if the server has sent nothing for too long.
func (l *link) judge(now time.Time) {
	l.mu.Lock()
	last := time.Unix(0, l.heard.Load())
	if last.Before(l.since) {
		last = l.since
	}
	silent := len(l.pending) > 0 && now.Sub(last) > silence
	l.mu.Unlock()
	if silent {
		l.fail(errSilent)
	}
}

func (l *link) read() {
	reader := bufio.NewReader(l)
	for {
		message, err := rpc.ReadRecord(reader, messageLimit)
		if err == nil && len(message) < 8 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			l.fail(fmt.Errorf("the connection to the NFS server is lost: %w", err))
			return
		}
		xid := binary.BigEndian.Uint32(message)
		l.mu.Lock()
		waiting := l.pending[xid]
		delete(l.pending, xid)
		l.mu.Unlock()
		if waiting != nil {
			waiting <- message
		}
	}
}

// start sends a call and returns where its reply will come.
func (l *link) start(procedure uint32, cred Credentials, args []byte) (<-chan []byte, error) {
	l.judge(time.Now())
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return nil, l.err
	}
	l.xid++
	xid := l.xid
	reply := make(chan []byte, 1)
	if len(l.pending) == 0 {
		l.since = time.Now()
	}
	l.pending[xid] = reply
	l.mu.Unlock()
	record, err := encodeCall(xid, procedure, cred, args)
	if err != nil {
		l.mu.Lock()
		delete(l.pending, xid)
		l.mu.Unlock()
		return nil, err
	}
	l.write.Lock()
	defer l.write.Unlock()
	err = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = l.conn.Write(record)
	}
	if err != nil {
		l.fail(fmt.Errorf("send to the NFS server: %w", err))
		// The reader may have seen the end first, and closed the connection: what it saw is the reason, "closed" is not.
		return nil, l.failure()
	}
	return reply, nil
}

// wait returns the reply's results. It gives up the whole link if the server is silent.
func (l *link) wait(ctx context.Context, reply <-chan []byte) ([]byte, error) {
	tick := time.NewTicker(silence / 4)
	defer tick.Stop()
	for {
		select {
		case message := <-reply:
			return decodeReply(message)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.done:
			// It may have come just before the end.
			select {
			case message := <-reply:
				return decodeReply(message)
			default:
				return nil, l.failure()
			}
		case now := <-tick.C:
			l.judge(now)
		}
	}
}

// call is start and wait.
func (l *link) call(ctx context.Context, procedure uint32, cred Credentials, args []byte) ([]byte, error) {
	reply, err := l.start(procedure, cred, args)
	if err != nil {
		return nil, err
	}
	return l.wait(ctx, reply)
}

func encodeCall(xid, procedure uint32, cred Credentials, args []byte) ([]byte, error) {
	// RFC 5531 appendix A: at most 16.
	parms := rpcv2.AuthsysParms{Machinename: "howdah", Uid: cred.UID, Gid: cred.GID, Gids: cred.GIDs[:min(16, len(cred.GIDs))]}
	var body bytes.Buffer
	if _, err := parms.WriteTo(&body); err != nil {
		return nil, fmt.Errorf("encode credentials: %w", err)
	}
	message := rpcv2.RpcMsg{Xid: xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: rpcv2.CallBody{
		Rpcvers: 2, Prog: nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER, Vers: 4, Proc: procedure,
		Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: body.Bytes()},
	}}}
	record := bytes.NewBuffer(rpc.NewRecord(message.GetEncodedSizeBytes() + len(args)))
	if _, err := message.WriteTo(record); err != nil {
		return nil, fmt.Errorf("encode an RPC call: %w", err)
	}
	record.Write(args)
	return rpc.FinishRecord(record.Bytes()), nil
}

// RPCError is a call that the server did not execute, and would not if it were sent again.
type RPCError struct {
	// Reason is the reject_stat, auth_stat or accept_stat of RFC 5531 section 9, or why this server is not asked.
	Reason string
}

func (e *RPCError) Error() string { return "the NFS server refused the RPC call: " + e.Reason }

func decodeReply(message []byte) ([]byte, error) {
	var reply rpcv2.RpcMsg
	reader := bytes.NewReader(message)
	if _, err := reply.ReadFrom(reader); err != nil {
		return nil, &RPCError{Reason: "undecodable reply: " + err.Error()}
	}
	body, ok := reply.Body.(*rpcv2.RpcMsgBody_REPLY)
	if !ok {
		return nil, &RPCError{Reason: "a call where a reply was due"}
	}
	switch rbody := body.Rbody.(type) {
	case *rpcv2.ReplyBody_MSG_ACCEPTED:
		if stat := rbody.Areply.ReplyData.GetStat(); stat != rpcv2.SUCCESS {
			return nil, &RPCError{Reason: rpcv2.AcceptStat_name[stat]}
		}
		return message[len(message)-reader.Len():], nil
	case *rpcv2.ReplyBody_MSG_DENIED:
		if refused, ok := rbody.Rreply.(*rpcv2.RejectedReply_AUTH_ERROR); ok {
			return nil, &RPCError{Reason: rpcv2.AuthStat_name[refused.Stat]}
		}
	}
	return nil, &RPCError{Reason: "RPC version mismatch"}
}
