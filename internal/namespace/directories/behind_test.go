package directories

import (
	"context"
	"testing"
)

// The channel that ends the writes stays the one that was closed, whichever comes first: a mkdir may come while the server ends.
func TestTheEndOfWritesBehindStays(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, before := range map[string]bool{"no write before": false, "a write before": true} {
		s := &Service{}
		if before {
			end, ok := s.behind.begin("before")
			if !ok {
				t.Fatalf("%s: not admitted", name)
			}
			defer end()
		}
		s.EndBehind(ended)
		stop := s.behind.stop
		if _, ok := s.behind.begin("late"); ok || s.behind.stop != stop {
			t.Errorf("%s: a write after the end: admitted %t, the channel is another one: %t", name, ok, s.behind.stop != stop)
		}
	}
}
