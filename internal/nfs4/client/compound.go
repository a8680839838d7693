package client

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/runtime"
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
	r, err := readCompound(encoded)
	if err != nil {
		return results{}, &RPCError{Reason: "undecodable COMPOUND: " + err.Error()}
	}
	if r.status == nfsv4.NFS4_OK && len(r.list) == 0 {
		return results{}, &RPCError{Reason: "COMPOUND without results"}
	}
	return r, nil
}

// readCompound reads COMPOUND4res (RFC 8881 section 16.2) result by result.
func readCompound(encoded []byte) (r results, err error) {
	reader := bytes.NewReader(encoded)
	status, _, err := runtime.ReadInt(reader)
	if err != nil {
		return r, err
	}
	if _, _, err := runtime.ReadVariableLengthOpaque(reader, nfsv4.NFS4_OPAQUE_LIMIT); err != nil {
		return r, fmt.Errorf("tag: %w", err)
	}
	count, _, err := runtime.ReadUnsignedInt(reader)
	if err != nil {
		return r, err
	}
	r.status = nfsv4.Nfsstat4(status)
	for range count {
		var res nfsv4.NfsResop4
		if isPage(encoded[len(encoded)-reader.Len():]) {
			res, err = readPage(reader)
		} else {
			res, _, err = nfsv4.ReadNfsResop4(reader)
		}
		if err != nil {
			return r, err
		}
		r.list = append(r.list, res)
	}
	return r, nil
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
