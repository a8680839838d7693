package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// The operations of NFSv4.1 (RFC 8881, section 16.2) are 3 to 58, those of 4.2 end at 71 (RFC 7862, section 15), extended attributes
// at 75 (RFC 8276, section 8.4).
const (
	firstOperation, lastOperation = 3, 75

	// mostShapes bounds the shapes of one operation: OPEN has 77.
	mostShapes = 24

	opGetXattr, opSetXattr, opListXattrs, opRemoveXattr = 72, 73, 74, 75
)

// values are what the fields of an operation get.
type values struct {
	stateID nfsv4.Stateid4
	session [nfsv4.NFS4_SESSIONID_SIZE]byte
	client  uint64
	handle  []byte
	// other is a second name, for what has two; name is the first.
	name, other string
	// number is for lengths, offsets, counts, sequence numbers; nil: as they were decoded.
	number *uint64
	// bytes are for opaque fields: owners, data, verifiers that may be of any length.
	bytes []byte
	// attributes are for SETATTR, VERIFY and what makes a file.
	attributes nfsv4.Fattr4
}

// choices is a stream of small numbers: what is decoded of it has short lists, short strings and arms of unions by chance.
type choices struct {
	random *rand.Rand
	rest   []byte
}

func (c *choices) Read(into []byte) (int, error) {
	for i := range into {
		if len(c.rest) == 0 {
			word := uint32(0)
			if c.random != nil && c.random.IntN(3) > 0 {
				word = c.random.Uint32N(8) >> c.random.IntN(3)
			}
			c.rest = binary.BigEndian.AppendUint32(nil, word)
		}
		into[i] = c.rest[0]
		c.rest = c.rest[1:]
	}
	return len(into), nil
}

// shapes are the ways in which an operation's arguments can be made up: one for each combination of arms of its unions and of lists
// that are empty or not, as far as a few hundred tries find them; the smallest first. They come from the decoder, which is
// generated from the protocol's definition.
func shapes(code uint32, most int) []nfsv4.NfsArgop4 {
	found := map[string]nfsv4.NfsArgop4{}
	for seed := range uint64(500) {
		stream := &choices{rest: binary.BigEndian.AppendUint32(nil, code)}
		if seed > 0 {
			stream.random = rand.New(rand.NewPCG(uint64(code), seed))
		}
		op, size, err := nfsv4.ReadNfsArgop4(io.LimitReader(stream, 2000))
		if err != nil || size > 1000 {
			continue
		}
		name := signature(reflect.ValueOf(op))
		if before := found[name]; before == nil || op.GetEncodedSizeBytes() < before.GetEncodedSizeBytes() {
			found[name] = op
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return 100000*(found[a].GetEncodedSizeBytes()-found[b].GetEncodedSizeBytes()) + strings.Compare(a, b)
	})
	var all []nfsv4.NfsArgop4
	for _, name := range names[:min(most, len(names))] {
		all = append(all, found[name])
	}
	return all
}

// signature names the arms of the unions, and which lists have something.
func signature(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return "-"
		}
		return v.Elem().Type().Name() + signature(v.Elem())
	case reflect.Struct:
		text := "("
		for i := range v.NumField() {
			text += signature(v.Field(i))
		}
		return text + ")"
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || v.Len() == 0 {
			return ""
		}
		return "[" + signature(v.Index(0)) + "]"
	default:
		return ""
	}
}

// encode is an operation with the values in its fields. Those that are no operation of package nfsv4 are written by hand.
func encode(code uint32, shape nfsv4.NfsArgop4, with values) []byte {
	if shape == nil {
		return extended(code, with)
	}
	// A copy, for shapes are used again.
	var plain bytes.Buffer
	_, _ = shape.WriteTo(&plain)
	op, _, err := nfsv4.ReadNfsArgop4(&plain)
	if err != nil {
		return nil
	}
	f := filler{values: with}
	f.fill(reflect.ValueOf(op).Elem(), "")
	var encoded bytes.Buffer
	if _, err := op.WriteTo(&encoded); err != nil {
		return nil
	}
	return encoded.Bytes()
}

// filler sets the fields of an operation by their types and names.
type filler struct {
	values
	names int
}

func (f *filler) fill(v reflect.Value, name string) {
	switch {
	case v.Type() == reflect.TypeFor[nfsv4.Stateid4]():
		v.Set(reflect.ValueOf(f.stateID))
		return
	case v.Type() == reflect.TypeFor[[nfsv4.NFS4_SESSIONID_SIZE]byte]() && strings.Contains(strings.ToLower(name), "sess"):
		v.Set(reflect.ValueOf(f.session))
		return
	case v.Type() == reflect.TypeFor[nfsv4.Fattr4]():
		v.Set(reflect.ValueOf(f.attributes))
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		// The arms are pointers to structs, or have no fields at all.
		if !v.IsNil() && v.Elem().Kind() == reflect.Pointer {
			f.fill(v.Elem().Elem(), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(f.opaque(name))
			return
		}
		for i := range v.Len() {
			f.fill(v.Index(i), name)
		}
	case reflect.String:
		v.SetString(f.name)
		if f.names++; f.names > 1 {
			v.SetString(f.other)
		}
	case reflect.Uint64, reflect.Uint32:
		switch {
		case strings.HasSuffix(name, "lientid"):
			v.SetUint(f.client)
		case f.number != nil:
			v.SetUint(*f.number & (1<<v.Type().Bits() - 1))
		case strings.HasSuffix(name, "ount"):
			v.SetUint(4096)
		}
	default:
	}
}

func (f *filler) opaque(name string) []byte {
	if name == "Object" {
		return f.handle
	}
	return f.bytes
}

// extended is an operation of RFC 8276.
func extended(code uint32, with values) []byte {
	encoded := binary.BigEndian.AppendUint32(nil, code)
	text := func(value string) {
		encoded = binary.BigEndian.AppendUint32(encoded, uint32(len(value)))
		encoded = append(append(encoded, value...), make([]byte, -len(value)&3)...)
	}
	number := uint64(4096)
	if with.number != nil {
		number = *with.number
	}
	switch code {
	case opGetXattr, opRemoveXattr:
		text(with.name)
	case opSetXattr:
		encoded = binary.BigEndian.AppendUint32(encoded, 0) // SETXATTR4_EITHER
		text(with.name)
		text(string(with.bytes))
	case opListXattrs:
		encoded = binary.BigEndian.AppendUint64(encoded, 0)
		encoded = binary.BigEndian.AppendUint32(encoded, uint32(number))
	default:
		return nil
	}
	return encoded
}

func nameOf(code uint32) string {
	if name, known := nfsv4.NfsOpnum4_name[nfsv4.NfsOpnum4(code)]; known {
		return name
	}
	return fmt.Sprintf("OP_%d", code)
}

// TestEveryOperationHasAGenerator fails when an operation of the protocol is left out: TestOperations and TestFuzz send nothing else.
func TestEveryOperationHasAGenerator(t *testing.T) {
	for code := uint32(firstOperation); code <= lastOperation; code++ {
		if found := generated(code); len(found) == 0 || len(encode(code, found[0], values{})) < 4 {
			t.Errorf("operation %d has no generator", code)
		}
	}
	for code, least := range map[nfsv4.NfsOpnum4]int{nfsv4.OP_OPEN: 20, nfsv4.OP_LOCK: 2, nfsv4.OP_CREATE: 6, nfsv4.OP_LAYOUTRETURN: 2, nfsv4.OP_EXCHANGE_ID: 3} {
		if found := shapes(uint32(code), 100); len(found) < least {
			t.Errorf("%s has only %d shapes", nameOf(uint32(code)), len(found))
		}
	}
}

// generated are the shapes of an operation; nil is one that is written by hand.
func generated(code uint32) []nfsv4.NfsArgop4 {
	if found := shapes(code, mostShapes); len(found) > 0 {
		return found
	}
	if extended(code, values{}) != nil {
		return []nfsv4.NfsArgop4{nil}
	}
	return nil
}
