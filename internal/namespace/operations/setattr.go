package operations

import (
	"context"
	"errors"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// settableAttributes are those that SETATTR can set. The times among them are write-only.
var settableAttributes = bitmapOf(nfsv4.FATTR4_MODE, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP,
	nfsv4.FATTR4_TIME_ACCESS_SET, nfsv4.FATTR4_TIME_MODIFY_SET)

// setattr is SETATTR (RFC 8881 section 18.30): chmod, chown and utimes of a directory of the namespace. It takes the
// state ID for what it is for a directory: nothing.
func (c *compound) setattr(ctx context.Context, op *nfsv4.NfsArgop4_OP_SETATTR) nfsv4.NfsResop4 {
	asked := op.Opsetattr.ObjAttributes
	status := c.set(ctx, asked)
	res := nfsv4.Setattr4res{Status: status}
	if status == nfsv4.NFS4_OK {
		res.Attrsset = trim(asked.Attrmask)
	}
	return &nfsv4.NfsResop4_OP_SETATTR{Opsetattr: res}
}

func (c *compound) set(ctx context.Context, asked nfsv4.Fattr4) nfsv4.Nfsstat4 {
	e, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return status
	}
	creds, readOnly := c.credentials(&e)
	if readOnly {
		return nfsv4.NFS4ERR_ROFS
	}
	settings, status := readSettings(asked)
	if status != nfsv4.NFS4_OK {
		return status
	}
	if c.current.unentered == nil { // else it is the owner's to judge
		var err error
		settings, err = e.Allow(creds, settings)
		switch {
		case errors.Is(err, tree.ErrNotOwner):
			return nfsv4.NFS4ERR_PERM
		case err != nil:
			return nfsv4.NFS4ERR_ACCESS
		}
	}
	if !settings.Permissions() && !settings.Times() {
		return nfsv4.NFS4_OK
	}
	status = c.h.Mutator.SetAttributes(ctx, e, settings, creds)
	if now, ok := c.h.Tree.Get(e.ID); ok && c.current.unentered != nil {
		c.current = unentered(now)
	}
	return status
}

// readSettings reads the attributes of a SETATTR.
func readSettings(asked nfsv4.Fattr4) (s tree.Settings, status nfsv4.Nfsstat4) {
	mask := asked.Attrmask
	if hasBit(mask, nfsv4.FATTR4_SIZE) {
		return s, nfsv4.NFS4ERR_ISDIR
	}
	if status := settable(mask, settableAttributes); status != nfsv4.NFS4_OK {
		return s, status
	}
	r := reader{b: asked.AttrVals}
	if hasBit(mask, nfsv4.FATTR4_MODE) {
		mode := r.u32()
		s.Mode = &mode
	}
	if hasBit(mask, nfsv4.FATTR4_OWNER) {
		s.Owner = r.id()
	}
	if hasBit(mask, nfsv4.FATTR4_OWNER_GROUP) {
		s.Group = r.id()
	}
	invalid := s.Mode != nil && *s.Mode&^0o7777 != 0
	moment := func(attribute int) *tree.TimeSetting {
		if !hasBit(mask, attribute) {
			return nil
		}
		t, ok := r.timeSetting()
		invalid = invalid || !ok
		return &t
	}
	s.Access = moment(nfsv4.FATTR4_TIME_ACCESS_SET)
	s.Modify = moment(nfsv4.FATTR4_TIME_MODIFY_SET)
	switch {
	case r.malformed || len(r.b) != 0:
		return s, nfsv4.NFS4ERR_BADXDR
	case r.badOwner:
		return s, nfsv4.NFS4ERR_BADOWNER
	case invalid:
		return s, nfsv4.NFS4ERR_INVAL
	}
	return s, nfsv4.NFS4_OK
}

// timeSetting reads a settime4; false: it says what no time can be.
func (r *reader) timeSetting() (tree.TimeSetting, bool) {
	switch nfsv4.TimeHow4(r.u32()) {
	case nfsv4.SET_TO_SERVER_TIME4:
		return tree.TimeSetting{Now: true}, true
	case nfsv4.SET_TO_CLIENT_TIME4:
		seconds, nanoseconds := int64(r.u32())<<32|int64(r.u32()), r.u32()
		t := time.Unix(seconds, int64(nanoseconds)).UTC()
		// What the API can write down.
		return tree.TimeSetting{Time: t}, nanoseconds < 1e9 && t.Year() >= 1 && t.Year() <= 9999
	}
	r.malformed = true
	return tree.TimeSetting{}, false
}
