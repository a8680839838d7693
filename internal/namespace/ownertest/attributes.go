package ownertest

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// attributes encodes those of a directory that are asked for and known here, in the order of their numbers.
func (o *Owner) attributes(p string, request []uint32) nfsv4.Fattr4 {
	d := o.dirs[p]
	id := fnv.New64a()
	_, _ = id.Write([]byte(p))
	var b bytes.Buffer
	text := func(s string) {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
		b.WriteString(s)
		b.Write(make([]byte, (4-len(s)%4)%4))
	}
	var mask [3]uint32
	for _, a := range []struct {
		number int
		encode func()
	}{
		{nfsv4.FATTR4_TYPE, func() { b.Write(binary.BigEndian.AppendUint32(nil, uint32(nfsv4.NF4DIR))) }},
		{nfsv4.FATTR4_LEASE_TIME, func() { b.Write(binary.BigEndian.AppendUint32(nil, 60)) }},
		{nfsv4.FATTR4_FILEID, func() { b.Write(binary.BigEndian.AppendUint64(nil, id.Sum64()>>1)) }},
		{nfsv4.FATTR4_MODE, func() { b.Write(binary.BigEndian.AppendUint32(nil, d.Mode)) }},
		{nfsv4.FATTR4_OWNER, func() { text(strconv.Itoa(int(d.Owner))) }},
		{nfsv4.FATTR4_OWNER_GROUP, func() { text(strconv.Itoa(int(d.Group))) }},
		{nfsv4.FATTR4_TIME_MODIFY, func() {
			b.Write(binary.BigEndian.AppendUint64(nil, uint64(d.Modified.Unix())))
			b.Write(binary.BigEndian.AppendUint32(nil, uint32(d.Modified.Nanosecond())))
		}},
	} {
		word, bit := a.number/32, uint32(1)<<(a.number%32)
		if word < len(request) && request[word]&bit != 0 {
			mask[word] |= bit
			a.encode()
		}
	}
	return nfsv4.Fattr4{Attrmask: mask[:], AttrVals: b.Bytes()}
}

// decode takes mode, owner, group and times from the attributes of a CREATE or SETATTR.
func decode(attrs nfsv4.Fattr4, d Directory) Directory {
	b := attrs.AttrVals
	u32 := func() uint32 {
		v := binary.BigEndian.Uint32(b)
		b = b[4:]
		return v
	}
	id := func() uint32 {
		n := int(u32())
		v, _ := strconv.ParseUint(string(b[:n]), 10, 32)
		b = b[(n+3)&^3:]
		return uint32(v)
	}
	has := func(number int) bool {
		return number/32 < len(attrs.Attrmask) && attrs.Attrmask[number/32]&(1<<(number%32)) != 0
	}
	if has(nfsv4.FATTR4_MODE) {
		d.Mode = u32()
	}
	if has(nfsv4.FATTR4_OWNER) {
		d.Owner = id()
	}
	if has(nfsv4.FATTR4_OWNER_GROUP) {
		d.Group = id()
	}
	for _, attribute := range []int{nfsv4.FATTR4_TIME_ACCESS_SET, nfsv4.FATTR4_TIME_MODIFY_SET} {
		if !has(attribute) {
			continue
		}
		at := time.Unix(1, 0) // the server's time, at any time
		if u32() == uint32(nfsv4.SET_TO_CLIENT_TIME4) {
			at = time.Unix(int64(u32())<<32|int64(u32()), int64(u32()))
		}
		if attribute == nfsv4.FATTR4_TIME_MODIFY_SET {
			d.Modified = at
		}
	}
	return d
}
