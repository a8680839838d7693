package dataserver

import (
	"errors"
	"testing"

	"github.com/howdah/howdah/internal/dataserver/backend"
	cephstorage "github.com/howdah/howdah/internal/dataserver/ceph"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
)

// A lost pod that comes back has an older export ID table than its successor. If it wrote that, the successor's next start would give other
// numbers, and so clients' file handles, to shares.
func TestALostPodCannotChangeExportIDsInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	server := dataservertest.DataServer(0)
	server.Spec.Ceph.Monitors = c.options.Monitors
	pod := func() *cephstorage.Backend {
		b := cephstorage.New(c.options)
		mustWork(t, "judge", b.Judge(t.Context(), server))
		mustWork(t, "claim", b.Claim(t.Context(), server))
		return b
	}
	give := func(b *cephstorage.Backend, share string) error {
		table, err := b.ReadIDs(t.Context(), server)
		mustWork(t, "read", err)
		mustWork(t, "allocate", table.Allocate(share, nil))
		return b.WriteIDs(t.Context(), table)
	}
	lost := pod()
	mustWork(t, "write first", give(lost, "alpha"))
	mustWork(t, "write again", give(lost, "beta"))
	table, err := lost.ReadIDs(t.Context(), server)
	mustWork(t, "read", err)
	mustWork(t, "allocate", table.Allocate("of the lost pod", nil))
	next := pod()
	mustWork(t, "the next pod's write", give(next, "gamma"))
	if err := lost.WriteIDs(t.Context(), table); !errors.Is(err, backend.ErrIDsChanged) {
		t.Errorf("the lost pod writes its table: %v", err)
	}
	mustWork(t, "the lost pod, after it has read the table again", give(lost, "delta"))
	known, err := next.ReadIDs(t.Context(), server)
	mustWork(t, "read", err)
	seen := map[int32]string{}
	for share := range known.Parts[0] {
		id := known.IDs(share)[0]
		if other, taken := seen[id]; taken {
			t.Errorf("shares %s and %s have number %d", share, other, id)
		}
		seen[id] = share
	}
	if len(seen) != 4 {
		t.Errorf("the table has %v", seen)
	}
}
