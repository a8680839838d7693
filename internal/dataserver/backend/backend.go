// Package backend is what the instance manager needs of a storage back end: that of volumes is internal/dataserver/volumes. The
// manager decides what is exported and when; a back end knows where the data is, whose it is, and what ganesha must be told to reach it.
//
// It must not import a back end, nor the manager. Which back end a data server has is decided in one place, by the manager.
package backend

import (
	"context"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/listing"
)

// Backend is the storage of one data server. The DataServer may change from call to call, but not which back end it names. All but
// BeforeStart and WatchHealth are called by one goroutine.
type Backend interface {
	// Parts is how many exports a share has: on volumes one for each volume.
	Parts(server *internalv1.DataServer) int32

	// Refusal is the reason of a condition that says that the storage, or a share's part of it, can't be used.
	Refusal() string
	// Judge looks whether the storage may be used at all. It writes nothing. An error takes back what is served: storage that can't
	// be reached at present is none, what needs it fails by itself.
	Judge(ctx context.Context, server *internalv1.DataServer) error
	// Claim makes the storage this data server's, or refuses what is another's before anything is written to it.
	Claim(ctx context.Context, server *internalv1.DataServer) error
	// Identities are those of the volumes by their numbers, or of volumes that Claim misses; nil where storage is not a server's own. What
	// is told of them to the API decides which volumes Claim takes later.
	Identities() map[int32]string

	// ReadIDs and WriteIDs keep the export ID table durably beside the data.
	ReadIDs(ctx context.Context, server *internalv1.DataServer) (*exportids.Table, error)
	WriteIDs(ctx context.Context, table *exportids.Table) error

	// HasRoot tells whether the root of a share's export is there, where Identities are known.
	HasRoot(share string, part int32) (bool, error)
	// RootIDs are the identities of the directories that a share is exported from, by part, where Identities are not known; nil if these are
	// not either.
	RootIDs(share string) []string
	// PrepareRoot makes the root of a share's export, and gives it the attributes if it is new or if they are others than those
	// that it was last given.
	PrepareRoot(ctx context.Context, share string, part int32, wanted exportids.RootAttributes, applied *exportids.RootAttributes) error
	// Diagnose looks why ganesha does not show an export of a share although its root is prepared; nil if nothing is found.
	Diagnose(ctx context.Context, share string) error
	// LookEvery is how often exports that serve are looked at. One that ganesha has lost for good (NFS4ERR_SERVERFAULT) is taken away and
	// brought back. 0: what serves goes on doing so.
	LookEvery() time.Duration
	// Shares are the names of all shares that the storage may have data of, if that can be known.
	Shares(ctx context.Context, server *internalv1.DataServer) (names []string, known bool, err error)
	// Measure tells how full each part is.
	Measure(ctx context.Context, server *internalv1.DataServer) ([]Usage, error)

	// WatchHealth tells how well whatever keeps the data is, whenever that changes, until the context ends; what can't be told is told
	// again. It runs beside everything else. Storage that has nothing to tell returns at once.
	WatchHealth(ctx context.Context, tell func(Health) error)

	// CompleteConfig adds to ganesha's configuration what is the same for all exports: where it keeps its clients.
	CompleteConfig(config *ganesha.Config)
	// CompleteExport adds to an export how ganesha reaches the data.
	CompleteExport(export *ganesha.Export, share string, part int32)
	// BeforeStart puts the recovery state in order while ganesha does not run.
	BeforeStart(ctx context.Context, hostname string) error

	// Outdated tells, "" if it is not so, why ganesha is to be started anew: it has something from its start that was replaced since, and
	// that can't reach it otherwise. Clients wait meanwhile, and lose nothing.
	Outdated(ctx context.Context) (why string)

	// HasData tells whether there may be data of a share. It writes nothing.
	HasData(ctx context.Context, server *internalv1.DataServer, share string) bool
	// Discard moves the data of a share out of the way: no client reaches it any more, and a new share of the name begins empty.
	Discard(ctx context.Context, server *internalv1.DataServer, share string, now time.Time) error
	// EmptyTrash deletes what was discarded, and tells if something is left. It runs beside everything else.
	EmptyTrash(ctx context.Context, server *internalv1.DataServer) (left bool)
}

// Lister is a back end whose directories every data server has. It tells of them past ganesha, whose client of the storage would keep what it has
// listed, and others waiting for it (package listing). Both are called beside everything else.
type Lister interface {
	// Directories are those of a share that is exported, down to a depth.
	Directories(ctx context.Context, share string, depth int32) ([]listing.Directory, error)
	// Sizes are the bytes in the directories of a share that is exported, by path: of those at a depth, with 0 in the share as a whole, as "".
	Sizes(ctx context.Context, share string, depth int32) (map[string]int64, error)
}

// Health is what there is to say of whatever keeps the data, in sentences for people; both are "" if all is well.
type Health struct {
	// Failing: clients wait, or get errors. Degraded: they don't yet, or only for a moment.
	Failing, Degraded string
}

// Usage is how full a part is, in bytes.
type Usage struct {
	Total, Used int64
	// Shared says what else is on its file system, "" for nothing.
	Shared string
}
