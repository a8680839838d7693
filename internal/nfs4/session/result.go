package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// Fail is the result of op with an error status (or NFS4_OK, for operations that return nothing
// but a status). What a status carries beside itself, such as the conflicting lock of
// NFS4ERR_DENIED, is zero.
func Fail(op nfsv4.NfsArgop4, status nfsv4.Nfsstat4) nfsv4.NfsResop4 {
	return FailNumber(op.GetArgop(), status)
}

// FailNumber is Fail by the number of an operation. A number that is no operation of NFSv4.2
// gives the result of OP_ILLEGAL.
func FailNumber(number nfsv4.NfsOpnum4, status nfsv4.Nfsstat4) nfsv4.NfsResop4 {
	// Every result starts with the number and the status (RFC 7863), and everything that may
	// follow can be read from zeros: empty arrays, false, absent. So go-xdr's own decoder
	// finds the right type, and there is no table to keep.
	var head [8]byte
	binary.BigEndian.PutUint32(head[:4], uint32(number))
	binary.BigEndian.PutUint32(head[4:], uint32(status))
	res, _, err := nfsv4.ReadNfsResop4(io.MultiReader(bytes.NewReader(head[:]), zeros{}))
	if err != nil {
		return &nfsv4.NfsResop4_OP_ILLEGAL{Opillegal: nfsv4.Illegal4res{Status: status}}
	}
	return res
}

// StatusOf is the status that a result carries.
func StatusOf(res nfsv4.NfsResop4) nfsv4.Nfsstat4 {
	var head prefix
	// The only error is the one that ends the encoding once the status is known,
	// or that of a result that can't be encoded.
	if _, err := res.WriteTo(&head); head.n < len(head.bytes) {
		panic(fmt.Sprintf("%T has no status: %v", res, err))
	}
	return nfsv4.Nfsstat4(binary.BigEndian.Uint32(head.bytes[4:]))
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

var errPrefixFull = errors.New("prefix is complete")

// prefix keeps the first bytes that are written to it and refuses the rest.
type prefix struct {
	bytes [8]byte
	n     int
}

func (w *prefix) Write(p []byte) (int, error) {
	n := copy(w.bytes[w.n:], p)
	w.n += n
	if n < len(p) {
		return n, errPrefixFull
	}
	return n, nil
}
