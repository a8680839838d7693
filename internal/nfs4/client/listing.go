package client

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/runtime"
)

// page is a successful READDIR (RFC 8881 section 18.23.2), read here because go-xdr refuses the
// whole reply for one name that is not UTF-8. ganesha lets users make such names.
type page struct {
	// NfsResop4_OP_READDIR makes it a result; it is empty.
	*nfsv4.NfsResop4_OP_READDIR
	verifier [8]byte
	entries  []listed
	// cookie is that of the last entry, also of one that was left out.
	cookie uint64
	empty  bool
	eof    bool
}

// listed is an entry as it came.
type listed struct {
	name  string
	fattr nfsv4.Fattr4
}

// isPage is true if encoded starts with a successful READDIR.
func isPage(encoded []byte) bool {
	return len(encoded) >= 8 && binary.BigEndian.Uint32(encoded) == uint32(nfsv4.OP_READDIR) &&
		binary.BigEndian.Uint32(encoded[4:]) == uint32(nfsv4.NFS4_OK)
}

// readOpaque reads an opaque of any length. go-xdr's takes 512 bytes for the shortest, which is most of the time for a
// directory with millions of entries.
func readOpaque(r *bytes.Reader) ([]byte, error) {
	size, _, err := runtime.ReadUnsignedInt(r)
	if err != nil {
		return nil, err
	}
	padded := (int64(size) + 3) &^ 3
	if padded > int64(r.Len()) {
		return nil, io.ErrUnexpectedEOF
	}
	opaque := make([]byte, padded)
	_, err = io.ReadFull(r, opaque)
	return opaque[:size:size], err
}

// readFattr reads attributes (RFC 8881 section 3.3.7).
func readFattr(r *bytes.Reader) (fattr nfsv4.Fattr4, err error) {
	words, _, err := runtime.ReadUnsignedInt(r)
	if err != nil {
		return fattr, err
	}
	if int64(words)*4 > int64(r.Len()) {
		return fattr, io.ErrUnexpectedEOF
	}
	fattr.Attrmask = make([]uint32, words)
	for i := range fattr.Attrmask {
		if fattr.Attrmask[i], _, err = runtime.ReadUnsignedInt(r); err != nil {
			return fattr, err
		}
	}
	fattr.AttrVals, err = readOpaque(r)
	return fattr, err
}

// readPage reads a successful READDIR. Names that are not UTF-8 are left out: no
// operation of this client could name them.
func readPage(r *bytes.Reader) (*page, error) {
	p := &page{NfsResop4_OP_READDIR: &nfsv4.NfsResop4_OP_READDIR{}, empty: true}
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	copy(p.verifier[:], head[8:])
	for {
		follows, _, err := runtime.ReadBool(r)
		if err != nil {
			return nil, err
		}
		if !follows {
			break
		}
		p.empty = false
		if p.cookie, _, err = runtime.ReadUnsignedHyper(r); err != nil {
			return nil, err
		}
		name, err := readOpaque(r)
		if err != nil {
			return nil, fmt.Errorf("name of a directory entry: %w", err)
		}
		var entry listed
		if entry.fattr, err = readFattr(r); err != nil {
			return nil, fmt.Errorf("attributes of a directory entry: %w", err)
		}
		if entry.name = string(name); utf8.Valid(name) {
			p.entries = append(p.entries, entry)
		}
	}
	var err error
	p.eof, _, err = runtime.ReadBool(r)
	return p, err
}
