package directories

import (
	"slices"
	"testing"

	"github.com/howdah/howdah/internal/placement"
)

func TestAMkdirIsPlacedOnADataServerThatAnswers(t *testing.T) {
	slot := func(server string, edit ...func(*placement.Slot)) placement.Slot {
		s := placement.Slot{Owner: placement.Owner{Server: server}, Ready: true}
		for _, e := range edit {
			e(&s)
		}
		return s
	}
	full := func(s *placement.Slot) { s.Full = true }
	starting := func(s *placement.Slot) { s.Ready = false }
	// "slow" missed one probe, "down" as many as a server that is down, "up" and "other" none.
	s := &Service{Config: Config{
		Answers:   func(server string) bool { return server == "up" || server == "other" },
		Reachable: func(server string) bool { return server != "down" },
	}}
	for name, tc := range map[string]struct {
		slots []placement.Slot
		want  []string
	}{
		"one missed a probe":                   {[]placement.Slot{slot("other"), slot("slow"), slot("up")}, []string{"other", "up"}},
		"one is down":                          {[]placement.Slot{slot("down"), slot("up")}, []string{"up"}},
		"all missed a probe, and one is down":  {[]placement.Slot{slot("down"), slot("slow")}, []string{"slow"}},
		"the one that answers has no room":     {[]placement.Slot{slot("slow"), slot("up", full)}, []string{"slow", "up"}},
		"the one that answers does not serve":  {[]placement.Slot{slot("slow"), slot("up", starting)}, []string{"slow"}},
		"one without room does not answer yet": {[]placement.Slot{slot("slow", full), slot("up")}, []string{"up"}},
		"all are down":                         {[]placement.Slot{slot("down")}, nil},
	} {
		before := slices.Clone(tc.slots)
		var got []string
		for _, slot := range s.onlyAnswering(tc.slots) {
			if slot.Ready {
				got = append(got, slot.Server)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: ready are %v, want %v", name, got, tc.want)
		}
		if !slices.Equal(tc.slots, before) {
			t.Errorf("%s: the slots of the caller changed", name)
		}
	}
	if got := (&Service{}).onlyAnswering([]placement.Slot{slot("any")}); !got[0].Ready {
		t.Error("without a prober no data server gets a directory")
	}
}
