package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// Credentials are sent with a call as AUTH_SYS (RFC 5531 appendix A). The protocol carries at
// most 16 GIDs: more are cut off.
type Credentials struct {
	UID, GID uint32
	GIDs     []uint32
}

// MkdirOptions are the attributes of a new directory. Owner and Group unset: the caller's.
type MkdirOptions struct {
	// Mode has the permission bits, at most 07777. It is set as it is: there is no umask.
	Mode         uint32
	Owner, Group *uint32
}

// Attributes are what Stat tells of a file or directory. Owner and Group are numeric on the wire;
// a server that sends a name gives UnknownID.
type Attributes struct {
	Type         nfsv4.NfsFtype4
	Mode         uint32
	Owner, Group uint32
	FileID       uint64
	// Size in bytes.
	Size   uint64
	Links  uint32
	Change uint64
	// Access, Metadata and Modify are atime, ctime and mtime.
	Access, Metadata, Modify time.Time
	// FSIDMajor and FSIDMinor name the file system (the export).
	FSIDMajor, FSIDMinor uint64
}

// IsDir is true for a directory.
func (a Attributes) IsDir() bool { return a.Type == nfsv4.NF4DIR }

// DirEntry is an entry of a directory.
type DirEntry struct {
	Name         string
	IsDir        bool
	Mode         uint32
	Owner, Group uint32
	FileID       uint64
}

// Identity is what a server calls itself (RFC 8881 section 2.10.4).
type Identity struct {
	Owner, Scope string
}

// UnknownID stands for an owner that is not a number.
const UnknownID = 65534

// StatusError is an operation that the server answered with an error.
type StatusError struct {
	// Op is the operation as RFC 8881 names it, such as "LOOKUP".
	Op     string
	Status nfsv4.Nfsstat4
	// Path is what the operation was about; "" if that is not known by name. With NFS4ERR_NOENT it is the first
	// name that is missing, which may lie above what was asked for.
	Path string
	// Retried is true if the reply of an earlier attempt was lost together with the session,
	// so that the operation may have been executed already: NFS4ERR_EXIST of Mkdir and
	// NFS4ERR_NOENT of Rmdir and Rename may be the caller's own doing. Look with Stat.
	Retried bool
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %s", e.Op, StatusName(e.Status))
}

// IsAnswer is true if err is or wraps a StatusError: the server has answered.
func IsAnswer(err error) bool {
	var status *StatusError
	return errors.As(err, &status)
}

// IsStatus is true if err is or wraps a StatusError with one of the statuses.
func IsStatus(err error, statuses ...nfsv4.Nfsstat4) bool {
	var status *StatusError
	return errors.As(err, &status) && slices.Contains(statuses, status.Status)
}

// StatusName is the name of a status, such as "NFS4ERR_EXIST", or its number.
func StatusName(status nfsv4.Nfsstat4) string {
	if name, ok := nfsv4.Nfsstat4_name[status]; ok {
		return name
	}
	return fmt.Sprintf("NFS status %d", int32(status))
}
