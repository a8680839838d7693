package operations

import (
	"encoding/binary"
	"strconv"
)

// reader reads attribute values in XDR; after an error it gives zeros.
type reader struct {
	b                   []byte
	malformed, badOwner bool
}

func (r *reader) u32() uint32 {
	if len(r.b) < 4 {
		r.malformed, r.b = true, nil
		return 0
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// skip passes over bytes.
func (r *reader) skip(n int64) {
	if n > int64(len(r.b)) {
		r.malformed, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

// skipOpaque passes over an opaque or string, with its padding.
func (r *reader) skipOpaque() { r.skip((int64(r.u32()) + 3) &^ 3) }

// skipList passes over a list, item by item. It ends where the bytes do, whatever length the list claims.
func (r *reader) skipList(item func()) {
	for n := r.u32(); n > 0 && !r.malformed; n-- {
		item()
	}
}

// id reads an owner: a number in decimal.
func (r *reader) id() *uint32 {
	n := int64(r.u32())
	padded := (n + 3) &^ 3
	if padded > int64(len(r.b)) {
		r.malformed, r.b = true, nil
		return nil
	}
	v, err := strconv.ParseUint(string(r.b[:n]), 10, 32)
	r.b = r.b[padded:]
	if err != nil {
		r.badOwner = true
		return nil
	}
	id := uint32(v)
	return &id
}
