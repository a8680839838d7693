package ceph

import (
	"slices"
	"testing"
)

func TestWatchersOfAnotherPodAreKnownFromOurs(t *testing.T) {
	const old, ours, again, next = "10.0.0.1:0/1", "10.0.0.1:0/2", "10.0.0.1:0/3", "10.0.0.2:0/4"
	start := func(w *watching) { w.take() }
	sees := func(addresses ...string) func(*watching) { return func(w *watching) { w.set(addresses) } }
	for name, tc := range map[string]struct {
		happens []func(*watching)
		current []string
		want    []string
	}{
		"ganesha watches": {[]func(*watching){start, sees(ours)}, []string{ours}, nil},
		"Ceph has shut ganesha out, and no other serves":   {[]func(*watching){start, sees(ours)}, nil, nil},
		"another pod watches":                              {[]func(*watching){start, sees(ours)}, []string{next}, []string{next}},
		"another pod watches, and it was seen before":      {[]func(*watching){start, sees(ours), sees(), sees(next), sees(next)}, []string{next}, []string{next}},
		"our watch is still there":                         {[]func(*watching){start, sees(ours)}, []string{ours, next}, nil},
		"the pod before has not timed out":                 {[]func(*watching){func(w *watching) { w.setBeforeFirst([]string{old}) }, start, sees(old), sees(old, ours)}, []string{ours}, nil},
		"ganesha was restarted in this pod":                {[]func(*watching){start, sees(ours), start, sees(ours), sees(ours, again), sees(again)}, []string{again}, nil},
		"it was restarted, and only the dead one was seen": {[]func(*watching){start, sees(ours), start, sees(ours)}, []string{again}, nil},
		"the dead one was read at the start":               {[]func(*watching){start, func(w *watching) { w.bury([]string{old}) }, sees(old)}, []string{ours}, nil},
		"nothing was seen yet":                             {[]func(*watching){start}, []string{ours}, nil},
	} {
		w := &watching{}
		for _, happens := range tc.happens {
			happens(w)
		}
		if got := w.successors(tc.current); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
