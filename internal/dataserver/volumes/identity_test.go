package volumes

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

const (
	first  = "11111111-1111-1111-1111-111111111111"
	second = "22222222-2222-2222-2222-222222222222"
)

func identities(ids ...string) (list []internalv1.VolumeIdentity) {
	for index, id := range ids {
		list = append(list, internalv1.VolumeIdentity{Index: ptr.To(int32(index)), ID: id})
	}
	return list
}

// putMarker writes the server's marker with this identity to volume 0.
func putMarker(t *testing.T, where layout, server *internalv1.DataServer, id string) {
	t.Helper()
	wanted := markerOf(server, 0)
	wanted.ID = id
	text, err := json.Marshal(wanted)
	mustWork(t, "encode", err)
	mustWork(t, "make .howdah", os.MkdirAll(where.meta(0), 0o700))
	mustWork(t, "write the marker", os.WriteFile(where.meta(0, markerFile), text, 0o600))
}

// A data server accepts the volume that it had. It refuses an empty or another volume in its place before anything is
// written to it, until the user gives up the missing volume.
func TestWhichVolumeADataServerAccepts(t *testing.T) {
	none := ptr.To("")
	tests := map[string]struct {
		status internalv1.DataServerStatus
		lost   []internalv1.VolumeIdentity
		marked bool
		marker string
		// takes is the identity of the volume after Claim, "new" for a new one; "" if the volume is refused.
		takes string
	}{
		"a new volume of a new server":                           {takes: "new"},
		"a new volume of a server that served no share yet":      {status: internalv1.DataServerStatus{Shares: none}, takes: "new"},
		"a kept volume of a new server":                          {marked: true, marker: first, takes: first},
		"the same volume":                                        {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, marked: true, marker: first, takes: first},
		"an empty volume in place of one":                        {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}},
		"another volume of the same server":                      {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, marked: true, marker: second},
		"an empty volume where an earlier version had shares":    {status: internalv1.DataServerStatus{Shares: ptr.To("AAAAAA==")}},
		"an empty volume where an earlier version had exports":   {status: internalv1.DataServerStatus{LastExportNumber: ptr.To(int64(2))}},
		"a volume that an earlier version marked":                {status: internalv1.DataServerStatus{LastExportNumber: ptr.To(int64(2))}, marked: true, takes: "new"},
		"a copy of the volume from before it had an identity":    {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, marked: true, takes: first},
		"an empty volume, and the missing one is given up":       {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, lost: identities(first), takes: "new"},
		"another volume, and the missing one is given up":        {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, lost: identities(first), marked: true, marker: second, takes: second},
		"the volume is there although it is given up":            {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, lost: identities(first), marked: true, marker: first, takes: first},
		"an empty volume, and an earlier one was given up":       {status: internalv1.DataServerStatus{VolumeIDs: identities(second)}, lost: identities(first)},
		"an empty volume, and the volume beside it was given up": {status: internalv1.DataServerStatus{VolumeIDs: identities(first)}, lost: []internalv1.VolumeIdentity{{Index: ptr.To(int32(1)), ID: first}}},
		"an empty volume where only the one beside it is known":  {status: internalv1.DataServerStatus{VolumeIDs: []internalv1.VolumeIdentity{{Index: ptr.To(int32(1)), ID: first}}}, takes: "new"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			where, server := emptyVolumes(t, 1), sampleServer(1)
			server.Status, server.Spec.LostVolumes = tc.status, tc.lost
			if tc.marked {
				putMarker(t, where, server, tc.marker)
			}
			before := tree(t, where.root)
			id, err := claimVolume(where, server, 0, quiet)
			if tc.takes == "" {
				if err == nil {
					t.Fatalf("it was accepted, as %s", id)
				}
				for _, part := range []string{"claim data-0-training-0", id, "volumeID: " + id, "lostVolumes of FileServer training"} {
					if id == "" || !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
				if diff := cmp.Diff(before, tree(t, where.root)); diff != "" {
					t.Errorf("something was written: %s", diff)
				}
				return
			}
			mustWork(t, "claim", err)
			found, err := readMarker(opened(t, where.volume(0)))
			mustWork(t, "read the marker", err)
			if fresh := id != first && id != second && len(id) == len(first); found.ID != id || tc.takes == "new" && !fresh || tc.takes != "new" && id != tc.takes {
				t.Errorf("the identity is %s, the marker has %s, and it should be %s", id, found.ID, tc.takes)
			}
		})
	}
}

// A missing volume without identity in the status of an earlier version gets one, so that it can be given up. It keeps
// it in later passes, even before it is written to the status.
func TestAMissingVolumeOfAnEarlierVersionCanBeGivenUp(t *testing.T) {
	where, server := emptyVolumes(t, 2), sampleServer(2)
	server.Status.LastExportNumber = ptr.To(int64(7))
	storage := New(where.root, quiet)
	if err := storage.Claim(t.Context(), server); err == nil || strings.Count(err.Error(), "has no marker") != 2 {
		t.Fatalf("%v does not refuse both volumes", err)
	}
	missing := storage.Identities()[0]
	if err := storage.Claim(t.Context(), server); err == nil || storage.Identities()[0] != missing {
		t.Fatalf("%v; the missing volume was %s and is %s", err, missing, storage.Identities()[0])
	}
	server.Spec.LostVolumes = identities(missing)
	server.Status.VolumeIDs = identities(missing, storage.Identities()[1])
	restarted := New(where.root, quiet)
	if err := restarted.Claim(t.Context(), server); err == nil || strings.Count(err.Error(), "has no marker") != 1 || !strings.Contains(err.Error(), "data-1-training-0") {
		t.Fatalf("%v; one of two volumes is given up", err)
	}
	if now := restarted.Identities()[0]; now == missing || now == "" {
		t.Errorf("the new volume has the identity of the lost one: %q", now)
	}
	server.Spec.LostVolumes = identities(missing, storage.Identities()[1])
	mustWork(t, "claim what is given up", restarted.Claim(t.Context(), server))
	// The new identities are in the status now, so giving up the earlier ones does not allow a second loss.
	server.Status.VolumeIDs = identities(restarted.Identities()[0], restarted.Identities()[1])
	mustWork(t, "lose volume 0 again", os.RemoveAll(where.meta(0)))
	if err := New(where.root, quiet).Claim(t.Context(), server); err == nil || !strings.Contains(err.Error(), server.Status.VolumeIDs[0].ID) {
		t.Errorf("a second loss: %v", err)
	}
}
