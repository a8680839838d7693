package view

import (
	"testing"
	"time"

	"github.com/howdah/howdah/internal/plugin/text"
)

// topSamples are 10 s of three data servers: training-1 is hot, training-0 reads a little, training-2 does nothing.
func topSamples() []Sample {
	before := Counted{Start: 1, Time: now, CPUTime: now, CPUSeconds: 100, Requests: 1000, Shares: map[string]CountedShare{
		"unet3d": {1e9, 1e9, 1000, 1000}, "home": {}, "team-a.scratch": {5e6, 0, 5, 0},
	}}
	after := func(requests uint64, cpu float64, shares map[string]CountedShare) Counted {
		return Counted{Start: 1, Time: now.Add(10 * time.Second), CPUTime: now.Add(8 * time.Second), CPUSeconds: 100 + cpu, Requests: 1000 + requests, Shares: shares}
	}
	return []Sample{
		{Server: "training-0", Before: before, After: after(400, 0.4, map[string]CountedShare{"unet3d": {1e9 + 400e6, 1e9, 1400, 1000}, "home": {}, "team-a.scratch": {5e6, 0, 5, 0}})},
		{Server: "training-1", Before: before, After: after(94_000, 12, map[string]CountedShare{
			"unet3d": {1e9 + 4_500e6, 1e9 + 80e6, 5500, 1080}, "home": {0, 12e4, 0, 7}, "team-a.scratch": {5e6 + 900e6, 0, 905, 0},
		})},
		{Server: "training-2", Before: before, After: after(0, 0, before.Shares)},
	}
}

func TestTopHasTheBusiestFirst(t *testing.T) {
	w := wellWorld()
	top := NewTop(w, &w.FileServers[0], topSamples())
	golden(t, "top.txt", top.Text(text.Page{Width: 120}))
	encoded, err := Encode(top, "json")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "top.json", encoded)
}

func TestTopSaysWhyAServerWasNotMeasured(t *testing.T) {
	w := wellWorld()
	samples := topSamples()
	samples[0].Error = "you may not get pods/proxy in namespace default; ask for Kubernetes' role edit there"
	samples[1].After.Start = 2
	samples[2].After.Time = samples[2].Before.Time
	old := Sample{Server: "training-3", Before: samples[1].Before, After: samples[1].Before}
	old.After.Shares = nil
	golden(t, "top-not-measured.txt", NewTop(w, &w.FileServers[0], append(samples, old)).Text(text.Page{Width: 100}))
	idle := topSamples()[2:]
	idle[0].Before.CPUSeconds = 0
	golden(t, "top-idle.txt", NewTop(w, &w.FileServers[0], idle).Text(text.Page{Width: 100}))
}
