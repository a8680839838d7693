package dataserver

import (
	"context"
	"errors"
)

// fileSystem is the fsid attribute (RFC 8881 section 5.8.1.9).
type fileSystem struct{ major, minor uint64 }

// errNotThere tells that a path does not exist on the server.
var errNotThere = errors.New("no such path")

// prober looks at ganesha through NFS, as clients see it.
type prober interface {
	// null calls the NULL procedure: the process takes calls and answers.
	null(ctx context.Context) error
	// identity is the server owner and scope that EXCHANGE_ID answers.
	identity(ctx context.Context) (owner, scope string, err error)
	// look tells in which file system each path is, or why not, in order. The error is that of the connection.
	look(ctx context.Context, paths []string) ([]sight, error)
	// forge asks for the path's file handle and gives it back with a flipped bit. It is nil if that was refused as
	// it must be (NFS4ERR_BADHANDLE), and errForgeryTaken if it was not.
	forge(ctx context.Context, path string) error
}

// sight is what the prober sees at a path.
type sight struct {
	fsid fileSystem
	err  error // errNotThere, or what the server answered.
}
