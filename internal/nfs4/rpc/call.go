package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
)

const (
	program        = nfsv4.NFS4_PROGRAM_PROGRAM_NUMBER
	programVersion = 4
	// Procedures of NFS version 4 (RFC 8881 section 16).
	procedureNull     = 0
	procedureCompound = 1
	rpcVersion        = 2
)

// Handler executes COMPOUND.
type Handler interface {
	// Compound gets the encoded COMPOUND4args (RFC 8881 section 16.2) and returns the encoded
	// COMPOUND4res and SUCCESS, or nothing and GARBAGE_ARGS or SYSTEM_ERR. It may keep args.
	// ctx ends when the server shuts down, not when the connection is lost.
	Compound(ctx context.Context, caller Caller, args []byte) ([]byte, rpcv2.AcceptStat)
}

// errNotACall is a message that can't be answered: the connection is closed.
var errNotACall = errors.New("message is not an RPC call")

// answer executes one message and returns the reply as a record. An error means that
// the message has no reply and the stream can't be trusted.
func answer(ctx context.Context, handler Handler, caller Caller, message []byte) ([]byte, error) {
	// The version comes before everything that another version may lay out differently.
	if len(message) < 12 || binary.BigEndian.Uint32(message[4:]) != uint32(rpcv2.CALL) {
		return nil, errNotACall
	}
	xid := binary.BigEndian.Uint32(message)
	if binary.BigEndian.Uint32(message[8:]) != rpcVersion {
		mismatch := &rpcv2.RejectedReply_RPC_MISMATCH{}
		mismatch.MismatchInfo.Low, mismatch.MismatchInfo.High = rpcVersion, rpcVersion
		return denied(xid, mismatch)
	}
	var call rpcv2.CallBody
	body := bytes.NewReader(message[8:])
	if _, err := call.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotACall, err)
	}
	credentials, authStat := authenticate(&call.Cred, &call.Verf)
	// RFC 5531 section 8: NULL is not authenticated, so that it can be used to probe,
	// but a flavor that is not spoken here must be refused even there.
	if authStat != rpcv2.AUTH_OK {
		return denied(xid, &rpcv2.RejectedReply_AUTH_ERROR{Stat: authStat})
	}
	credentials.Addr, credentials.Port, credentials.Door = caller.Addr, caller.Port, caller.Door
	credentials.Link, credentials.Keep = caller.Link, caller.Keep
	args := message[len(message)-body.Len():]
	switch {
	case call.Prog != program:
		return accepted(xid, &rpcv2.AcceptedReplyData_default{Stat: rpcv2.PROG_UNAVAIL}, nil)
	case call.Vers != programVersion:
		mismatch := &rpcv2.AcceptedReplyData_PROG_MISMATCH{}
		mismatch.MismatchInfo.Low, mismatch.MismatchInfo.High = programVersion, programVersion
		return accepted(xid, mismatch, nil)
	case call.Proc == procedureNull:
		return accepted(xid, &rpcv2.AcceptedReplyData_SUCCESS{}, nil)
	case call.Proc != procedureCompound:
		return accepted(xid, &rpcv2.AcceptedReplyData_default{Stat: rpcv2.PROC_UNAVAIL}, nil)
	}
	results, stat := handler.Compound(ctx, credentials, args)
	if stat != rpcv2.SUCCESS {
		return accepted(xid, &rpcv2.AcceptedReplyData_default{Stat: stat}, nil)
	}
	return accepted(xid, &rpcv2.AcceptedReplyData_SUCCESS{}, results)
}

func accepted(xid uint32, data rpcv2.AcceptedReplyData, results []byte) ([]byte, error) {
	return reply(xid, &rpcv2.ReplyBody_MSG_ACCEPTED{
		Areply: rpcv2.AcceptedReply{Verf: rpcv2.OpaqueAuth{Flavor: rpcv2.AUTH_NONE}, ReplyData: data},
	}, results)
}

func denied(xid uint32, rejected rpcv2.RejectedReply) ([]byte, error) {
	return reply(xid, &rpcv2.ReplyBody_MSG_DENIED{Rreply: rejected}, nil)
}

func reply(xid uint32, body rpcv2.ReplyBody, results []byte) ([]byte, error) {
	message := rpcv2.RpcMsg{Xid: xid, Body: &rpcv2.RpcMsgBody_REPLY{Rbody: body}}
	record := bytes.NewBuffer(NewRecord(message.GetEncodedSizeBytes() + len(results)))
	if _, err := message.WriteTo(record); err != nil {
		return nil, fmt.Errorf("encode the header of an RPC reply: %w", err)
	}
	record.Write(results)
	return FinishRecord(record.Bytes()), nil
}
