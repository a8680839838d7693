package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ID identifies a node to clients: 128 bits of SHA-256 over what the node is (identity.go). It is what a file handle
// holds, and nothing else that clients get tells of it: file ids and cookies are hashes of it.
type ID [16]byte

// FileID is the fileid attribute. It has 63 bits: some clients' user space is signed.
func (id ID) FileID() uint64 { return max(hash64("fileid", string(id[:]))>>1, 1) }

// firstCookie is the least cookie that an entry can have: 0, 1 and 2 are reserved
// (RFC 8881 section 18.23.3).
const firstCookie = 3

// Cookie is the READDIR cookie of the entry. It depends on what the entry is and on nothing beside it, so it
// stays good while other entries come and go, and while this one is renamed.
func (id ID) Cookie() uint64 { return max(hash64("cookie", string(id[:]))>>1, firstCookie) }

// HandleKind tells what a file handle stands for.
type HandleKind byte

const (
	// HandleDirectory is a directory of the namespace.
	HandleDirectory HandleKind = 0
	// HandleCreated is what the maker of a junction gets for it. Its attributes can be read and set through it. Any other
	// use is stale on purpose: the client looks the name up again and meets the referral.
	HandleCreated HandleKind = 1
	// handleWaiting is a place where clients wait for a junction in the directory with this identity to be served. Its handles are longer.
	handleWaiting HandleKind = 2
)

const (
	handleMagic = 'H'
	// handleVersion 1 had hashes of paths. Such a handle is well-formed and stands for nothing: it is stale.
	handleVersion = 2
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
	if len(b) != handleSize || b[0] != handleMagic || b[1] == 0 || b[1] > handleVersion || b[2] > byte(HandleCreated) || b[3] != 0 {
		return 0, ID{}, ErrBadHandle
	}
	return HandleKind(b[2]), ID(b[4:]), nil
}

// Waiting is a place where clients wait for a junction to be served. There is one for each name and owner, so it is not that of a junction: while
// clients wait, a junction can get another owner, and another identity with it.
type Waiting struct {
	// In is the directory that has the junction.
	In ID
	// Key is made from the name and the owner.
	Key uint64
}

// NewWaiting is the place for a junction with a name in a directory, and an owner.
func NewWaiting(in ID, name, server string) Waiting {
	return Waiting{In: in, Key: hash64("waiting", name, server)}
}

// ID is the identity of the place itself.
func (w Waiting) ID() ID { return newID("waiting", string(w.Handle())) }

// waitingSize is that of the handle of a place, in bytes.
const waitingSize = handleSize + 8

// Handle is the file handle of the place, 28 bytes.
func (w Waiting) Handle() []byte {
	return binary.BigEndian.AppendUint64(EncodeHandle(handleWaiting, w.In), w.Key)
}

// DecodeWaiting reads the file handle of a place; false: it is none.
func DecodeWaiting(b []byte) (Waiting, bool) {
	if len(b) != waitingSize || !bytes.Equal(b[:4], []byte{handleMagic, handleVersion, byte(handleWaiting), 0}) {
		return Waiting{}, false
	}
	return Waiting{In: ID(b[4:handleSize]), Key: binary.BigEndian.Uint64(b[handleSize:])}, true
}

// hash64 is 64 bits of SHA-256 over the parts.
func hash64(parts ...string) uint64 {
	sum := sum256(parts...)
	return binary.BigEndian.Uint64(sum[:])
}

func appendLength(b []byte, n int) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }
