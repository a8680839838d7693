package tree

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// RootPath is the path of a ShareDirectory that stands for the root of a share of layout Single.
const RootPath = "."

// MadeByAnnotation is on ShareDirectories that a namespace server made for a client's mkdir, with the
// server's name. ShareDirectories without it are declared, and completed at once.
const MadeByAnnotation = "howdah.io/made-by"

// AttemptAnnotation is on these ShareDirectories, too. By its value a server recognizes its own object after a lost
// answer.
const AttemptAnnotation = "howdah.io/attempt"

// TouchedAnnotation is on ShareDirectories of which a time of access was set, or the mode to what it was. It has a new value each time, so that the watch
// delivers something.
const TouchedAnnotation = "howdah.io/touched"

// MadeTimeAnnotation is on these ShareDirectories, too: when the directory was made, in RFC 3339 with nanoseconds. The API's own
// creation time has whole seconds, so a directory would look older than a file that was made just before it.
const MadeTimeAnnotation = "howdah.io/made-time"

// MadeOnAnnotation is on these ShareDirectories, too: the identity of the share's directory on the volume that the directory is made on.
// Clients learn that the directory exists before the ShareDirectory says so.
const MadeOnAnnotation = "howdah.io/made-on"

// Directory has what the tree needs of a ShareDirectory. It does not change.
type Directory struct {
	Name string
	UID  string
	// Identity is the directory's ID if it is older than this ShareDirectory because of a rename. Empty: the
	// ShareDirectory's UID.
	Identity string
	Version  uint64
	Share    string
	// Path is relative to the share's root; RootPath is the root itself.
	Path string
	// Server is the owner; empty for a directory that exists in the namespace only.
	Server      string
	Volume      int32
	Owner       uint32
	Group       uint32
	Mode        uint32
	State       internalv1.DirectoryState
	RenamedFrom string
	// BeingReplaced: another directory is being renamed onto it.
	BeingReplaced bool
	Created       time.Time
	// MadeBy is the namespace server that made the ShareDirectory for a client; empty: it was declared.
	MadeBy string
	// RemoveWhenEmpty: the operator requests the removal; no client waits for it.
	RemoveWhenEmpty bool
	// RemovalRefused: it held data when that was tried.
	RemovalRefused bool
	// LossID is the ID of the loss of a Missing directory; "": it was not checked yet.
	LossID string
	// Move is the ID of its move between volumes; "" if it does not move.
	Move string
	// RootID is the identity of the root of a Single share; "" if it is not known.
	RootID string
	// Modified, Changed and Accessed are zero until something set them.
	Modified, Changed, Accessed time.Time
	// Hot is when it was recorded last that the directory has enough clients to be hot; zero if it was not found to be.
	Hot time.Time
	// CopiesCurrent: all copies of a directory above the depth have its owner, group and mode.
	CopiesCurrent bool
	// made: this server has made it and shows it, whatever the ShareDirectory says (Made).
	made bool
	// share has the FileShare's attributes when a client replaced those of the root.
	share *attributes
}

// FormatTime writes a time as a ShareDirectory has it: RFC 3339 in UTC, with nanoseconds.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// attributes are the attributes for permission checks.
type attributes struct{ owner, group, mode uint32 }

// NewDirectory takes what the tree needs from a ShareDirectory.
func NewDirectory(o *internalv1.ShareDirectory) *Directory {
	r := &Directory{
		Name: o.Name, UID: string(o.UID), Identity: o.Spec.Identity, Share: o.Spec.FileShareRef.Name, Path: o.Spec.Path, Server: o.Spec.DataServerRef.Name,
		Mode: ParseMode(o.Spec.Mode), State: o.State(), RenamedFrom: o.Spec.RenamedFrom, Created: o.CreationTimestamp.Time,
		MadeBy: o.Annotations[MadeByAnnotation], RemoveWhenEmpty: o.Spec.Removal == internalv1.RemovalWhenEmpty,
		RemovalRefused: o.Status.RemovalRefusedTime != nil, LossID: o.Status.LossID, RootID: o.Status.RootID, Move: o.Spec.Move.ID,
		BeingReplaced: o.Status.ReplacedBy.Identity != "",
	}
	// Resource versions of one kind may be compared as numbers (KEP-5504).
	r.Version, _ = strconv.ParseUint(o.ResourceVersion, 10, 64)
	if o.Spec.Volume != nil {
		r.Volume = *o.Spec.Volume
	}
	if o.Spec.UID != nil {
		r.Owner = uint32(*o.Spec.UID)
	}
	if o.Spec.GID != nil {
		r.Group = uint32(*o.Spec.GID)
	}
	if a := o.Spec.ShareAttributes; a.UID != nil && a.GID != nil {
		r.share = &attributes{uint32(*a.UID), uint32(*a.GID), ParseMode(a.Mode)}
	}
	for _, t := range []struct {
		to   *time.Time
		from string
	}{
		{&r.Created, o.Annotations[MadeTimeAnnotation]},
		{&r.Modified, o.Status.ModifiedTime},
		{&r.Changed, o.Status.ChangedTime},
		{&r.Accessed, o.Status.AccessedTime},
	} {
		if parsed, err := time.Parse(time.RFC3339Nano, t.from); err == nil {
			*t.to = parsed
		}
	}
	if o.Status.HotTime != nil {
		r.Hot = o.Status.HotTime.Time
	}
	r.CopiesCurrent = r.Server != "" || o.Generation <= max(1, ptr.Deref(o.Status.ObservedGeneration, 0))
	return r
}

// Shown reports whether the directory is in listings: it exists (an unfinished removal may still fail), or is missing.
func (r *Directory) Shown() bool {
	return r.State == internalv1.DirectoryReady || r.State == internalv1.DirectoryRemoving || r.State == internalv1.DirectoryMissing || r.State == internalv1.DirectoryMoving
}

// Unfinished reports whether a change of the directory is unfinished.
func (r *Directory) Unfinished() bool {
	if r.State == internalv1.DirectoryMoving {
		return false // The operator finishes it.
	}
	return r.State != internalv1.DirectoryReady || r.RemoveWhenEmpty || !r.CopiesCurrent
}

// isLostIfDeleted reports whether a deletion of the ShareDirectory says nothing of the directory: it was not being removed, and the user has not given it up.
func (r *Directory) isLostIfDeleted(accepted []string) bool {
	switch r.State {
	case internalv1.DirectoryReady:
		return !r.RemoveWhenEmpty
	case internalv1.DirectoryMissing:
		return r.LossID == "" || !slices.Contains(accepted, r.LossID)
	default:
		return r.State == internalv1.DirectoryMoving
	}
}

// Depth is the number of levels below the share's root.
func (r *Directory) Depth() int { return Depth(r.Path) }

// Depth is the number of levels of a path below the share's root; the root has 0.
func Depth(rel string) int {
	if rel == RootPath || rel == "" {
		return 0
	}
	return strings.Count(rel, "/") + 1
}

// fits reports whether the share can have this ShareDirectory: a junction at the share's depth, or a plain directory
// above, such as the root. Others are not shown.
func (r *Directory) fits(s *Share) bool {
	if s.Single {
		return r.Path == RootPath && r.Server != ""
	}
	depth := r.Depth()
	if r.Server != "" {
		return depth == s.Depth
	}
	return depth < s.Depth
}

// Server has what the tree needs of a DataServer.
type Server struct {
	Name    string
	UID     types.UID
	Address string
	// Outside are the addresses and host names for clients outside the cluster.
	Outside []string
	// Serves has the shares that the server's ganesha serves.
	Serves map[string]bool
	// Scope is the server's scope: the UID of the FileServer.
	Scope string
	// Identity is the server's NFS owner; "" if it is not known.
	Identity string
	Volumes  int32
	// SharedStorage: every data server has the same directories, so what another one owns is not misplaced here.
	SharedStorage bool
	// RefusesNewDirectories: new directories go elsewhere.
	RefusesNewDirectories bool
	Usage                 map[int32]Usage
	// FileSystems are the IDs of the file systems that volumes are on, where they are known.
	FileSystems map[int32]string
	// Started: its ganesha has served once.
	Started bool
	// SilentFor is the namespace server that reports in the DataServer's status that it gets no answer; "" if none does.
	SilentFor string
}

// Usage is how full a volume is, in bytes.
type Usage struct {
	Total, Used int64
	// Tight and Full are those of fleet.Room.
	Tight, Full bool
}

// NewServer takes what the tree needs from a DataServer.
func NewServer(o *internalv1.DataServer) *Server {
	s := &Server{Name: o.Name, UID: o.UID, Address: o.Spec.Address, Outside: o.Spec.OutsideAddresses, Scope: o.Spec.ServerScope, Serves: map[string]bool{}, Volumes: 1, Usage: map[int32]Usage{}}
	if ordinal, ok := naming.DataServerOrdinal(o.Spec.FileServerRef.Name, o.Name); ok && o.Spec.ServerScope != "" {
		s.Identity = naming.DataServerOwner(o.Spec.ServerScope, ordinal)
	}
	if o.Spec.Volumes > 0 {
		s.Volumes = o.Spec.Volumes
	}
	s.SharedStorage, s.RefusesNewDirectories = len(o.Spec.Ceph.Monitors) > 0, o.RefusesNewDirectories()
	s.Started, s.SilentFor = o.Status.ObservedGeneration != nil, o.Status.Unreachable.SeenBy
	for volume := range s.Volumes {
		if room := fleet.RoomOf(o, volume); room != (fleet.Room{}) {
			s.Usage[volume] = Usage{Total: room.TotalBytes, Used: room.UsedBytes, Tight: room.Tight && !s.SharedStorage, Full: room.Full && !s.SharedStorage}
		}
	}
	s.FileSystems = map[int32]string{}
	for _, v := range o.Status.Volumes {
		if v.Index != nil && v.FileSystemID != "" {
			s.FileSystems[*v.Index] = v.FileSystemID
		}
	}
	return s
}

// ExportPath is the path on the owner of a directory of a share: below the export's pseudo path.
func ExportPath(share string, volume int32, rel string) string {
	pseudo := naming.ExportPseudo(share, volume)
	if rel == RootPath || rel == "" {
		return pseudo
	}
	return pseudo + "/" + rel
}
