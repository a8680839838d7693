package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
	"github.com/google/go-cmp/cmp"
)

// echo answers COMPOUND with its arguments, and garbage with GARBAGE_ARGS.
type echo struct{ caller Caller }

func (e *echo) Compound(_ context.Context, caller Caller, args []byte) ([]byte, rpcv2.AcceptStat) {
	e.caller = caller
	if string(args) == "garbage!" {
		return nil, rpcv2.GARBAGE_ARGS
	}
	return args, rpcv2.SUCCESS
}

func authSys(parms rpcv2.AuthsysParms) rpcv2.OpaqueAuth {
	var body bytes.Buffer
	if _, err := parms.WriteTo(&body); err != nil {
		panic(err)
	}
	return rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: body.Bytes()}
}

var (
	nullCall     = rpcv2.CallBody{Rpcvers: 2, Prog: 100003, Vers: 4}
	compoundCall = rpcv2.CallBody{Rpcvers: 2, Prog: 100003, Vers: 4, Proc: 1}
)

func callBytes(xid uint32, body rpcv2.CallBody, args ...byte) []byte {
	var message bytes.Buffer
	if _, err := (&rpcv2.RpcMsg{Xid: xid, Body: &rpcv2.RpcMsgBody_CALL{Cbody: body}}).WriteTo(&message); err != nil {
		panic(err)
	}
	return append(message.Bytes(), args...)
}

// replyTo runs answer and decodes the reply: its body and what follows it.
func replyTo(t *testing.T, handler Handler, message []byte) (rpcv2.ReplyBody, []byte) {
	t.Helper()
	record, err := answer(context.Background(), handler, Caller{Addr: netip.MustParseAddr("192.0.2.1")}, message)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := ReadRecord(bytes.NewReader(record), 1<<20)
	if err != nil || len(encoded) != len(record)-4 {
		t.Fatalf("not one record: %v", err)
	}
	var reply rpcv2.RpcMsg
	reader := bytes.NewReader(encoded)
	if _, err := reply.ReadFrom(reader); err != nil {
		t.Fatal(err)
	}
	if want := binary.BigEndian.Uint32(message); reply.Xid != want {
		t.Errorf("xid %d, want %d", reply.Xid, want)
	}
	return reply.Body.(*rpcv2.RpcMsgBody_REPLY).Rbody, encoded[len(encoded)-reader.Len():]
}

func acceptedAs(data rpcv2.AcceptedReplyData) rpcv2.ReplyBody {
	return &rpcv2.ReplyBody_MSG_ACCEPTED{Areply: rpcv2.AcceptedReply{ReplyData: data}}
}

func authError(stat rpcv2.AuthStat) rpcv2.ReplyBody {
	return &rpcv2.ReplyBody_MSG_DENIED{Rreply: &rpcv2.RejectedReply_AUTH_ERROR{Stat: stat}}
}

// RFC 5531 sections 8 to 10 and appendix A.
func TestAnswers(t *testing.T) {
	with := func(change func(*rpcv2.CallBody)) rpcv2.CallBody {
		body := compoundCall
		change(&body)
		return body
	}
	versions := &rpcv2.AcceptedReplyData_PROG_MISMATCH{}
	versions.MismatchInfo.Low, versions.MismatchInfo.High = 4, 4
	rpcVersions := &rpcv2.RejectedReply_RPC_MISMATCH{}
	rpcVersions.MismatchInfo.Low, rpcVersions.MismatchInfo.High = 2, 2
	ok := acceptedAs(&rpcv2.AcceptedReplyData_SUCCESS{})
	stat := func(stat rpcv2.AcceptStat) rpcv2.ReplyBody {
		return acceptedAs(&rpcv2.AcceptedReplyData_default{Stat: stat})
	}
	good := authSys(rpcv2.AuthsysParms{Machinename: "node-1", Uid: 1})
	tail := good
	tail.Body = append(append([]byte{}, good.Body...), 0, 0, 0, 0)
	short := good
	short.Body = good.Body[:len(good.Body)-1]
	for name, test := range map[string]struct {
		call rpcv2.CallBody
		args string
		want rpcv2.ReplyBody
		rest string
	}{
		"NULL":                       {nullCall, "", ok, ""},
		"COMPOUND":                   {compoundCall, "argument", ok, "argument"},
		"COMPOUND with AUTH_SYS":     {with(func(b *rpcv2.CallBody) { b.Cred = good }), "argument", ok, "argument"},
		"garbage":                    {compoundCall, "garbage!", stat(rpcv2.GARBAGE_ARGS), ""},
		"another RPC version":        {with(func(b *rpcv2.CallBody) { b.Rpcvers = 3 }), "", &rpcv2.ReplyBody_MSG_DENIED{Rreply: rpcVersions}, ""},
		"another program":            {with(func(b *rpcv2.CallBody) { b.Prog = 100005 }), "", stat(rpcv2.PROG_UNAVAIL), ""},
		"NFS version 3":              {with(func(b *rpcv2.CallBody) { b.Vers = 3 }), "", acceptedAs(versions), ""},
		"NFS version 5":              {with(func(b *rpcv2.CallBody) { b.Vers = 5 }), "", acceptedAs(versions), ""},
		"another procedure":          {with(func(b *rpcv2.CallBody) { b.Proc = 2 }), "", stat(rpcv2.PROC_UNAVAIL), ""},
		"RPCSEC_GSS":                 {with(func(b *rpcv2.CallBody) { b.Cred.Flavor = rpcv2.RPCSEC_GSS }), "", authError(rpcv2.AUTH_REJECTEDCRED), ""},
		"AUTH_SHORT":                 {with(func(b *rpcv2.CallBody) { b.Cred.Flavor = rpcv2.AUTH_SHORT }), "", authError(rpcv2.AUTH_REJECTEDCRED), ""},
		"AUTH_TLS (RFC 9289)":        {with(func(b *rpcv2.CallBody) { b.Proc, b.Cred.Flavor = 0, 7 }), "", authError(rpcv2.AUTH_REJECTEDCRED), ""},
		"AUTH_SYS cut off":           {with(func(b *rpcv2.CallBody) { b.Cred = short }), "", authError(rpcv2.AUTH_BADCRED), ""},
		"AUTH_SYS with a tail":       {with(func(b *rpcv2.CallBody) { b.Cred = tail }), "", authError(rpcv2.AUTH_BADCRED), ""},
		"AUTH_SYS, another verifier": {with(func(b *rpcv2.CallBody) { b.Cred, b.Verf = good, good }), "", authError(rpcv2.AUTH_BADVERF), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, rest := replyTo(t, &echo{}, callBytes(77, test.call, []byte(test.args)...))
			if diff := cmp.Diff(test.want, got); diff != "" || string(rest) != test.rest {
				t.Errorf("rest %q, reply (-want +got):\n%s", rest, diff)
			}
		})
	}
}

func TestCaller(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.1")
	for name, test := range map[string]struct {
		cred rpcv2.OpaqueAuth
		want Caller
	}{
		"AUTH_NONE": {rpcv2.OpaqueAuth{}, Caller{Addr: address, Anonymous: true}},
		"AUTH_SYS": {
			authSys(rpcv2.AuthsysParms{Machinename: "m", Uid: 1000, Gid: 100, Gids: []uint32{1, 2, 3}}),
			Caller{Addr: address, UID: 1000, GID: 100, GIDs: []uint32{1, 2, 3}},
		},
		"root": {authSys(rpcv2.AuthsysParms{}), Caller{Addr: address}},
	} {
		t.Run(name, func(t *testing.T) {
			body := compoundCall
			body.Cred = test.cred
			handler := &echo{}
			replyTo(t, handler, callBytes(1, body))
			if diff := cmp.Diff(test.want, handler.caller, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("caller (-want +got):\n%s", diff)
			}
		})
	}
}

// What can't be answered ends the connection.
func TestMessagesWithoutAnAnswer(t *testing.T) {
	seventeen := authSys(rpcv2.AuthsysParms{Gids: make([]uint32, 16)})
	long := rpcv2.CallBody{Rpcvers: 2, Cred: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_SYS, Body: make([]byte, 400)}}
	tooLong := callBytes(1, long)
	tooLong[28] = 0xff // the length of the credentials
	for name, message := range map[string][]byte{
		"empty":                          {},
		"a number":                       {1, 2, 3, 4},
		"a reply":                        {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"a call that is cut off":         callBytes(1, compoundCall)[:30],
		"credentials of more than 400 B": tooLong,
	} {
		t.Run(name, func(t *testing.T) {
			if reply, err := answer(context.Background(), &echo{}, Caller{}, message); !errors.Is(err, errNotACall) || reply != nil {
				t.Errorf("%x, %v", reply, err)
			}
		})
	}
	// And 17 groups are one too many, but the header can be read.
	seventeen.Body[len(seventeen.Body)-16*4-1]++
	seventeen.Body = append(seventeen.Body, 0, 0, 0, 0)
	body := compoundCall
	body.Cred = seventeen
	if got, _ := replyTo(t, &echo{}, callBytes(1, body)); !cmp.Equal(got, authError(rpcv2.AUTH_BADCRED)) {
		t.Errorf("17 groups: %v", got)
	}
}
