package server

import (
	"context"
	"errors"
)

// FileSystem is the fsid attribute (RFC 8881 section 5.8.1.9).
type FileSystem struct{ Major, Minor uint64 }

// ErrNotThere says that a path does not exist on the server.
var ErrNotThere = errors.New("no such path")

// Prober checks ganesha through NFS, as clients see it.
type Prober interface {
	// Null calls the NULL procedure. nil means that ganesha answers calls.
	Null(ctx context.Context) error
	// Identity returns the server owner and scope that EXCHANGE_ID returns.
	Identity(ctx context.Context) (owner, scope string, err error)
	// Look returns the file system of each path, or an error for the path, in order. Its own error is of the connection.
	Look(ctx context.Context, paths []string) ([]Sight, error)
	// Forge reads the path's file handle, flips a bit and uses it. It returns nil if ganesha refuses the handle as it must
	// (NFS4ERR_BADHANDLE), and ErrForgeryTaken if it does not.
	Forge(ctx context.Context, path string) error
}

// Sight is what the prober finds at a path.
type Sight struct {
	Fsid FileSystem
	Err  error // ErrNotThere, or the server's error.
}

// ErrForgeryTaken says that ganesha accepted a file handle that it did not make.
var ErrForgeryTaken = errors.New("ganesha accepted a file handle with a flipped bit")
