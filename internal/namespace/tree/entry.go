package tree

import "time"

// Entry is what a node was at one moment.
type Entry struct {
	ID ID
	// Path is absolute.
	Path string
	// Share is nil above the shares.
	Share *Share
	// Rel is the path below the share's root; "" is the root.
	Rel string
	// Directory is nil above the shares, for a share's root and for directories that are only implied.
	Directory *Directory
	// Target is set for a junction: its owner, or the data server that a client of a hot directory is sent to.
	Target *Target
	// Next are the targets that a client of a hot directory can try after Target.
	Next []*Target

	Owner, Group, Mode uint32
	Change             uint64
	Entries            int
	// Modified, Changed and Accessed are mtime, ctime and atime.
	Modified, Changed, Accessed time.Time
}

// Target is where a junction refers to.
type Target struct {
	Server string
	Volume int32
	// Address is empty when the data server is not known.
	Address string
	// Outside are the addresses and host names for clients outside the cluster, if there are any.
	Outside []string
	// Path is the directory's path on the owner.
	Path string
	// Serves: the owner's status says that it has loaded the share's export.
	Serves bool
}

// Name is the last element of the path; empty for the root.
func (e *Entry) Name() string {
	_, name := split(e.Path)
	return name
}

// Junction tells whether the entry refers to a data server.
func (e *Entry) Junction() bool { return e.Target != nil }

// Distributed tells whether the directory has a data server: it is a junction, or was until its Target was
// taken from the entry for the client that has just made it.
func (e *Entry) Distributed() bool { return e.Directory != nil && e.Directory.Server != "" }
