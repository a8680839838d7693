// Package backend has the interface between the exporter and a storage back end (internal/dataserver/volumes or
// internal/dataserver/ceph). The exporter decides what is exported and when. A back end knows where the data is, to
// whose data server it belongs, and how ganesha reaches it.
//
// It must not import a back end or the exporter. Package dataserver chooses the back end of a data server.
package backend

import (
	"context"
	"errors"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/fill"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/listing"
)

// ErrIDsChanged means that another process wrote the export ID table, such as the data server's next pod.
var ErrIDsChanged = errors.New("another pod of this data server has changed the export ID table; reading it again")

// Backend is the storage of one data server. The DataServer may change between calls, but it always names the same back
// end. All methods except BeforeStart, WatchHealth and EmptyTrash are called by one goroutine.
type Backend interface {
	// Parts is the number of exports of a share: on volumes one for each volume.
	Parts(server *internalv1.DataServer) int32

	// Refusal is the condition reason for storage, or a share's part of it, that can't be used.
	Refusal() string
	// Judge checks whether the storage may be used at all. It writes nothing. After an error nothing is exported any more.
	// Storage that can't be reached for the moment is not an error here: the operations that need it fail themselves.
	Judge(ctx context.Context, server *internalv1.DataServer) error
	// Claim marks the storage as this data server's. Storage of another data server is refused before anything is written
	// to it.
	Claim(ctx context.Context, server *internalv1.DataServer) error
	// Identities are the identities of the volumes, or of the volumes that Claim misses, by volume number; nil if all data
	// servers share the storage. Claim later accepts the volumes whose identities are in the DataServer's status.
	Identities() map[int32]string

	// ReadIDs and WriteIDs read and write the export ID table, which is stored durably beside the data. WriteIDs fails with ErrIDsChanged if the
	// stored table is not the one that was read or written last.
	ReadIDs(ctx context.Context, server *internalv1.DataServer) (*exportids.Table, error)
	WriteIDs(ctx context.Context, table *exportids.Table) error

	// HasRoot reports whether the root of a share's export exists. It means something only if Identities is not nil.
	HasRoot(share string, part int32) (bool, error)
	// RootIDs are the identities of a share's exported directories, by part; nil if they are not known. It is used if
	// Identities is nil.
	RootIDs(share string) []string
	// PrepareRoot makes the root of a share's export. It sets the wanted attributes if the root is new or if they differ
	// from the applied ones.
	PrepareRoot(ctx context.Context, share string, part int32, wanted exportids.RootAttributes, applied *exportids.RootAttributes) error
	// Diagnose returns why ganesha does not serve a share whose root is prepared; nil if it finds no reason.
	Diagnose(ctx context.Context, share string) error
	// LookEvery is how often the exporter checks exports that work. One that can't recover (NFS4ERR_SERVERFAULT) is
	// removed and added again. 0: working exports need no check.
	LookEvery() time.Duration
	// Shares are the names of all shares that may have data on the storage. known is false if the storage can't list them.
	Shares(ctx context.Context, server *internalv1.DataServer) (names []string, known bool, err error)
	// Measure returns how full each part is.
	Measure(ctx context.Context, server *internalv1.DataServer) ([]Usage, error)

	// WatchHealth calls report whenever the health of the storage changes, until the context ends. If report fails, it
	// tries again. It runs concurrently with all other methods. A back end without health returns at once.
	WatchHealth(ctx context.Context, report func(Health) error)

	// CompleteConfig adds what is the same for all exports to ganesha's configuration: where ganesha keeps its recovery
	// records.
	CompleteConfig(config *ganesha.Config)
	// CompleteExport adds to an export how ganesha reaches the data.
	CompleteExport(export *ganesha.Export, share string, part int32)
	// BeforeStart cleans up the recovery state while ganesha does not run.
	BeforeStart(ctx context.Context, hostname string) error

	// Outdated returns why ganesha must be restarted: something that it reads only at its start was replaced. "" if no
	// restart is needed. Clients wait during the restart and lose nothing.
	Outdated(ctx context.Context) (why string)

	// HasData reports whether there may be data of a share. It writes nothing.
	HasData(ctx context.Context, server *internalv1.DataServer, share string) bool
	// Discard moves the data of a share to the trash: clients can't reach it any more, and a new share of the same name
	// starts empty.
	Discard(ctx context.Context, server *internalv1.DataServer, share string, now time.Time) error
	// EmptyTrash deletes discarded data, and reports whether some is left. It runs concurrently with all other methods.
	EmptyTrash(ctx context.Context, server *internalv1.DataServer) (left bool)
}

// Lister is a back end whose directories all data servers share. It lists them without ganesha, because ganesha's
// client of the storage would keep capabilities for everything that it listed, and other clients would wait for those
// (package listing). Both methods run concurrently with all others.
type Lister interface {
	// Directories returns the directories of an exported share down to a depth.
	Directories(ctx context.Context, share string, depth int32) ([]listing.Directory, error)
	// Sizes returns the bytes in the directories of an exported share at a depth, by path. At depth 0 it is the size of
	// the whole share, with the path "".
	Sizes(ctx context.Context, share string, depth int32) (map[string]int64, error)
}

// Health is the health of the storage, in sentences for people. Both are "" if the storage is healthy.
type Health struct {
	// Failing: clients wait or get errors. Degraded: they don't yet, or only for a moment.
	Failing, Degraded string
}

// Usage is how full a part is.
type Usage struct {
	fill.Usage
	// Shared says what else is on the same file system; "" if nothing is.
	Shared string
	// FileSystemID is the same for parts on the same file system; "" if it is not known.
	FileSystemID string
	// FullAt is when the part will be full at its present rate; zero if that is not foreseen.
	FullAt time.Time
}
