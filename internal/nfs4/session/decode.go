package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	// tagLimit bounds the tag; RFC 8881 section 16.2.3 has no limit. Clients send at most a word.
	tagLimit = 1024
	// readBudget is how many pieces a compound may consist of. go-xdr allocates at least
	// 512 bytes for each opaque, however short, so that a small message full of empty ones
	// would cost a hundred times its size. Real compounds have fewer than 200 pieces.
	readBudget = 4096
)

var errTooComplex = errors.New("compound has too many parts")

// decoder reads a compound's arguments piece by piece.
type decoder struct {
	*bytes.Reader
	args   []byte
	budget int
}

func newDecoder(args []byte) *decoder {
	return &decoder{Reader: bytes.NewReader(args), args: args, budget: readBudget}
}

// Read counts pieces.
func (d *decoder) Read(p []byte) (int, error) {
	if d.budget == 0 {
		return 0, errTooComplex
	}
	d.budget--
	return d.Reader.Read(p)
}

// WriteTo and the like of bytes.Reader would go round Read.
func (d *decoder) WriteTo(io.Writer) (int64, error) { return 0, errTooComplex }

// rest is what has not been read.
func (d *decoder) rest() []byte { return d.args[len(d.args)-d.Len():] }

// uint32 reads a number.
func (d *decoder) uint32() (uint32, error) {
	var word [4]byte
	_, err := io.ReadFull(d, word[:])
	return binary.BigEndian.Uint32(word[:]), err
}

// header is COMPOUND4args without the operations (RFC 8881 section 16.2).
type header struct {
	tag          string
	minorVersion uint32
	operations   uint32
}

// header reads the header. The status is NFS4ERR_INVAL for a tag that is not UTF-8
// (section 14.6) or too long, which is not echoed then; an error means garbage.
func (d *decoder) header() (header, nfsv4.Nfsstat4, error) {
	var h header
	size, err := d.uint32()
	if err != nil {
		return h, 0, err
	}
	padded := (int64(size) + 3) &^ 3
	if padded > int64(d.Len()) {
		return h, 0, io.ErrUnexpectedEOF
	}
	status := nfsv4.NFS4_OK
	if tag := d.rest()[:size]; size <= tagLimit && utf8.Valid(tag) {
		h.tag = string(tag)
	} else {
		status = nfsv4.NFS4ERR_INVAL
	}
	if _, err := d.Seek(padded, io.SeekCurrent); err != nil {
		return h, 0, err
	}
	if h.minorVersion, err = d.uint32(); err != nil {
		return h, 0, err
	}
	if h.operations, err = d.uint32(); err != nil {
		return h, 0, err
	}
	return h, status, nil
}

// peek is the number of the next operation, if there is one.
func (d *decoder) peek() (nfsv4.NfsOpnum4, bool) {
	if rest := d.rest(); len(rest) >= 4 {
		return nfsv4.NfsOpnum4(binary.BigEndian.Uint32(rest)), true
	}
	return 0, false
}

// operation reads the next operation. The result is its failure if it can't be read
// or does not belong to the minor version.
func (d *decoder) operation(minorVersion uint32) (nfsv4.NfsArgop4, nfsv4.NfsResop4) {
	number, ok := d.peek()
	if !ok {
		return nil, FailNumber(nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_BADXDR)
	}
	switch availability(number, minorVersion) {
	case illegal:
		return nil, FailNumber(nfsv4.OP_ILLEGAL, nfsv4.NFS4ERR_OP_ILLEGAL)
	case retired:
		return nil, FailNumber(number, nfsv4.NFS4ERR_NOTSUPP)
	}
	op, _, err := nfsv4.ReadNfsArgop4(d)
	if err != nil {
		return nil, FailNumber(number, decodeStatus(number, err))
	}
	return op, nil
}

// decodeStatus tells a name that is not UTF-8 (RFC 8881 section 14.4: NFS4ERR_INVAL) from arguments that make no sense
// (section 15.1.1.1: NFS4ERR_BADXDR). Such a name can't be made here, so a LOOKUP does not find it: with NFS4ERR_INVAL, programs
// that only check whether a file exists would fail.
func decodeStatus(number nfsv4.NfsOpnum4, err error) nfsv4.Nfsstat4 {
	switch {
	case err.Error() != "string is not valid UTF-8": // go-xdr does not export this error.
		return nfsv4.NFS4ERR_BADXDR
	case number == nfsv4.OP_LOOKUP:
		return nfsv4.NFS4ERR_NOENT
	}
	return nfsv4.NFS4ERR_INVAL
}

type available int

const (
	permitted available = iota
	// illegal: not an operation of the minor version (RFC 8881 section 18.52).
	illegal
	// retired: mandatory not to implement since 4.1 (RFC 8881 section 17).
	retired
)

func availability(number nfsv4.NfsOpnum4, minorVersion uint32) available {
	switch number {
	case nfsv4.OP_OPEN_CONFIRM, nfsv4.OP_RENEW, nfsv4.OP_SETCLIENTID, nfsv4.OP_SETCLIENTID_CONFIRM, nfsv4.OP_RELEASE_LOCKOWNER:
		return retired
	}
	last := nfsv4.OP_RECLAIM_COMPLETE
	if minorVersion >= 2 {
		last = nfsv4.OP_CLONE
	}
	if number < nfsv4.OP_ACCESS || number > last {
		return illegal
	}
	return permitted
}

// changes is true for operations that can't be undone: they are not begun unless
// their result is sure to fit in the reply (RFC 8881 section 2.10.6.4).
func changes(number nfsv4.NfsOpnum4) bool {
	switch number {
	case nfsv4.OP_CREATE, nfsv4.OP_REMOVE, nfsv4.OP_RENAME, nfsv4.OP_LINK, nfsv4.OP_SETATTR, nfsv4.OP_OPEN, nfsv4.OP_CLOSE,
		nfsv4.OP_LOCK, nfsv4.OP_LOCKU, nfsv4.OP_OPEN_DOWNGRADE, nfsv4.OP_OPENATTR, nfsv4.OP_WRITE,
		nfsv4.OP_ALLOCATE, nfsv4.OP_CLONE, nfsv4.OP_COPY, nfsv4.OP_DEALLOCATE, nfsv4.OP_WRITE_SAME:
		return true
	}
	return false
}
