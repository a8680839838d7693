package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/runtime"
)

const (
	// maxDepth of a path, so that two of them fit into one compound of any server.
	maxDepth = 24
	// maxReadDir bounds the memory of one ReadDir.
	maxReadDir = 100_000
	// pageBytes is how much of a directory is asked for at a time.
	pageBytes = 64 << 10
)

// ErrPath is wrapped by the errors about paths that can't be sent.
var ErrPath = errors.New("not a path for the NFS client")

// split gives the elements of an absolute path.
func split(name string) ([]string, error) {
	clean := path.Clean(name)
	switch {
	case !strings.HasPrefix(name, "/"):
		return nil, fmt.Errorf("%w: %q is not absolute", ErrPath, name)
	case strings.ContainsRune(name, 0):
		return nil, fmt.Errorf("%w: %q contains a NUL", ErrPath, name)
	case clean == "/":
		return nil, nil
	}
	elements := strings.Split(clean[1:], "/")
	if len(elements) > maxDepth {
		return nil, fmt.Errorf("%w: it has %d elements, at most %d are possible", ErrPath, len(elements), maxDepth)
	}
	return elements, nil
}

// parent gives the directory's elements and the last name.
func parent(name string) ([]string, string, error) {
	elements, err := split(name)
	if err != nil {
		return nil, "", err
	}
	if len(elements) == 0 {
		return nil, "", fmt.Errorf("%w: the root can't be made, removed or renamed", ErrPath)
	}
	return elements[:len(elements)-1], elements[len(elements)-1], nil
}

// walk makes a directory or file the current file handle.
func walk(elements []string) []nfsv4.NfsArgop4 {
	ops := []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, element := range elements {
		ops = append(ops, lookup(element))
	}
	return ops
}

func lookup(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}}
}

// Mkdir makes a directory with the caller's credentials. NFS4ERR_EXIST, NFS4ERR_NOENT, NFS4ERR_NOTDIR,
// NFS4ERR_ACCESS and the like come as StatusError, with the operation that failed. With a
// set-user-ID or set-group-ID bit, an owner or a group it takes two steps: after an error whose operation is SETATTR
// the directory exists, maybe without these bits.
func (c *Client) Mkdir(ctx context.Context, cred Credentials, name string, options MkdirOptions) error {
	directory, base, err := parent(name)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, cred, true, append(walk(directory), &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{
		Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: base, Createattrs: encodeCreate(options),
	}})...)
	// Ganesha hands the mode to mkdir(2), which ignores these bits, and gives the directory its owner a moment later: who looks in between has it keep
	// the caller's in its cache, until it is set once more. Not in the same compound: a SETATTR that is put off would send the CREATE again.
	if err == nil && (options.Mode&0o6000 != 0 || options.Owner != nil || options.Group != nil) {
		_, err = c.do(ctx, cred, true, append(walk(append(directory, base)), &nfsv4.NfsArgop4_OP_SETATTR{
			Opsetattr: nfsv4.Setattr4args{ObjAttributes: encodeCreate(options)},
		})...)
	}
	return about("make directory", name, err)
}

// Rmdir removes an empty directory. What is not a directory stays and gives NFS4ERR_NOTDIR.
func (c *Client) Rmdir(ctx context.Context, cred Credentials, name string) error {
	directory, base, err := parent(name)
	if err != nil {
		return err
	}
	// REMOVE takes files as well: so the type is verified just before, in the same compound.
	_, err = c.do(ctx, cred, true, append(walk(directory), &nfsv4.NfsArgop4_OP_SAVEFH{}, lookup(base),
		&nfsv4.NfsArgop4_OP_VERIFY{Opverify: nfsv4.Verify4args{ObjAttributes: isDirectory()}},
		&nfsv4.NfsArgop4_OP_RESTOREFH{},
		&nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: base}})...)
	var status *StatusError
	if errors.As(err, &status) && status.Status == nfsv4.NFS4ERR_NOT_SAME {
		status.Status = nfsv4.NFS4ERR_NOTDIR
	}
	return about("remove directory", name, err)
}

// Rename moves a file or directory within a file system. As with rename(2) an empty
// directory in the way is replaced.
func (c *Client) Rename(ctx context.Context, cred Credentials, from, to string) error {
	fromDirectory, fromBase, err := parent(from)
	if err != nil {
		return err
	}
	toDirectory, toBase, err := parent(to)
	if err != nil {
		return err
	}
	ops := append(walk(fromDirectory), &nfsv4.NfsArgop4_OP_SAVEFH{})
	ops = append(ops, walk(toDirectory)...)
	_, err = c.do(ctx, cred, true, append(ops, &nfsv4.NfsArgop4_OP_RENAME{
		Oprename: nfsv4.Rename4args{Oldname: fromBase, Newname: toBase},
	})...)
	return about("rename", from, err)
}

// Stat gives the attributes of a file or directory; NFS4ERR_NOENT if there is none.
func (c *Client) Stat(ctx context.Context, cred Credentials, name string) (Attributes, error) {
	elements, err := split(name)
	if err != nil {
		return Attributes{}, err
	}
	list, err := c.do(ctx, cred, false, append(walk(elements), &nfsv4.NfsArgop4_OP_GETATTR{
		Opgetattr: nfsv4.Getattr4args{AttrRequest: bitmap(wanted...)},
	})...)
	if err != nil {
		return Attributes{}, about("stat", name, err)
	}
	fattr, err := attributesOf(list[len(list)-1])
	if err != nil {
		return Attributes{}, about("stat", name, err)
	}
	attributes, _, err := decodeAttributes(fattr)
	return attributes, about("stat", name, err)
}

func attributesOf(res nfsv4.NfsResop4) (nfsv4.Fattr4, error) {
	if op, ok := res.(*nfsv4.NfsResop4_OP_GETATTR); ok {
		if done, ok := op.Opgetattr.(*nfsv4.Getattr4res_NFS4_OK); ok {
			return done.Resok4.ObjAttributes, nil
		}
	}
	return nfsv4.Fattr4{}, unexpected(res)
}

// ReadDir lists a directory of at most maxReadDir entries, in the server's order; more are an error. Entries is for
// directories that may have any number.
func (c *Client) ReadDir(ctx context.Context, cred Credentials, name string) ([]DirEntry, error) {
	var entries []DirEntry
	tooMany := false
	err := c.Entries(ctx, cred, name, func(entry DirEntry) bool {
		tooMany = len(entries) >= maxReadDir
		if !tooMany {
			entries = append(entries, entry)
		}
		return !tooMany
	})
	switch {
	case err != nil:
		return nil, err
	case tooMany:
		return nil, about("list", name, fmt.Errorf("the directory has more than %d entries", maxReadDir))
	}
	return entries, nil
}

// Entries gives the entries of a directory one by one, in the server's order, until yield returns false. It takes as many
// round trips as there are pages of 64 KiB, and holds one of them in memory; while yield runs nothing is asked for. An entry
// whose attributes can't be read has a name only, and names that are not UTF-8 are left out.
func (c *Client) Entries(ctx context.Context, cred Credentials, name string, yield func(DirEntry) bool) error {
	elements, err := split(name)
	if err != nil {
		return err
	}
	args := nfsv4.Readdir4args{Dircount: pageBytes / 4, Maxcount: pageBytes, AttrRequest: bitmap(wanted...)}
	for {
		list, err := c.do(ctx, cred, false, append(walk(elements), &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: args})...)
		if err != nil {
			return about("list", name, err)
		}
		p, ok := list[len(list)-1].(*page)
		if !ok {
			return about("list", name, unexpected(list[len(list)-1]))
		}
		for _, entry := range p.entries {
			attributes, _, err := decodeAttributes(entry.fattr)
			if err != nil {
				return about("list", path.Join(name, entry.name), err)
			}
			if !yield(DirEntry{
				Name: entry.name, IsDir: attributes.IsDir(), Mode: attributes.Mode,
				Owner: attributes.Owner, Group: attributes.Group, FileID: attributes.FileID,
			}) {
				return nil
			}
		}
		if p.eof {
			return nil
		}
		if p.empty {
			return about("list", name, errors.New("the NFS server sent an empty page before the end"))
		}
		args.Cookie, args.Cookieverf = p.cookie, p.verifier
	}
}

// leaseTime asks for the server's lease (RFC 8881 section 5.8.1.11).
func (c *Client) leaseTime(ctx context.Context) (time.Duration, error) {
	list, err := c.do(ctx, c.options.Machine, false, &nfsv4.NfsArgop4_OP_PUTROOTFH{}, &nfsv4.NfsArgop4_OP_GETATTR{
		Opgetattr: nfsv4.Getattr4args{AttrRequest: bitmap(nfsv4.FATTR4_LEASE_TIME)},
	})
	if err != nil {
		return 0, err
	}
	fattr, err := attributesOf(list[len(list)-1])
	if err != nil {
		return 0, err
	}
	seconds, _, err := runtime.ReadUnsignedInt(bytes.NewReader(fattr.AttrVals))
	if err != nil {
		return 0, fmt.Errorf("decode the lease time: %w", err)
	}
	return time.Duration(seconds) * time.Second, nil
}

func about(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}
