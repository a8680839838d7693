package directories

import (
	"slices"
	"testing"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// One that was on its owner is looked for there; one that was not, wherever the share's data counts.
func TestPlacesOfLostDirectories(t *testing.T) {
	volumes := []*tree.Server{{Name: "fs-0", Volumes: 2}, {Name: "fs-1", Volumes: 1}, {Name: "fs-2", Volumes: 1}}
	first, second := tree.Slot{Server: "fs-0"}, tree.Slot{Server: "fs-0", Volume: 1}
	for name, tc := range map[string]struct {
		known   lostDirectory
		servers []*tree.Server
		ignored []string
		want    []tree.Slot
	}{
		"on the volume that gets its name": {known: lostDirectory{slot: second}, servers: volumes, want: []tree.Slot{second}},
		"on another":                       {known: lostDirectory{slot: first}, servers: volumes, want: []tree.Slot{second, first}},
		"on one that is gone":              {known: lostDirectory{slot: tree.Slot{Server: "fs-9"}}, servers: volumes, want: []tree.Slot{second}},
		"on one that is given up":          {known: lostDirectory{slot: tree.Slot{Server: "fs-1"}}, servers: volumes, ignored: []string{"fs-1"}, want: []tree.Slot{second}},
		"missing": {
			known: lostDirectory{slot: second, missing: true}, servers: volumes, ignored: []string{"fs-2"},
			want: []tree.Slot{second, first, {Server: "fs-1"}},
		},
		"missing, on shared storage": {
			known: lostDirectory{slot: first, missing: true}, servers: []*tree.Server{{Name: "fs-0", Volumes: 1, SharedStorage: true}, {Name: "fs-1", Volumes: 1, SharedStorage: true}},
			want: []tree.Slot{second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := placesOfLost(tc.known, tc.servers, tc.ignored, second); !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
