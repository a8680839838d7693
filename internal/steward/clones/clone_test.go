package clones

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// cluster is a fake Ceph that answers as the source of 18.2.7 does: a clone has a state, Info of an incomplete clone fails,
// and rm of it needs force.
type cluster struct {
	// state is the clone's; "" if there is none, "no clone" for another subvolume of its name.
	state string
	fail  map[string]error // By command.
	asked []string
}

func (c *cluster) ask(_ context.Context, command ceph.Command) (string, error) {
	name, _ := command.Arguments["prefix"].(string)
	if command.Arguments["group_name"] != "howdah-g" || command.Arguments["vol_name"] != "fs1" {
		return "", errors.New("elsewhere")
	}
	if name != "fs clone status" && name != "fs subvolume info" {
		c.asked = append(c.asked, strings.TrimPrefix(name, "fs "))
	}
	if err := c.fail[name]; err != nil {
		return "", err
	}
	switch name {
	case "fs clone status":
		switch c.state {
		case "":
			return "", syscall.ENOENT
		case "no clone":
			return "", syscall.ENOTSUP
		case "failed":
			return `{"status":{"state":"failed","failure":{"errno":"28","error_msg":"No space left on device"}}}`, nil
		}
		return `{"status":{"state":"` + c.state + `"}}`, nil
	case "fs subvolume snapshot clone":
		if command.Arguments["sub_name"] != "howdah-source" || command.Arguments["snap_name"] != "now" || command.Arguments["target_sub_name"] != "howdah-clone" {
			return "", errors.New("another clone")
		}
		c.state = "pending"
	case "fs clone cancel":
		c.state = "canceled"
	case "fs subvolume rm":
		if command.Arguments["force"] != true {
			return "", syscall.EAGAIN
		}
		c.state = ""
	}
	return "", nil
}

func clone(begun bool) *Clone {
	made := &Clone{Volume: ceph.Volume{FileSystem: "fs1", Group: "howdah-g"}, Subvolume: "howdah-clone", Source: "howdah-source", Share: "data", Snapshot: "now"}
	if begun {
		at := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
		made.Begun = &at
	}
	return made
}

func TestMake(t *testing.T) {
	const cloning, refused, failing = v1alpha1.ReasonCloning, v1alpha1.ReasonCloneRefused, v1alpha1.ReasonCloneFailed
	for name, tc := range map[string]struct {
		begun   bool
		cluster cluster
		// asked is the changing command that Ceph got; reason "" means a clone that can be used.
		asked, reason, words string
		begin                bool
	}{
		"nothing is there":                {reason: cloning, words: "about to copy snapshot now of share data", begin: true},
		"it was written down":             {begun: true, asked: "subvolume snapshot clone", reason: cloning, words: "copies snapshot now of share data since 2026-11-22T18:00:00Z: pending"},
		"Ceph waits":                      {begun: true, cluster: cluster{state: "pending"}, reason: cloning, words: "pending"},
		"Ceph copies":                     {begun: true, cluster: cluster{state: "in-progress"}, reason: cloning, words: "in-progress"},
		"it is whole":                     {begun: true, cluster: cluster{state: "complete"}},
		"it failed":                       {begun: true, cluster: cluster{state: "failed"}, reason: failing, words: "failed (No space left on device (28))"},
		"it was cancelled":                {begun: true, cluster: cluster{state: "canceled"}, reason: failing, words: "canceled"},
		"an earlier clone of its name":    {cluster: cluster{state: "complete"}, reason: refused, words: "without spec.source to have that data"},
		"an earlier share of its name":    {cluster: cluster{state: "no clone"}, reason: refused, words: "subvolume howdah-clone of group howdah-g is there already"},
		"another's subvolume of its name": {begun: true, cluster: cluster{state: "no clone"}, reason: refused, words: "neither served"},
		"too many at a time": {
			begun: true, cluster: cluster{fail: map[string]error{"fs subvolume snapshot clone": syscall.EAGAIN}},
			asked: "subvolume snapshot clone", reason: cloning, words: "waits for its turn",
		},
		"the snapshot has gone": {
			begun: true, cluster: cluster{fail: map[string]error{"fs subvolume snapshot clone": syscall.ENOENT}},
			asked: "subvolume snapshot clone", reason: failing, words: "is not in Ceph any more",
		},
	} {
		err := clone(tc.begun).Make(t.Context(), tc.cluster.ask)
		var fault *Fault
		switch {
		case strings.Join(tc.cluster.asked, ", ") != tc.asked:
			t.Errorf("%s: asked for %v", name, tc.cluster.asked)
		case tc.reason == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.reason != "" && (!errors.As(err, &fault) || fault.Reason != tc.reason || !strings.Contains(fault.Error(), tc.words) || fault.Begin != tc.begin):
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// A manager that has just started returns the same error as for a subvolume that is not a clone. Nothing may be refused for it.
func TestAManagerThatHasJustStartedRefusesNothing(t *testing.T) {
	for _, begun := range []bool{false, true} {
		c := cluster{state: "no clone", fail: map[string]error{"fs subvolume info": syscall.ENOTSUP}}
		if err := clone(begun).Make(t.Context(), c.ask); err == nil || errors.As(err, new(*Fault)) || len(c.asked) > 0 {
			t.Errorf("%v, asked for %v", err, c.asked)
		}
	}
	c := cluster{state: "no clone", fail: map[string]error{"fs subvolume info": syscall.ENOTSUP}}
	if ended, err := clone(true).End(t.Context(), c.ask); ended || err == nil {
		t.Errorf("%v, %v", ended, err)
	}
}

func TestMakeTellsWhenCephDoesNotAnswer(t *testing.T) {
	for _, command := range []string{"fs clone status", "fs subvolume snapshot clone"} {
		c := cluster{fail: map[string]error{command: syscall.ETIMEDOUT}}
		if err := clone(true).Make(t.Context(), c.ask); !errors.Is(err, syscall.ETIMEDOUT) || errors.As(err, new(*Fault)) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		begun bool
		state string
		asked []string
		// ended: there is nothing else to end. waits: it is to be tried again.
		ended, waits bool
	}{
		"never begun":                          {ended: true},
		"never begun, and other data is there": {state: "complete", ended: true},
		"begun, and Ceph was not asked":        {begun: true, ended: true},
		"being copied":                         {begun: true, state: "in-progress", asked: []string{"clone cancel"}, waits: true},
		"yet to be copied":                     {begun: true, state: "pending", asked: []string{"clone cancel"}, waits: true},
		"cancelled":                            {begun: true, state: "canceled", asked: []string{"subvolume rm"}, ended: true},
		"failed":                               {begun: true, state: "failed", asked: []string{"subvolume rm"}, ended: true},
		"whole: it is data":                    {begun: true, state: "complete"},
		"another's subvolume came in between":  {begun: true, state: "no clone", ended: true},
	} {
		c := cluster{state: tc.state}
		ended, err := clone(tc.begun).End(t.Context(), c.ask)
		if ended != tc.ended || (err != nil) != tc.waits || !slices.Equal(c.asked, tc.asked) {
			t.Errorf("%s: %v, %v, asked for %v", name, ended, err, c.asked)
		}
	}
}
