package ceph

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSnapshotInfo(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		want   SnapshotDetails
		wrong  string
	}{
		"as Ceph 18 answers": {
			`{"created_at":"2026-11-22 12:00:01.250000","data_pool":"cephfs.fs1.data","has_pending_clones":"no"}`,
			SnapshotDetails{Created: time.Date(2026, 11, 22, 12, 0, 1, 250_000_000, time.UTC)},
			"",
		},
		"without a fraction": {`{"created_at":"2026-11-22 12:00:01","has_pending_clones":"no"}`, SnapshotDetails{Created: time.Date(2026, 11, 22, 12, 0, 1, 0, time.UTC)}, ""},
		"being cloned": {
			`{"created_at":"2026-11-22 12:00:01","has_pending_clones":"yes","pending_clones":[{"name":"x"}]}`,
			SnapshotDetails{time.Date(2026, 11, 22, 12, 0, 1, 0, time.UTC), true, []string{"x"}},
			"",
		},
		"no time":        {`{"has_pending_clones":"no"}`, SnapshotDetails{}, "time"},
		"something else": {`Error`, SnapshotDetails{}, "reading Ceph's answer"},
	} {
		got, err := ParseSnapshotInfo(tc.answer)
		if tc.wrong == "" && (err != nil || !got.Created.Equal(tc.want.Created) || got.Cloning != tc.want.Cloning || !slices.Equal(got.Clones, tc.want.Clones)) || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestSnapshotFolder(t *testing.T) {
	names := []string{"_nightly-2_1099511627786", "_nightly_x_1099511627786", "nightly", "_nightly_1099511627786"}
	for snapshot, want := range map[string]string{"nightly": ".snap/_nightly_1099511627786", "nightly-2": ".snap/_nightly-2_1099511627786", "night": "", "x": ""} {
		if got, found := SnapshotFolder(names, snapshot); got != want || found != (want != "") {
			t.Errorf("%s: %q, %v", snapshot, got, found)
		}
	}
}
