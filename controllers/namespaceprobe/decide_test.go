package namespaceprobe

import (
	"testing"
	"time"
)

func TestWhichNamespaceServerIsEvicted(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	answering := func(name string) server { return server{name: name} }
	silent := func(name string, lasts time.Duration) server { return server{name, now.Add(-lasts)} }
	for name, tc := range map[string]struct {
		servers []server
		before  history
		want    string
	}{
		"none":                           {},
		"all answer":                     {servers: []server{answering("a"), answering("b")}},
		"one is silent for long enough":  {servers: []server{answering("a"), silent("b", silentFor)}, want: "b"},
		"one is silent for a moment":     {servers: []server{answering("a"), silent("b", silentFor-time.Second)}},
		"the longest silent one first":   {servers: []server{silent("b", time.Minute), answering("a"), silent("c", 2*time.Minute)}, want: "c"},
		"at the same time, by name":      {servers: []server{silent("c", time.Minute), answering("a"), silent("b", time.Minute)}, want: "b"},
		"no other answers":               {servers: []server{silent("a", time.Minute), silent("b", time.Minute)}},
		"the only one is silent":         {servers: []server{silent("a", time.Minute)}},
		"an eviction was a moment ago":   {servers: []server{answering("a"), silent("b", time.Minute)}, before: history{now.Add(-firstPause + time.Second), 1}},
		"an eviction was a while ago":    {servers: []server{answering("a"), silent("b", time.Minute)}, before: history{now.Add(-firstPause), 1}, want: "b"},
		"the third time the pause grows": {servers: []server{answering("a"), silent("b", time.Minute)}, before: history{now.Add(-3 * firstPause), 3}},
		"it grows no further":            {servers: []server{answering("a"), silent("b", time.Minute)}, before: history{now.Add(-longestPause), 1000}, want: "b"},
	} {
		if got, found := choose(now, tc.servers, tc.before); got != tc.want || found != (tc.want != "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestEvictionsAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	h := history{}.with(now).with(now.Add(time.Minute))
	if h.count != 2 {
		t.Errorf("two in a minute: %+v", h)
	}
	if h = h.with(now.Add(time.Minute + forgetAfter)); h.count != 1 {
		t.Errorf("one after %s: %+v", forgetAfter, h)
	}
}
