package crash

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// runOnce is one request whose client goes away before it has an answer, and asks for nothing more.
func (s *scenario) runOnce(t *testing.T, cutting cutter) (wrong []string, steps int, trail []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, s.before)
		w.data.stays = s.stays
		if s.ceph {
			w.inCeph()
		}
		end := w.begin()
		time.Sleep(20 * time.Second)
		w.mu.Lock()
		w.steps, w.cutting, w.trail = 0, cutting, nil
		w.mu.Unlock()
		p := w.serving(0)
		answered := make(chan struct{})
		go func() { send(p, s.request); close(answered) }()
		select {
		case <-answered:
		case <-p.gone:
		}
		time.Sleep(time.Second)
		w.mu.Lock()
		steps, w.cutting = w.steps, func(int, *process, string) mode { return fine }
		w.mu.Unlock()
		time.Sleep(quiet)
		wrong = w.faults()
		if left := w.layout(); !maps.Equal(left, s.before) && !maps.Equal(left, s.after) {
			wrong = append(wrong, fmt.Sprintf("what is left is neither the one nor the other: %v", left))
		}
		end()
		trail = w.trail
	})
	return wrong, steps, trail
}

// A client that ends, too, can't do what was cut once more. A directory that was to be replaced is there still, or the other has its name.
func TestWhatIsCutIsDoneOrNotDoneThoughItsClientHasGone(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			_, steps, _ := s.runOnce(t, func(int, *process, string) mode { return fine })
			cutEach(t, steps, func(cutting cutter) ([]string, []string) {
				wrong, _, trail := s.runOnce(t, cutting)
				return wrong, trail
			})
		})
	}
}
