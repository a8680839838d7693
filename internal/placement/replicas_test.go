package placement

import "testing"

func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		asked, existing, eligible, needed int32
		want                              int32
		refused                           bool
	}{
		"what is asked for":                              {asked: 3, existing: 2, eligible: 1, want: 3},
		"fewer, where those that go own nothing":         {asked: 1, existing: 3, eligible: 3, needed: 1, want: 1},
		"no fewer than directories need":                 {asked: 1, existing: 3, eligible: 3, needed: 2, want: 3, refused: true},
		"a server that owns directories comes back":      {asked: 1, existing: 1, eligible: 3, needed: 3, want: 3, refused: true},
		"left open it follows the nodes":                 {existing: 2, eligible: 5, want: 5},
		"left open it does not follow them down":         {existing: 5, eligible: 2, want: 5},
		"left open it keeps servers that own something":  {eligible: 2, needed: 4, want: 4},
		"left open it ends where the schema's limit is":  {eligible: 900, want: MaxServers},
		"as many as are needed are as many as are asked": {asked: 3, existing: 3, needed: 3, want: 3},
	} {
		if got, refused := Replicas(test.asked, test.existing, test.eligible, test.needed); got != test.want || refused != test.refused {
			t.Errorf("%s: %d %v", name, got, refused)
		}
	}
}
