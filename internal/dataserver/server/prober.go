package server

import (
	"context"
	"errors"
)

// FileSystem is the fsid attribute (RFC 8881 section 5.8.1.9).
type FileSystem struct{ Major, Minor uint64 }

// ErrNotThere tells that a path does not exist on the server.
var ErrNotThere = errors.New("no such path")

// Prober looks at ganesha through NFS, as clients see it.
type Prober interface {
	// Null calls the NULL procedure: the process takes calls and answers.
	Null(ctx context.Context) error
	// Identity is the server owner and scope that EXCHANGE_ID answers.
	Identity(ctx context.Context) (owner, scope string, err error)
	// Look tells in which file system each path is, or why not, in order. The error is that of the connection.
	Look(ctx context.Context, paths []string) ([]Sight, error)
	// Forge asks for the path's file handle and gives it back with a flipped bit. It is nil if that was refused as
	// it must be (NFS4ERR_BADHANDLE), and errForgeryTaken if it was not.
	Forge(ctx context.Context, path string) error
}

// Sight is what the prober sees at a path.
type Sight struct {
	Fsid FileSystem
	Err  error // errNotThere, or what the server answered.
}

// ErrForgeryTaken tells that ganesha took a file handle that it did not make.
var ErrForgeryTaken = errors.New("ganesha took a file handle with a flipped bit")
