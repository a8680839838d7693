package dataserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// bootAgain starts the data server of the name with what its DataServer's status says, as another pod does.
func bootAgain(t *testing.T, name string, count int32, before dataservertest.Reported) *dataServer {
	t.Helper()
	s := boot(t, name, count)
	s.status.Status = before.DataServerStatus
	s.dataServer.Status = before.DataServerStatus
	return s
}

// replacedVolumeIsRefused: a user deletes a claim and its pod, and the next pod has a new, empty volume under the same name. It is not
// used, and nothing is written to it, until the volume that is missing is given up by its identity. The volume itself is taken back at any time.
func replacedVolumeIsRefused(t *testing.T) {
	s := boot(t, "replaced", 2)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	before := s.settle()
	c := s.from("10.99.0.1")
	mustWork(t, "mkdir", c.Mkdir(t.Context(), user, "/alpha/0/kept", client.MkdirOptions{Mode: 0o755}))
	if len(before.VolumeIDs) != 2 || before.VolumeIDs[0].ID == before.VolumeIDs[1].ID {
		t.Fatalf("the status has the volumes %+v", before.VolumeIDs)
	}
	s.stop()

	volume, away := filepath.Join(volumesOf("replaced"), "0"), filepath.Join(volumesOf("replaced"), "away")
	mustWork(t, "take the volume away", os.Rename(volume, away))
	again := bootAgain(t, "replaced", 2, before)
	again.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	message := again.awaitRefusal()
	for _, part := range []string{"claim data-0-training-0", before.VolumeIDs[0].ID, "lostVolumes"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	if strings.Contains(message, "data-1-training-0") {
		t.Errorf("%q names the volume that is there", message)
	}
	if entries, err := os.ReadDir(volume); err != nil || len(entries) > 0 || again.pid() != 0 {
		t.Errorf("%v was written to the new volume (%v), and ganesha is process %d", entries, err, again.pid())
	}
	again.stop()

	mustWork(t, "remove the empty volume", os.Remove(volume))
	mustWork(t, "bring the volume back", os.Rename(away, volume))
	back := bootAgain(t, "replaced", 2, before)
	back.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	back.settle()
	_, err := back.from("10.99.0.1").Stat(t.Context(), user, "/alpha/0/kept")
	mustWork(t, "the data after the volume is back", err)
	back.stop()

	mustWork(t, "lose the volume", os.RemoveAll(volume))
	lost := bootAgain(t, "replaced", 2, before)
	lost.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	lost.awaitRefusal()
	lost.apply(func(spec *dataservertest.Wanted) { spec.LostVolumes = before.VolumeIDs[:1] })
	after := lost.settle()
	if after.VolumeIDs[0].ID == before.VolumeIDs[0].ID || after.VolumeIDs[1].ID != before.VolumeIDs[1].ID {
		t.Errorf("the volumes were %+v and are %+v", before.VolumeIDs, after.VolumeIDs)
	}
}

// rootsHaveIdentities: the directory in which a volume has a share keeps its identity as long as it is there. One that is gone, as on a volume
// that was restored from a copy of before the share, is made again with another, by which who knew it sees that it is empty.
func rootsHaveIdentities(t *testing.T) {
	export := func(s *dataServer) []string {
		t.Helper()
		s.apply(func(spec *dataservertest.Wanted) {
			spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
		})
		s.settle()
		ids := s.status.List()[0].Status.RootIDs
		if len(ids) != 2 || ids[0] == "" || ids[0] == ids[1] {
			t.Fatalf("the identities are %q", ids)
		}
		return ids
	}
	s := boot(t, "roots", 2)
	first := export(s)
	before, _ := s.status.Get()
	s.stop()
	again := bootAgain(t, "roots", 2, before)
	if now := export(again); !slices.Equal(now, first) {
		t.Errorf("after a restart the identities are %q, and were %q", now, first)
	}
	again.stop()
	mustWork(t, "lose the share's directory", os.RemoveAll(filepath.Join(volumesOf("roots"), "0", "alpha")))
	after := bootAgain(t, "roots", 2, before)
	now := export(after)
	if now[0] == first[0] || now[1] != first[1] {
		t.Errorf("one directory was made again; the identities are %q, and were %q", now, first)
	}
	after.stop()
	// An earlier version knew no identities: what is there has its volume's, whoever looks.
	ids := filepath.Join(volumesOf("roots"), "0", ".howdah", "exports.json")
	text, err := os.ReadFile(ids)
	mustWork(t, "read the export IDs", err)
	mustWork(t, "forget the identity", os.WriteFile(ids, []byte(strings.ReplaceAll(string(text), now[0], "")), 0o600))
	if older := export(bootAgain(t, "roots", 2, before)); older[0] != before.VolumeIDs[0].ID {
		t.Errorf("the identity is %q, and the volume's is %q", older[0], before.VolumeIDs[0].ID)
	}
}
