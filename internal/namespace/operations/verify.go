package operations

import (
	"bytes"
	"slices"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// verify is VERIFY and NVERIFY (RFC 8881 sections 18.31 and 18.15).
func (c *compound) verify(want nfsv4.Fattr4, same, differs nfsv4.Nfsstat4) nfsv4.Nfsstat4 {
	e, status := c.directory()
	switch {
	case status != nfsv4.NFS4_OK:
		return status
	case writeOnly(want.Attrmask) || hasBit(want.Attrmask, nfsv4.FATTR4_RDATTR_ERROR):
		return nfsv4.NFS4ERR_INVAL
	}
	have := c.encode(&e, want.Attrmask)
	switch {
	case !slices.Equal(trim(have.Attrmask), trim(want.Attrmask)):
		return nfsv4.NFS4ERR_ATTRNOTSUPP
	case !c.wellFormed(&e, want):
		return nfsv4.NFS4ERR_BADXDR
	case bytes.Equal(have.AttrVals, want.AttrVals):
		return same
	}
	return differs
}

// wellFormed tells whether attribute values that a client sent are as many and as long as their mask says. Values of a
// fixed size are as long as the server's own.
func (c *compound) wellFormed(e *tree.Entry, sent nfsv4.Fattr4) bool {
	r := reader{b: sent.AttrVals}
	for _, a := range attributes {
		if !hasBit(sent.Attrmask, a.number) {
			continue
		}
		switch a.number {
		case nfsv4.FATTR4_SUPPORTED_ATTRS, nfsv4.FATTR4_SUPPATTR_EXCLCREAT:
			r.skipList(func() { r.u32() })
		case nfsv4.FATTR4_FILEHANDLE, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP:
			r.skipOpaque()
		case nfsv4.FATTR4_FS_LOCATIONS:
			r.skipList(r.skipOpaque)
			r.skipList(func() { r.skipList(r.skipOpaque); r.skipList(r.skipOpaque) })
		default:
			own := values{minor: c.minor}
			a.encode(&own, c.h, e)
			r.skip(int64(own.Len()))
		}
	}
	return !r.malformed && len(r.b) == 0
}
