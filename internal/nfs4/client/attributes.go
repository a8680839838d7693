package client

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/runtime"
)

// wanted are the attributes of Stat and ReadDir, in the order of their numbers, which is
// the order of their values (RFC 8881 section 3.3.7 and 5.6 for the numbers).
var wanted = []int{
	nfsv4.FATTR4_TYPE, nfsv4.FATTR4_CHANGE, nfsv4.FATTR4_SIZE, nfsv4.FATTR4_FSID, nfsv4.FATTR4_RDATTR_ERROR, nfsv4.FATTR4_FILEID,
	nfsv4.FATTR4_MODE, nfsv4.FATTR4_NUMLINKS, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP,
	nfsv4.FATTR4_TIME_ACCESS, nfsv4.FATTR4_TIME_METADATA, nfsv4.FATTR4_TIME_MODIFY,
}

func bitmap(attributes ...int) []uint32 {
	var words []uint32
	for _, attribute := range attributes {
		for len(words) <= attribute/32 {
			words = append(words, 0)
		}
		words[attribute/32] |= 1 << (attribute % 32)
	}
	return words
}

// values is the values of a Fattr4, read one after the other; the first error stays.
type values struct {
	reader *bytes.Reader
	err    error
}

func take[T any](v *values, read func() (T, int64, error)) T {
	var value T
	if v.err == nil {
		value, _, v.err = read()
	}
	return value
}

func (v *values) uint32() uint32 {
	return take(v, func() (uint32, int64, error) { return runtime.ReadUnsignedInt(v.reader) })
}

func (v *values) uint64() uint64 {
	return take(v, func() (uint64, int64, error) { return runtime.ReadUnsignedHyper(v.reader) })
}

func (v *values) time() time.Time {
	seconds := int64(v.uint64())
	return time.Unix(seconds, int64(v.uint32()))
}

func (v *values) number() uint32 {
	name := take(v, func() (string, int64, error) { return runtime.ReadUTF8String(v.reader, nfsv4.NFS4_OPAQUE_LIMIT) })
	id, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return UnknownID
	}
	return uint32(id)
}

// decodeAttributes reads attributes out of those in wanted. readError is the
// attribute rdattr_error of a directory entry.
func decodeAttributes(fattr nfsv4.Fattr4) (a Attributes, readError nfsv4.Nfsstat4, err error) {
	v := &values{reader: bytes.NewReader(fattr.AttrVals)}
	known := 0
	for _, attribute := range wanted {
		if !has(fattr.Attrmask, attribute) {
			continue
		}
		known++
		switch attribute {
		case nfsv4.FATTR4_TYPE:
			a.Type = nfsv4.NfsFtype4(v.uint32())
		case nfsv4.FATTR4_CHANGE:
			a.Change = v.uint64()
		case nfsv4.FATTR4_SIZE:
			a.Size = v.uint64()
		case nfsv4.FATTR4_FSID:
			a.FSIDMajor, a.FSIDMinor = v.uint64(), v.uint64()
		case nfsv4.FATTR4_RDATTR_ERROR:
			readError = nfsv4.Nfsstat4(v.uint32())
		case nfsv4.FATTR4_FILEID:
			a.FileID = v.uint64()
		case nfsv4.FATTR4_MODE:
			a.Mode = v.uint32()
		case nfsv4.FATTR4_NUMLINKS:
			a.Links = v.uint32()
		case nfsv4.FATTR4_OWNER:
			a.Owner = v.number()
		case nfsv4.FATTR4_OWNER_GROUP:
			a.Group = v.number()
		case nfsv4.FATTR4_TIME_ACCESS:
			a.Access = v.time()
		case nfsv4.FATTR4_TIME_METADATA:
			a.Metadata = v.time()
		case nfsv4.FATTR4_TIME_MODIFY:
			a.Modify = v.time()
		}
	}
	switch {
	case v.err != nil:
		return a, 0, fmt.Errorf("decode attributes: %w", v.err)
	case known != count(fattr.Attrmask) || v.reader.Len() > 0:
		return a, 0, errors.New("the NFS server sent attributes that were not asked for")
	}
	return a, readError, nil
}

func has(mask []uint32, attribute int) bool {
	return attribute/32 < len(mask) && mask[attribute/32]&(1<<(attribute%32)) != 0
}

func count(mask []uint32) (n int) {
	for attribute := range 32 * len(mask) {
		if has(mask, attribute) {
			n++
		}
	}
	return n
}

// encodeCreate is the attributes of a new directory, in the order of their numbers.
func encodeCreate(options MkdirOptions) nfsv4.Fattr4 {
	// The errors of a bytes.Buffer are always nil, and numbers are UTF-8.
	var encoded bytes.Buffer
	attributes := []int{nfsv4.FATTR4_MODE}
	_, _ = runtime.WriteUnsignedInt(&encoded, options.Mode)
	for _, field := range []struct {
		attribute int
		id        *uint32
	}{{nfsv4.FATTR4_OWNER, options.Owner}, {nfsv4.FATTR4_OWNER_GROUP, options.Group}} {
		if field.id != nil {
			attributes = append(attributes, field.attribute)
			_, _ = runtime.WriteUTF8String(&encoded, nfsv4.NFS4_OPAQUE_LIMIT, strconv.FormatUint(uint64(*field.id), 10))
		}
	}
	return nfsv4.Fattr4{Attrmask: bitmap(attributes...), AttrVals: encoded.Bytes()}
}

// isDirectory is the attribute type of a directory.
func isDirectory() nfsv4.Fattr4 {
	return nfsv4.Fattr4{Attrmask: bitmap(nfsv4.FATTR4_TYPE), AttrVals: []byte{0, 0, 0, byte(nfsv4.NF4DIR)}}
}
