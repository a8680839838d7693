package crash

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// set has a process set attributes of a directory, as often as a client asks.
func (w *world) set(p *process, path string, settings tree.Settings) {
	for range 20 {
		entry, _ := p.tree.At("/s/" + path)
		status := p.service.SetAttributes(w.t.Context(), entry, settings, tree.Credentials{UID: 1000})
		if status == nfsv4.NFS4_OK {
			return
		}
		w.note("client: SETATTR of %s through %s: %s", path, p.name, nfsv4.Nfsstat4_name[status])
		if status != nfsv4.NFS4ERR_DELAY {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Errorf("the attributes of %s are not set", path)
}

// What is removed, renamed or made in a directory has modified it. A server that has not heard of that, and changes something else of the directory in the same
// moment, does not put its time of modification back.
func TestNoTimeOfModificationGoesBack(t *testing.T) {
	const prompt, late = 1, 0
	for what, settings := range map[string]tree.Settings{
		"chmod":             {Mode: ptr.To[uint32](0o700)},
		"chmod to the same": {Mode: ptr.To[uint32](0o755)},
		"touch -a":          {Access: &tree.TimeSetting{Now: true}},
	} {
		for _, change := range []request{
			{op: "rmdir", path: "p/a"},
			{op: "rename", path: "p/a", to: "q/n"},
			{op: "mkdir", path: "p/n"},
		} {
			for _, lead := range []time.Duration{-time.Second, 0, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
				during(t, func(w *world) {
					w.mu.Lock()
					w.lags = map[string]time.Duration{w.processes[late].name: 100 * time.Millisecond}
					w.mu.Unlock()
					began := time.Now()
					var changing sync.WaitGroup
					changing.Go(func() {
						time.Sleep(lead)
						if got := w.doThrough(prompt, change); got.status != nfsv4.NFS4_OK {
							t.Errorf("%s: %s", change, nfsv4.Nfsstat4_name[got.status])
						}
					})
					if lead < 0 {
						changing.Wait() // It was just made.
					}
					w.set(w.serving(late), "p", settings)
					changing.Wait()
					time.Sleep(quiet)
					for _, p := range w.running() {
						if now, _ := p.tree.At("/s/p"); now.Modified.Before(began) {
							t.Errorf("%s, and %s %s later: %s: modified %s before both", what, change, lead, p.name, began.Sub(now.Modified))
						}
					}
				})
			}
		}
	}
}

// A client that sets a time of modification gets it, also if it is an earlier one and another server changes the mode in the same moment.
func TestAnEarlierTimeThatAClientSetsStays(t *testing.T) {
	const prompt, late = 1, 0
	earlier := time.Unix(1e9, 0)
	for _, lead := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		during(t, func(w *world) {
			if got := w.doThrough(prompt, request{op: "rmdir", path: "p/a"}); got.status != nfsv4.NFS4_OK {
				t.Errorf("rmdir: %s", nfsv4.Nfsstat4_name[got.status])
			}
			time.Sleep(time.Second)
			w.mu.Lock()
			w.lags = map[string]time.Duration{w.processes[late].name: 100 * time.Millisecond}
			w.mu.Unlock()
			var setting sync.WaitGroup
			setting.Go(func() {
				time.Sleep(lead)
				w.set(w.serving(prompt), "p", tree.Settings{Modify: &tree.TimeSetting{Time: earlier}})
			})
			w.set(w.serving(late), "p", tree.Settings{Mode: ptr.To[uint32](0o700)})
			setting.Wait()
			time.Sleep(quiet)
			for _, p := range w.running() {
				if now, _ := p.tree.At("/s/p"); !now.Modified.Equal(earlier) || now.Mode != 0o700 {
					t.Errorf("utimes %s after chmod: %s: mode %o, modified %s", lead, p.name, now.Mode, now.Modified)
				}
			}
		})
	}
}

// Two servers change a directory's mode one after the other, and the first one is slow to tell data servers. They get the second mode in the end.
func TestTheLastOfTwoModesIsTheOneThatDataServersHave(t *testing.T) {
	during(t, func(w *world) {
		first, second := w.serving(0), w.serving(1)
		w.mu.Lock()
		w.stalls = func(p *process, what string) time.Duration {
			switch {
			case p == first && strings.HasPrefix(what, "NFS setattr"):
				return time.Second
			case p == second && strings.HasPrefix(what, "API patch"):
				return 2 * time.Second
			}
			return 0
		}
		w.mu.Unlock()
		var setting sync.WaitGroup
		setting.Go(func() { w.set(first, "p", tree.Settings{Mode: ptr.To[uint32](0o700)}) })
		setting.Go(func() {
			time.Sleep(50 * time.Millisecond)
			w.set(second, "p", tree.Settings{Mode: ptr.To[uint32](0o755)})
		})
		setting.Wait()
		w.mu.Lock()
		w.stalls = nil
		w.mu.Unlock()
	})
}
