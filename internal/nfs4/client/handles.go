package client

import (
	"context"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// Handle gives the file handle of a file or directory, as the server makes it (RFC 8881 section 4).
func (c *Client) Handle(ctx context.Context, cred Credentials, name string) ([]byte, error) {
	elements, err := split(name)
	if err != nil {
		return nil, err
	}
	list, err := c.do(ctx, cred, false, append(walk(elements), &nfsv4.NfsArgop4_OP_GETFH{})...)
	if err != nil {
		return nil, about("ask for the handle of", name, err)
	}
	if op, ok := list[len(list)-1].(*nfsv4.NfsResop4_OP_GETFH); ok {
		if done, ok := op.Opgetfh.(*nfsv4.Getfh4res_NFS4_OK); ok {
			return done.Resok4.Object, nil
		}
	}
	return nil, about("ask for the handle of", name, unexpected(list[len(list)-1]))
}

// StatHandle gives the attributes of what a file handle names, whoever made the handle: a server takes
// none that it did not make, with NFS4ERR_BADHANDLE of the operation PUTFH.
func (c *Client) StatHandle(ctx context.Context, cred Credentials, handle []byte) (Attributes, error) {
	list, err := c.do(ctx, cred, false,
		&nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}},
		&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: bitmap(wanted...)}})
	if err != nil {
		return Attributes{}, err
	}
	fattr, err := attributesOf(list[len(list)-1])
	if err != nil {
		return Attributes{}, err
	}
	attributes, _, err := decodeAttributes(fattr)
	return attributes, err
}
