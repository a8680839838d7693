package directories

import (
	"slices"
	"testing"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// One that was on its owner is looked for there; one that was not, wherever the share's data counts.
func TestPlacesOfLostDirectories(t *testing.T) {
	volumes := []*tree.Server{{Name: "fs-0", Volumes: 2}, {Name: "fs-1", Volumes: 1}, {Name: "fs-2", Volumes: 1}}
	shared := []*tree.Server{{Name: "fs-0", Volumes: 1, SharedStorage: true}, {Name: "fs-1", Volumes: 1, SharedStorage: true}}
	first, second := tree.Slot{Server: "fs-0"}, tree.Slot{Server: "fs-0", Volume: 1}
	for name, tc := range map[string]struct {
		known   lostDirectory
		servers []*tree.Server
		ignored []string
		want    []tree.Slot
	}{
		"on its volume":           {known: lostDirectory{slot: first}, servers: volumes, want: []tree.Slot{first}},
		"on another volume":       {known: lostDirectory{slot: second}, servers: volumes, want: []tree.Slot{second}},
		"on one that is gone":     {known: lostDirectory{slot: tree.Slot{Server: "fs-9"}}, servers: volumes},
		"on one that is given up": {known: lostDirectory{slot: tree.Slot{Server: "fs-1"}}, servers: volumes, ignored: []string{"fs-1"}},
		"missing": {
			known: lostDirectory{slot: second, missing: true}, servers: volumes, ignored: []string{"fs-2"},
			want: []tree.Slot{first, second, {Server: "fs-1"}},
		},
		"on shared storage":                            {known: lostDirectory{slot: tree.Slot{Server: "fs-1"}}, servers: shared, want: []tree.Slot{{Server: "fs-1"}}},
		"missing, on shared storage":                   {known: lostDirectory{slot: tree.Slot{Server: "fs-1"}, missing: true}, servers: shared, want: []tree.Slot{{Server: "fs-1"}}},
		"on shared storage, whose data server is gone": {known: lostDirectory{slot: tree.Slot{Server: "fs-9"}}, servers: shared, want: []tree.Slot{{Server: "fs-0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := placesOfLost(tc.known, tc.servers, tc.ignored); !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
