package client

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/runtime"
)

// Settings are the attributes that SetAttributes sets; nil: left as they are.
type Settings struct {
	Mode, Owner, Group *uint32
	Access, Modify     *TimeSetting
}

// TimeSetting is a time to be set.
type TimeSetting struct {
	// Now: the server's time, which who may write may set. Else Time, which takes the owner.
	Now  bool
	Time time.Time
}

// SetAttributes is chmod, chown and utimes of a file or directory, with the caller's credentials.
func (c *Client) SetAttributes(ctx context.Context, cred Credentials, name string, settings Settings) error {
	elements, err := split(name)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, cred, true, append(walk(elements), &nfsv4.NfsArgop4_OP_SETATTR{
		Opsetattr: nfsv4.Setattr4args{ObjAttributes: settings.encode()},
	})...)
	return about("set attributes of", name, err)
}

// encode gives the settings in the order of the attributes' numbers.
func (s Settings) encode() nfsv4.Fattr4 {
	// The errors of a bytes.Buffer are always nil, and numbers are UTF-8.
	var encoded bytes.Buffer
	var attributes []int
	if s.Mode != nil {
		attributes = append(attributes, nfsv4.FATTR4_MODE)
		_, _ = runtime.WriteUnsignedInt(&encoded, *s.Mode)
	}
	id := func(attribute int, id *uint32) {
		if id != nil {
			attributes = append(attributes, attribute)
			_, _ = runtime.WriteUTF8String(&encoded, nfsv4.NFS4_OPAQUE_LIMIT, strconv.FormatUint(uint64(*id), 10))
		}
	}
	id(nfsv4.FATTR4_OWNER, s.Owner)
	id(nfsv4.FATTR4_OWNER_GROUP, s.Group)
	moment := func(attribute int, t *TimeSetting) {
		if t == nil {
			return
		}
		attributes = append(attributes, attribute)
		if t.Now {
			_, _ = runtime.WriteInt(&encoded, int32(nfsv4.SET_TO_SERVER_TIME4))
			return
		}
		_, _ = runtime.WriteInt(&encoded, int32(nfsv4.SET_TO_CLIENT_TIME4))
		_, _ = runtime.WriteHyper(&encoded, t.Time.Unix())
		_, _ = runtime.WriteUnsignedInt(&encoded, uint32(t.Time.Nanosecond()))
	}
	moment(nfsv4.FATTR4_TIME_ACCESS_SET, s.Access)
	moment(nfsv4.FATTR4_TIME_MODIFY_SET, s.Modify)
	return nfsv4.Fattr4{Attrmask: bitmap(attributes...), AttrVals: encoded.Bytes()}
}
