package operations

import (
	"context"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// accessBits are the rights that directories have, and the permissions that each takes. EXECUTE has
// no meaning for a directory (RFC 8881 section 18.1.3).
var accessBits = []struct {
	bit     uint32
	want    uint32
	changes bool
}{
	{nfsv4.ACCESS4_READ, tree.Read, false},
	{nfsv4.ACCESS4_LOOKUP, tree.Execute, false},
	{nfsv4.ACCESS4_MODIFY, tree.Write, true},
	{nfsv4.ACCESS4_EXTEND, tree.Write, true},
	{nfsv4.ACCESS4_DELETE, tree.Write, true},
}

// access is ACCESS (RFC 8881 section 18.1).
func (c *compound) access(op *nfsv4.NfsArgop4_OP_ACCESS) nfsv4.NfsResop4 {
	dir, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	creds, readOnly := c.credentials(&dir)
	has := dir.Permitted(creds)
	var res nfsv4.Access4resok
	for _, a := range accessBits {
		if op.Opaccess.Access&a.bit == 0 {
			continue
		}
		res.Supported |= a.bit
		if has&a.want != 0 && !(readOnly && a.changes) {
			res.Access |= a.bit
		}
	}
	return &nfsv4.NfsResop4_OP_ACCESS{Opaccess: &nfsv4.Access4res_NFS4_OK{Resok4: res}}
}

// flavors is what SECINFO gives: AUTH_SYS only.
func flavors() *nfsv4.Secinfo4res_NFS4_OK {
	return &nfsv4.Secinfo4res_NFS4_OK{Resok4: []nfsv4.Secinfo4{&nfsv4.Secinfo4_default{Flavor: rpcv2.AUTH_SYS}}}
}

// secinfo is SECINFO (RFC 8881 section 18.29). It consumes the current file handle.
func (c *compound) secinfo(ctx context.Context, op *nfsv4.NfsArgop4_OP_SECINFO) nfsv4.NfsResop4 {
	if _, status := c.child(ctx, op.Opsecinfo.Name); status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	c.current = nil
	return &nfsv4.NfsResop4_OP_SECINFO{Opsecinfo: flavors()}
}

// secinfoNoName is SECINFO_NO_NAME (RFC 8881 section 18.45). It consumes the current file handle.
func (c *compound) secinfoNoName(op *nfsv4.NfsArgop4_OP_SECINFO_NO_NAME) nfsv4.NfsResop4 {
	dir, status := c.directory()
	if status == nfsv4.NFS4_OK && op.OpsecinfoNoName == nfsv4.SECINFO_STYLE4_PARENT {
		if _, ok := c.h.Tree.Parent(dir.ID); !ok {
			status = nfsv4.NFS4ERR_NOENT
		}
	}
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	c.current = nil
	return &nfsv4.NfsResop4_OP_SECINFO_NO_NAME{OpsecinfoNoName: flavors()}
}
