package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// ID identifies a node: 128 bits of SHA-256 over its absolute path. Clients choose
// names, so a weaker hash would let one of them make two directories with one handle.
type ID [16]byte

// PathID is the identity of the node with an absolute path.
func PathID(path string) ID {
	sum := sha256.Sum256([]byte(path))
	return ID(sum[:16])
}

// FileID is the fileid attribute. It has 63 bits: some clients' user space is signed.
func (id ID) FileID() uint64 {
	v := binary.BigEndian.Uint64(id[:8]) >> 1
	if v == 0 {
		return 1
	}
	return v
}

// firstCookie is the least cookie that an entry can have: 0, 1 and 2 are reserved
// (RFC 8881 section 18.23.3).
const firstCookie = 3

// Cookie is the READDIR cookie of the entry. It depends on the path only, so it
// stays good while other entries come and go.
func (id ID) Cookie() uint64 {
	v := binary.BigEndian.Uint64(id[8:]) >> 1
	if v < firstCookie {
		return firstCookie
	}
	return v
}

// HandleKind tells what a file handle stands for.
type HandleKind byte

const (
	// HandleDirectory is a directory of the namespace.
	HandleDirectory HandleKind = 0
	// HandleCreated is given for a directory in the compound that made it, when the directory
	// is a junction for everybody from then on. Later use of it is stale on purpose:
	// the client looks the name up again and meets the referral.
	HandleCreated HandleKind = 1
)

const (
	handleMagic   = 'H'
	handleVersion = 1
	handleSize    = 20
)

// ErrBadHandle says that bytes are not a handle of this or an older version.
var ErrBadHandle = errors.New("not a file handle of this server")

// EncodeHandle gives the file handle of a node, 20 bytes.
func EncodeHandle(kind HandleKind, id ID) []byte {
	b := make([]byte, 0, handleSize)
	b = append(b, handleMagic, handleVersion, byte(kind), 0)
	return append(b, id[:]...)
}

// DecodeHandle reads a file handle; the error is ErrBadHandle.
func DecodeHandle(b []byte) (HandleKind, ID, error) {
	if len(b) != handleSize || b[0] != handleMagic || b[1] != handleVersion || b[2] > byte(HandleCreated) || b[3] != 0 {
		return 0, ID{}, ErrBadHandle
	}
	return HandleKind(b[2]), ID(b[4:]), nil
}

// hash64 is 64 bits of SHA-256 over the parts.
func hash64(parts ...string) uint64 {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
