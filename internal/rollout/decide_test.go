package rollout

import (
	"slices"
	"strings"
	"testing"
)

// server describes a data server by letters: o outdated, e ending, m its pod is missing, d it does not serve, g its clients reclaim, s it is
// stuck, l its node is lost, h its pod must stay, i its next
// pod has another image, p its node does not have that yet, x its node can't pull it.
func server(name, letters string) Server {
	has := func(letter string) bool { return strings.Contains(letters, letter) }
	s := Server{
		Name: name, Made: !has("m"), Outdated: has("o"), Ending: has("e"), Serves: !has("d") && !has("s") && !has("m") && !has("e"), InGrace: has("g"), OnLostNode: has("l"),
	}
	if has("s") {
		s.Stuck = "ImagePullBackOff"
	}
	s.NewImage = has("i") || has("p") || has("x")
	switch {
	case has("p"):
		s.Pull, s.Pulling = NotPulled, "it pulls"
	case has("x"):
		s.Pull, s.Pulling = CannotPull, "no such image"
	}
	if has("h") {
		s.Held = "its node is cordoned"
	}
	return s
}

func TestDecide(t *testing.T) {
	const onDelete = true
	for name, tc := range map[string]struct {
		servers  string // Letters of fs-0, fs-1, …, separated by spaces; "-" has none.
		onDelete bool
		complete bool
		heldBy   string

		state          State
		next           string
		now, healing   bool
		wantOnDelete   bool
		stuck, waitFor string
		held           string
		pull           string
		unpullable     string
	}{
		"nothing has changed":                                     {servers: "- - -", complete: true, state: UpToDate},
		"one is down, and nothing has changed":                    {servers: "- sd -", complete: true, state: UpToDate},
		"the highest is first, once the strategy is OnDelete":     {servers: "o o o", state: Rolling, next: "fs-2", wantOnDelete: true},
		"then its pod goes":                                       {servers: "o o o", onDelete: onDelete, state: Rolling, next: "fs-2", now: true, wantOnDelete: true},
		"its next pod is of the new template too":                 {servers: "o o oe", onDelete: onDelete, state: Rolling, waitFor: "fs-2", wantOnDelete: true},
		"also while there is none":                                {servers: "o o m", onDelete: onDelete, state: Rolling, waitFor: "fs-2", wantOnDelete: true},
		"it starts, and others that are lost keep what they had":  {servers: "o o d", onDelete: onDelete, state: Rolling, waitFor: "fs-2"},
		"its clients reclaim":                                     {servers: "o o g", state: Rolling, waitFor: "fs-2"},
		"the next one":                                            {servers: "o o -", state: Rolling, next: "fs-1", wantOnDelete: true},
		"the last one is being made":                              {servers: "d - -", state: Rolling, waitFor: "fs-0"},
		"the last one's clients reclaim":                          {servers: "g - -", state: Rolling, waitFor: "fs-0"},
		"all are new":                                             {servers: "- - -", state: UpToDate},
		"another one is down for its own reasons":                 {servers: "od o o", state: Waiting, waitFor: "fs-0"},
		"its node is lost, so its end is not confirmed":           {servers: "osl o o", state: Waiting, waitFor: "fs-0"},
		"a new pod on a lost node is not to blame":                {servers: "o o sl", state: Rolling, waitFor: "fs-2"},
		"one that must stay is left out":                          {servers: "o o oh", state: Rolling, next: "fs-1", wantOnDelete: true, held: "fs-2"},
		"only such are left":                                      {servers: "oh - oh", state: Waiting, held: "fs-0fs-2"},
		"one that must stay, and does not serve":                  {servers: "osh - -", state: Rolling, next: "fs-0", healing: true, wantOnDelete: true},
		"another one's clients reclaim":                           {servers: "o og o", state: Waiting, waitFor: "fs-1"},
		"one that can't serve as it is comes first":               {servers: "os o o", state: Rolling, next: "fs-0", healing: true, wantOnDelete: true},
		"and its pod goes at once":                                {servers: "os od o", onDelete: onDelete, state: Rolling, next: "fs-0", healing: true, now: true, wantOnDelete: true},
		"if all are down, one tries the new template":             {servers: "os os os", onDelete: onDelete, state: Rolling, next: "fs-2", healing: true, now: true, wantOnDelete: true},
		"the others wait for its end":                             {servers: "os os ose", onDelete: onDelete, state: Rolling, waitFor: "fs-0fs-1fs-2", wantOnDelete: true},
		"and for its start":                                       {servers: "os os d", state: Rolling, waitFor: "fs-0fs-1fs-2"},
		"it serves: the others need not wait for each other":      {servers: "os os g", state: Rolling, next: "fs-1", healing: true, wantOnDelete: true},
		"its node is lost: another one tries":                     {servers: "os os sl", state: Rolling, next: "fs-1", healing: true, wantOnDelete: true},
		"a bad image stops at the first":                          {servers: "o o s", state: Stopped, stuck: "fs-2"},
		"and at a server that had its own reasons to be down":     {servers: "os o s", state: Stopped, stuck: "fs-2"},
		"a bad image of the only server":                          {servers: "s", state: Stopped, stuck: "fs-0"},
		"the pod of the first is refused":                         {servers: "o o ms", onDelete: onDelete, state: Stopped, stuck: "fs-2", wantOnDelete: true},
		"back at the earlier image, the broken one is made again": {servers: "- - os", state: Rolling, next: "fs-2", healing: true, wantOnDelete: true},
		"its node pulls the next image first":                     {servers: "o o op", state: Rolling, waitFor: "fs-2", pull: "fs-2"},
		"and has it":                                              {servers: "o o oi", state: Rolling, next: "fs-2", wantOnDelete: true, pull: "fs-2"},
		"until its pod has gone":                                  {servers: "o o oi", onDelete: onDelete, state: Rolling, next: "fs-2", now: true, wantOnDelete: true, pull: "fs-2"},
		"and not while it goes":                                   {servers: "o o oei", onDelete: onDelete, state: Rolling, waitFor: "fs-2", wantOnDelete: true},
		"only the next one's node":                                {servers: "op op g", state: Rolling, waitFor: "fs-2"},
		"an image that can't be pulled stops none":                {servers: "o ox ox", state: Stopped, unpullable: "fs-2", pull: "fs-2"},
		"but does not keep one that can't serve from a new pod":   {servers: "osx o ox", state: Rolling, next: "fs-0", healing: true, wantOnDelete: true},
		"another FileServer is first, and nothing is pulled":      {servers: "op op op", heldBy: "ns/other", state: Waiting},
		"another FileServer is first":                             {servers: "o o o", heldBy: "ns/other", state: Waiting},
		"but not where it would heal":                             {servers: "o o os", heldBy: "ns/other", state: Rolling, next: "fs-2", healing: true, wantOnDelete: true},
		"what is begun is not held":                               {servers: "o o d", heldBy: "ns/other", state: Rolling, waitFor: "fs-2"},
		"a drained one comes back during a rollout":               {servers: "o oe -", state: Rolling, waitFor: "fs-1"},
	} {
		in := Input{Observed: true, OnDelete: tc.onDelete, Complete: tc.complete, HeldBy: tc.heldBy}
		for i, letters := range strings.Fields(tc.servers) {
			in.Servers = append(in.Servers, server("fs-"+string(rune('0'+i)), letters))
		}
		got := Decide(in)
		stuck, waitFor := "", ""
		if got.Stuck != nil {
			stuck = got.Stuck.Name
		}
		for _, s := range got.For {
			waitFor += s.Name
		}
		held := ""
		for _, s := range got.Held {
			held += s.Name
		}
		unpullable := ""
		if got.Unpullable != nil {
			unpullable = got.Unpullable.Name
		}
		if got.Pull != tc.pull || unpullable != tc.unpullable {
			t.Errorf("%s: pulls for %q, unpullable %q", name, got.Pull, unpullable)
		}
		if got.State != tc.state || got.Next != tc.next || got.Now != tc.now || got.Healing != tc.healing || got.OnDelete != tc.wantOnDelete || stuck != tc.stuck || waitFor != tc.waitFor || held != tc.held {
			t.Errorf("%s: got %+v, stuck at %q, waiting for %q", name, got, stuck, waitFor)
		}
		in.Observed = false
		if got := Decide(in); got.State != Unknown || got.Next != "" || got.OnDelete != tc.onDelete {
			t.Errorf("%s, not observed yet: got %+v", name, got)
		}
	}
}

// A rollout never has two data servers of a FileServer down at once, whatever order things happen in, and it ends.
func TestARolloutTakesOneAtATimeAndEnds(t *testing.T) {
	in := Input{Observed: true}
	for _, name := range []string{"fs-0", "fs-1", "fs-2", "fs-3"} {
		in.Servers = append(in.Servers, server(name, "o"))
	}
	var order []string
	for step := range 200 {
		// What was applied is seen a step later.
		in.Observed = step%2 == 1
		plan := Decide(in)
		if plan.State == UpToDate {
			if want := []string{"fs-3", "fs-2", "fs-1", "fs-0"}; !slices.Equal(order, want) {
				t.Errorf("the order was %v, want %v", order, want)
			}
			return
		}
		down := 0
		for i := range in.Servers {
			s := &in.Servers[i]
			if !s.Serves || s.InGrace {
				down++
			}
			switch { // One step of Kubernetes and of the data server.
			case s.Ending:
				s.Made, s.Ending = false, false
			case !s.Made:
				if !in.OnDelete {
					t.Fatalf("the pod of %s is made from the earlier template", s.Name)
				}
				s.Made, s.Outdated = true, false
			case !s.Serves:
				s.Serves, s.InGrace = true, true
			case s.InGrace:
				s.InGrace = false
			case plan.Now && plan.Next == s.Name:
				s.Ending, s.Serves, order = true, false, append(order, s.Name)
			}
		}
		if down > 1 {
			t.Fatalf("%d data servers are down: %+v", down, in.Servers)
		}
		in.OnDelete = plan.OnDelete
	}
	t.Errorf("it does not end: %+v", in.Servers)
}
