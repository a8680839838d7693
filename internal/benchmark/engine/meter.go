package engine

import (
	"fmt"
	"time"

	"github.com/howdah/howdah/internal/benchmark"
)

// meter counts barriers: one when all clients are ready, then for each epoch one
// at its start and one after each step.
type meter struct {
	epochs, steps int
	next          int
	began         time.Time
	last          time.Time
	bytes         int64
}

func newMeter(p benchmark.Plan) *meter { return &meter{epochs: p.Epochs, steps: p.Steps()} }

// pass goes on to the next barrier, and returns the one that was passed.
func (m *meter) pass(bytes int64, now time.Time) int {
	if m.next == 0 {
		m.began = now
	}
	m.bytes, m.last = bytes, now
	m.next++
	return m.next - 1
}

// String is the progress: "epoch 2/5, step 30/40, 61.2 MB/s".
func (m *meter) String() string {
	if m.next <= 1 {
		return "clients get ready"
	}
	passed := m.next - 2 // of those that belong to an epoch
	epoch, step := passed/(m.steps+1), passed%(m.steps+1)
	text := fmt.Sprintf("epoch %d/%d, step %d/%d", min(epoch+1, m.epochs), m.epochs, step, m.steps)
	if seconds := m.last.Sub(m.began).Seconds(); seconds > 0 {
		text += fmt.Sprintf(", %.1f MB/s", float64(m.bytes)/1e6/seconds)
	}
	return text
}
