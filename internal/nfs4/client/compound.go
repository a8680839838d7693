package client

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// Procedures of NFS version 4.
const (
	procedureNull     = 0
	procedureCompound = 1
)

// opName is an operation as RFC 8881 names it.
func opName(number nfsv4.NfsOpnum4) string {
	if name, ok := nfsv4.NfsOpnum4_name[number]; ok {
		return strings.TrimPrefix(name, "OP_")
	}
	return fmt.Sprintf("operation %d", int32(number))
}

func encodeCompound(ops ...nfsv4.NfsArgop4) ([]byte, error) {
	args := nfsv4.Compound4args{Tag: "howdah", Minorversion: 1, Argarray: ops}
	var encoded bytes.Buffer
	encoded.Grow(args.GetEncodedSizeBytes())
	if _, err := args.WriteTo(&encoded); err != nil {
		return nil, fmt.Errorf("encode an NFS request: %w", err)
	}
	return encoded.Bytes(), nil
}

// results are those of a compound: all operations up to the first that failed.
type results struct {
	status nfsv4.Nfsstat4
	list   []nfsv4.NfsResop4
}

func decodeCompound(encoded []byte) (results, error) {
	var res nfsv4.Compound4res
	if _, err := res.ReadFrom(bytes.NewReader(encoded)); err != nil {
		return results{}, &RPCError{Reason: "undecodable COMPOUND: " + err.Error()}
	}
	if res.Status == nfsv4.NFS4_OK && len(res.Resarray) == 0 {
		return results{}, &RPCError{Reason: "COMPOUND without results"}
	}
	return results{status: res.Status, list: res.Resarray}, nil
}

// err is nil or the failure of the last operation.
func (r results) err() error {
	if r.status == nfsv4.NFS4_OK {
		return nil
	}
	op := "COMPOUND"
	if n := len(r.list); n > 0 {
		op = opName(r.list[n-1].GetResop())
	}
	return &StatusError{Op: op, Status: r.status}
}

// single executes a compound of one operation that needs no session.
func single(ctx context.Context, l *link, cred Credentials, op nfsv4.NfsArgop4) (nfsv4.NfsResop4, error) {
	args, err := encodeCompound(op)
	if err != nil {
		return nil, err
	}
	encoded, err := l.call(ctx, procedureCompound, cred, args)
	if err != nil {
		return nil, err
	}
	r, err := decodeCompound(encoded)
	if err != nil {
		return nil, err
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.list[0], nil
}
