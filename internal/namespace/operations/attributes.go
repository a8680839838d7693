package operations

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// attribute is one attribute (RFC 8881 section 5) and how its value is encoded.
type attribute struct {
	number int
	encode func(w *values, h *Handler, e *tree.Entry)
}

const (
	// fsidMajor is that of the namespace and of all junctions: "Howdah" in ASCII.
	fsidMajor = 0x486f77646168
	// directorySize is the size attribute of a directory; it has no meaning.
	directorySize = 4096
	// maxTransfer is the maxread and maxwrite attribute. Nothing is read here, but a Linux client
	// gives the rsize and wsize of the namespace's mount to the mounts of the data servers below.
	maxTransfer = 1 << 20
	// changeTypeUndefined says that change is no counter (RFC 7862 section 12.2.3: NFS4_CHANGE_TYPE_IS_UNDEFINED).
	changeTypeUndefined = 4
	// firstMinor is the fsid minor of the namespace; junctions have their fileid.
	firstMinor = 1
)

// attributes are all that are supported, by number.
var attributes = []attribute{
	{nfsv4.FATTR4_SUPPORTED_ATTRS, func(w *values, _ *Handler, _ *tree.Entry) { w.bitmap(supported(w.minor)) }},
	{nfsv4.FATTR4_TYPE, func(w *values, _ *Handler, _ *tree.Entry) { w.u32(uint32(nfsv4.NF4DIR)) }},
	{nfsv4.FATTR4_FH_EXPIRE_TYPE, func(w *values, _ *Handler, _ *tree.Entry) { w.u32(nfsv4.FH4_PERSISTENT) }},
	{nfsv4.FATTR4_CHANGE, func(w *values, h *Handler, e *tree.Entry) { w.u64(h.change(e)) }},
	{nfsv4.FATTR4_SIZE, func(w *values, _ *Handler, _ *tree.Entry) { w.u64(directorySize) }},
	{nfsv4.FATTR4_LINK_SUPPORT, no},
	{nfsv4.FATTR4_SYMLINK_SUPPORT, no},
	{nfsv4.FATTR4_NAMED_ATTR, no},
	{nfsv4.FATTR4_FSID, func(w *values, _ *Handler, e *tree.Entry) { w.fsid(e) }},
	{nfsv4.FATTR4_UNIQUE_HANDLES, yes},
	{nfsv4.FATTR4_LEASE_TIME, func(w *values, h *Handler, _ *tree.Entry) { w.u32(h.LeaseSeconds) }},
	{nfsv4.FATTR4_RDATTR_ERROR, func(w *values, _ *Handler, e *tree.Entry) { w.rdattrError(e) }},
	{nfsv4.FATTR4_ACLSUPPORT, func(w *values, _ *Handler, _ *tree.Entry) { w.u32(0) }},
	{nfsv4.FATTR4_CANSETTIME, yes},
	{nfsv4.FATTR4_CASE_INSENSITIVE, no},
	{nfsv4.FATTR4_CASE_PRESERVING, yes},
	{nfsv4.FATTR4_CHOWN_RESTRICTED, yes},
	{nfsv4.FATTR4_FILEHANDLE, func(w *values, _ *Handler, e *tree.Entry) {
		w.opaque(tree.EncodeHandle(tree.HandleDirectory, e.ID))
	}},
	{nfsv4.FATTR4_FILEID, func(w *values, _ *Handler, e *tree.Entry) { w.u64(e.ID.FileID()) }},
	{nfsv4.FATTR4_FS_LOCATIONS, func(w *values, _ *Handler, e *tree.Entry) { w.locations(e) }},
	{nfsv4.FATTR4_HOMOGENEOUS, yes},
	{nfsv4.FATTR4_MAXFILESIZE, func(w *values, _ *Handler, _ *tree.Entry) { w.u64(1<<63 - 1) }},
	{nfsv4.FATTR4_MAXLINK, func(w *values, _ *Handler, _ *tree.Entry) { w.u32(1) }},
	{nfsv4.FATTR4_MAXNAME, func(w *values, _ *Handler, _ *tree.Entry) { w.u32(maxName) }},
	{nfsv4.FATTR4_MAXREAD, func(w *values, _ *Handler, _ *tree.Entry) { w.u64(maxTransfer) }},
	{nfsv4.FATTR4_MAXWRITE, func(w *values, _ *Handler, _ *tree.Entry) { w.u64(maxTransfer) }},
	{nfsv4.FATTR4_MODE, func(w *values, _ *Handler, e *tree.Entry) { w.u32(e.Mode) }},
	{nfsv4.FATTR4_NO_TRUNC, yes},
	{nfsv4.FATTR4_NUMLINKS, func(w *values, _ *Handler, e *tree.Entry) { w.u32(uint32(2 + e.Entries)) }},
	// Owners are numbers, as Only_Numeric_Owners makes them in ganesha (RFC 8881 section 5.9).
	{nfsv4.FATTR4_OWNER, func(w *values, _ *Handler, e *tree.Entry) { w.text(strconv.FormatUint(uint64(e.Owner), 10)) }},
	{nfsv4.FATTR4_OWNER_GROUP, func(w *values, _ *Handler, e *tree.Entry) { w.text(strconv.FormatUint(uint64(e.Group), 10)) }},
	{nfsv4.FATTR4_SPACE_AVAIL, free},
	{nfsv4.FATTR4_SPACE_FREE, free},
	{nfsv4.FATTR4_SPACE_TOTAL, func(w *values, h *Handler, _ *tree.Entry) { w.u64(uint64(h.Tree.Space().Total)) }},
	{nfsv4.FATTR4_SPACE_USED, func(w *values, _ *Handler, _ *tree.Entry) { w.u64(directorySize) }},
	{nfsv4.FATTR4_TIME_ACCESS, func(w *values, _ *Handler, e *tree.Entry) { w.time(e.Accessed) }},
	{nfsv4.FATTR4_TIME_DELTA, func(w *values, _ *Handler, _ *tree.Entry) { w.time(timeDelta) }},
	{nfsv4.FATTR4_TIME_METADATA, func(w *values, _ *Handler, e *tree.Entry) { w.time(e.Changed) }},
	{nfsv4.FATTR4_TIME_MODIFY, func(w *values, _ *Handler, e *tree.Entry) { w.time(e.Modified) }},
	{nfsv4.FATTR4_MOUNTED_ON_FILEID, func(w *values, _ *Handler, e *tree.Entry) { w.u64(e.ID.FileID()) }},
	{nfsv4.FATTR4_SUPPATTR_EXCLCREAT, func(w *values, _ *Handler, _ *tree.Entry) { w.bitmap(nil) }},
	{nfsv4.FATTR4_CHANGE_ATTR_TYPE, func(w *values, _ *Handler, _ *tree.Entry) { w.u32(changeTypeUndefined) }},
}

func yes(w *values, _ *Handler, _ *tree.Entry) { w.u32(1) }
func no(w *values, _ *Handler, _ *tree.Entry)  { w.u32(0) }

func free(w *values, h *Handler, _ *tree.Entry) {
	space := h.Tree.Space()
	w.u64(uint64(max(0, space.Total-space.Used)))
}

// absent are the attributes of a junction (RFC 8881 section 11.4.1).
var absent = bitmapOf(nfsv4.FATTR4_FSID, nfsv4.FATTR4_RDATTR_ERROR, nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_MOUNTED_ON_FILEID)

// maxMinor is the greatest minor version.
const maxMinor = 2

// supportedBitmaps are by minor version.
var supportedBitmaps [maxMinor + 1][]uint32

func init() {
	for minor := range supportedBitmaps {
		for _, a := range attributes {
			if knows(uint32(minor), a.number) {
				supportedBitmaps[minor] = setBit(supportedBitmaps[minor], a.number)
			}
		}
		supportedBitmaps[minor] = union(supportedBitmaps[minor], settableAttributes)
	}
}

// knows tells whether a minor version has an attribute: RFC 7862 adds those from clone_blksize on.
func knows(minor uint32, number int) bool { return minor >= 2 || number < nfsv4.FATTR4_CLONE_BLKSIZE }

func supported(minor uint32) []uint32 { return supportedBitmaps[minor] }

// encode gives the requested attributes that the entry has. The handler is asked for what is not in the entry.
func (c *compound) encode(e *tree.Entry, request []uint32) nfsv4.Fattr4 {
	if e.Junction() {
		return c.encodeOf(e, request, absent)
	}
	return c.encodeOf(e, request, supported(c.minor))
}

// encodeOf is encode of those requested attributes that are among given ones.
func (c *compound) encodeOf(e *tree.Entry, request, given []uint32) nfsv4.Fattr4 {
	h, w := c.h, values{minor: c.minor, servers: c.locations(e)}
	if hasBit(request, nfsv4.FATTR4_FS_LOCATIONS) {
		w.waiting, w.place = c.waitsAt(e), c.placeFor(e)
	}
	var mask []uint32
	for _, a := range attributes {
		if !hasBit(request, a.number) || !knows(c.minor, a.number) || !hasBit(given, a.number) {
			continue
		}
		mask = setBit(mask, a.number)
		a.encode(&w, h, e)
	}
	return nfsv4.Fattr4{Attrmask: mask, AttrVals: w.Bytes()}
}

// writeOnly tells whether attributes are among the requested that can only be set.
func writeOnly(request []uint32) bool {
	return hasBit(request, nfsv4.FATTR4_TIME_ACCESS_SET) || hasBit(request, nfsv4.FATTR4_TIME_MODIFY_SET)
}

// getattr is GETATTR (RFC 8881 section 18.7). A junction has attributes only for those who
// ask in a way that shows that they expect one.
func (c *compound) getattr(ctx context.Context, op *nfsv4.NfsArgop4_OP_GETATTR) nfsv4.NfsResop4 {
	request := op.Opgetattr.AttrRequest
	e, status := c.entry()
	if status == nfsv4.NFS4_OK && e.Junction() && hasBit(request, nfsv4.FATTR4_FS_LOCATIONS) {
		c.route(&e)
	}
	switch {
	case status != nfsv4.NFS4_OK:
		return session.Fail(op, status)
	case writeOnly(request):
		return session.Fail(op, nfsv4.NFS4ERR_INVAL)
	case e.Junction() && !hasBit(request, nfsv4.FATTR4_FS_LOCATIONS) && !hasBit(request, nfsv4.FATTR4_RDATTR_ERROR):
		return session.Fail(op, nfsv4.NFS4ERR_MOVED)
	case e.Junction() && hasBit(request, nfsv4.FATTR4_FS_LOCATIONS) && len(c.locations(&e)) == 0 && c.awaitsOwner(&e, false):
		return session.Fail(op, nfsv4.NFS4ERR_DELAY)
	}
	var given nfsv4.Fattr4
	if e.Junction() && hasBit(request, nfsv4.FATTR4_FS_LOCATIONS) {
		if given, status = c.referred(ctx, &e, request); status != nfsv4.NFS4_OK {
			return session.Fail(op, status)
		}
		c.visited(&e)
	} else {
		given = c.encode(&e, request)
	}
	return &nfsv4.NfsResop4_OP_GETATTR{Opgetattr: &nfsv4.Getattr4res_NFS4_OK{
		Resok4: nfsv4.Getattr4resok{ObjAttributes: given},
	}}
}

// values is attribute values in XDR (RFC 4506), for a minor version.
type values struct {
	bytes.Buffer
	minor uint32
	// servers are those of fs_locations.
	servers []string
	// waiting are those at which the client waits before it tries them.
	waiting []string
	// place is the path there.
	place string
}

func (w *values) u32(v uint32) { w.Write(binary.BigEndian.AppendUint32(nil, v)) }
func (w *values) u64(v uint64) { w.Write(binary.BigEndian.AppendUint64(nil, v)) }

func (w *values) opaque(b []byte) {
	w.u32(uint32(len(b)))
	w.Write(b)
	w.Write(make([]byte, (4-len(b)%4)%4))
}

func (w *values) text(s string) { w.opaque([]byte(s)) }

func (w *values) time(t time.Time) {
	w.u64(uint64(t.Unix()))
	w.u32(uint32(t.Nanosecond()))
}

// timeDelta is the granularity of times: ShareDirectories have nanoseconds.
var timeDelta = time.Unix(0, 1)

func (w *values) bitmap(m []uint32) {
	w.u32(uint32(len(m)))
	for _, word := range m {
		w.u32(word)
	}
}

func (w *values) fsid(e *tree.Entry) {
	w.u64(fsidMajor)
	if e.Distributed() {
		w.u64(e.ID.FileID())
	} else {
		w.u64(firstMinor)
	}
}

func (w *values) rdattrError(e *tree.Entry) {
	if e.Junction() {
		w.u32(uint32(nfsv4.NFS4ERR_MOVED))
	} else {
		w.u32(uint32(nfsv4.NFS4_OK))
	}
}

// pathname is a pathname4: the components.
func (w *values) pathname(path string) {
	path = strings.Trim(path, "/")
	if path == "" {
		w.u32(0)
		return
	}
	parts := strings.Split(path, "/")
	w.u32(uint32(len(parts)))
	for _, part := range parts {
		w.text(part)
	}
}

// locations is fs_locations (RFC 8881 section 11.16): for a junction where it is in the
// namespace, and its owner; for what is here nothing.
func (w *values) locations(e *tree.Entry) {
	if !e.Junction() {
		w.pathname("")
		w.u32(0)
		return
	}
	w.pathname(e.Path)
	if len(w.waiting) == 0 {
		w.u32(1)
	} else {
		w.u32(2)
		w.location(w.waiting, w.place)
	}
	w.location(w.servers, e.Target.Path)
}

// location is a fs_location4: servers, and a path on each.
func (w *values) location(servers []string, path string) {
	w.u32(uint32(len(servers)))
	for _, server := range servers {
		w.text(server)
	}
	w.pathname(path)
}

func hasBit(m []uint32, i int) bool { return i/32 < len(m) && m[i/32]&(1<<(i%32)) != 0 }

func setBit(m []uint32, i int) []uint32 {
	for len(m) <= i/32 {
		m = append(m, 0)
	}
	m[i/32] |= 1 << (i % 32)
	return m
}

func bitmapOf(bits ...int) (m []uint32) {
	for _, b := range bits {
		m = setBit(m, b)
	}
	return m
}

// within tells whether a bitmap has nothing that another has not.
func within(m, all []uint32) bool {
	for i, word := range m {
		if i >= len(all) && word != 0 || i < len(all) && word&^all[i] != 0 {
			return false
		}
	}
	return true
}

func union(a, b []uint32) []uint32 {
	out := make([]uint32, max(len(a), len(b)))
	for i := range out {
		if i < len(a) {
			out[i] |= a[i]
		}
		if i < len(b) {
			out[i] |= b[i]
		}
	}
	return out
}

// trim cuts off trailing empty words: bitmaps of different lengths can be equal.
func trim(m []uint32) []uint32 {
	for len(m) > 0 && m[len(m)-1] == 0 {
		m = m[:len(m)-1]
	}
	return m
}
