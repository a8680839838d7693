package operations

import (
	"context"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// refuse is the status of what the namespace does not do: it has no files.
func (c *compound) refuse(ctx context.Context, op nfsv4.NfsArgop4) nfsv4.Nfsstat4 {
	switch o := op.(type) {
	case *nfsv4.NfsArgop4_OP_OPEN:
		return c.open(ctx, &o.Opopen)
	case *nfsv4.NfsArgop4_OP_READ, *nfsv4.NfsArgop4_OP_WRITE, *nfsv4.NfsArgop4_OP_COMMIT,
		*nfsv4.NfsArgop4_OP_LOCK, *nfsv4.NfsArgop4_OP_LOCKT, *nfsv4.NfsArgop4_OP_LOCKU:
		return c.onDirectory(nfsv4.NFS4ERR_ISDIR)
	case *nfsv4.NfsArgop4_OP_READLINK:
		return c.onDirectory(nfsv4.NFS4ERR_WRONG_TYPE)
	case *nfsv4.NfsArgop4_OP_CLOSE, *nfsv4.NfsArgop4_OP_OPEN_DOWNGRADE, *nfsv4.NfsArgop4_OP_DELEGRETURN:
		return c.onDirectory(nfsv4.NFS4ERR_BAD_STATEID)
	}
	// LINK and OPENATTR among them, as link_support and named_attr say.
	return nfsv4.NFS4ERR_NOTSUPP
}

// onDirectory is a status for the case that the current file handle is a directory, as all are.
func (c *compound) onDirectory(status nfsv4.Nfsstat4) nfsv4.Nfsstat4 {
	if _, first := c.directory(); first != nfsv4.NFS4_OK {
		return first
	}
	return status
}

// refuseChange refuses to change what is there.
func (c *compound) refuseChange() nfsv4.Nfsstat4 {
	dir, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return status
	}
	if _, readOnly := c.credentials(&dir); readOnly {
		return nfsv4.NFS4ERR_ROFS
	}
	return nfsv4.NFS4ERR_PERM
}

// open is OPEN (RFC 8881 section 18.16) where no files can be: within a share NFS4ERR_PERM
// (a directory could be made), elsewhere NFS4ERR_ROFS; what exists is a directory.
func (c *compound) open(ctx context.Context, args *nfsv4.Open4args) nfsv4.Nfsstat4 {
	dir, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return status
	}
	var name string
	switch claim := args.Claim.(type) {
	case *nfsv4.OpenClaim4_CLAIM_NULL:
		name = claim.File
	case *nfsv4.OpenClaim4_CLAIM_FH:
		return nfsv4.NFS4ERR_ISDIR
	case *nfsv4.OpenClaim4_CLAIM_PREVIOUS:
		return nfsv4.NFS4ERR_NO_GRACE
	default:
		return nfsv4.NFS4ERR_NOTSUPP
	}
	create, creates := args.Openhow.(*nfsv4.Openflag4_OPEN4_CREATE)
	_, status = c.child(ctx, name)
	switch {
	case status == nfsv4.NFS4_OK && creates && exclusive(create.How):
		return nfsv4.NFS4ERR_EXIST
	case status == nfsv4.NFS4_OK:
		return nfsv4.NFS4ERR_ISDIR
	case status != nfsv4.NFS4ERR_NOENT || !creates:
		return status
	}
	if status := c.refuseChange(); status == nfsv4.NFS4ERR_ROFS {
		return status
	}
	if status := c.may(&dir, tree.Write|tree.Execute); status != nfsv4.NFS4_OK {
		return status
	}
	return nfsv4.NFS4ERR_PERM
}

// exclusive tells whether a create fails if the name exists.
func exclusive(how nfsv4.Createhow4) bool {
	_, unchecked := how.(*nfsv4.Createhow4_UNCHECKED4)
	return !unchecked
}
