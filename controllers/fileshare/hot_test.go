package fileshare

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
)

func TestHotDirectoriesAreReported(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	entry := func(n int, patterns ...string) hotdirectories.Entry {
		return hotdirectories.Entry{Patterns: patterns, Servers: n}
	}
	search := hotdirectories.Search{Clients: 8, Servers: 3}
	for name, tc := range map[string]struct {
		entries     []hotdirectories.Entry
		search      hotdirectories.Search
		found       []string
		servers     int
		unsupported string
		single      bool
		status      metav1.ConditionStatus
		reason      string
		says        string
	}{
		"none":                          {},
		"none, where there can be none": {unsupported: "no"},
		"some, where there can be none": {
			entries: []hotdirectories.Entry{entry(2)}, servers: 4, unsupported: "only its owner can serve it; do this",
			status: no, reason: v1alpha1.ReasonHotDirectoriesUnsupported, says: "spec.hotDirectories: only its owner can serve it; do this",
		},
		"one":   {entries: []hotdirectories.Entry{entry(2, "there")}, servers: 4, status: yes, reason: v1alpha1.ReasonReady, says: "1 directory is hot"},
		"all":   {entries: []hotdirectories.Entry{entry(4)}, servers: 4, status: yes, reason: v1alpha1.ReasonReady, says: "all directories of the share are hot"},
		"share": {entries: []hotdirectories.Entry{entry(4)}, servers: 4, single: true, status: yes, reason: v1alpha1.ReasonReady, says: "the share is hot"},
		"one, and all others": {
			entries: []hotdirectories.Entry{entry(2, "there"), entry(3)}, servers: 4,
			status: yes, reason: v1alpha1.ReasonReady, says: "1 named directory and all others of the share are hot",
		},
		"fewer data servers than asked for": {
			entries: []hotdirectories.Entry{entry(2, "there"), entry(9)}, servers: 4, status: yes, reason: v1alpha1.ReasonReady,
			says: "1 named directory and all others of the share are hot; spec.hotDirectories asks for up to 9 data servers, and FileServer training has 4 that take new directories",
		},
		"directories that are not made yet": {
			entries: []hotdirectories.Entry{entry(2, "there", "d{0..6}")}, servers: 4, status: yes, reason: v1alpha1.ReasonReady,
			says: `8 directories are hot; not there yet: "d0", "d1", "d2", "d3", "d4" and 2 more`,
		},
		"a typing error": {
			entries: []hotdirectories.Entry{entry(2, "there"), entry(2, "d{0-6}")}, servers: 4, status: no, reason: v1alpha1.ReasonInvalidHotDirectories,
			says: `spec.hotDirectories[1].paths[0]: `,
		},
		"another depth": {
			entries: []hotdirectories.Entry{entry(2, "train/0")}, servers: 4, status: no, reason: v1alpha1.ReasonInvalidHotDirectories,
			says: `it has 2 path elements; spec.depth asks for 1; the entry is not used`,
		},
		"looked for, where there can be none": {
			search: search, servers: 4, unsupported: "only its owner can serve it; do this",
			status: no, reason: v1alpha1.ReasonHotDirectoriesUnsupported, says: "spec.findHotDirectories: only its owner can serve it; do this",
		},
		"named and looked for, where there can be none": {
			entries: []hotdirectories.Entry{entry(2, "there")}, search: search, servers: 4, unsupported: "only its owner can serve it; do this",
			status: no, reason: v1alpha1.ReasonHotDirectoriesUnsupported, says: "spec.hotDirectories and spec.findHotDirectories: only its owner",
		},
		"looked for, none found": {search: search, servers: 4, status: yes, reason: v1alpha1.ReasonReady, says: "no directory is hot because 8 clients use it"},
		"found": {
			search: search, found: []string{"a", "b"}, servers: 2, status: yes, reason: v1alpha1.ReasonReady,
			says: `found hot: "a", "b"; spec.findHotDirectories asks for 3 data servers, and FileServer training has 2 that take new directories`,
		},
		"a share that was found": {search: search, found: []string{"."}, servers: 4, single: true, status: yes, reason: v1alpha1.ReasonReady, says: "the share was found hot"},
		"named and found": {
			entries: []hotdirectories.Entry{entry(2, "there")}, search: search, found: []string{"a"}, servers: 4,
			status: yes, reason: v1alpha1.ReasonReady, says: `1 directory is hot; found hot: "a"`,
		},
	} {
		got := hotCondition(hotState{
			entries: tc.entries, search: tc.search, found: tc.found, depth: 1, unsupported: tc.unsupported, single: tc.single, exist: func(path string) bool { return path == "there" },
			fileServer: "training", servers: tc.servers,
		})
		if got == nil {
			if tc.reason != "" {
				t.Errorf("%s: no condition", name)
			}
			continue
		}
		if got.Type != v1alpha1.FileShareHotDirectoriesServed || got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v, want %s %s %q", name, got, tc.status, tc.reason, tc.says)
		}
	}
}
