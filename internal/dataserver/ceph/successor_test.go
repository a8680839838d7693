package ceph

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestGaneshaDoesNotStartWhileAnotherPodServes(t *testing.T) {
	const ours, next = "10.0.0.1:0/1", "10.0.0.2:0/2"
	for name, tc := range map[string]struct {
		served bool
		// watch has the watchers of each look.
		watch [][]string
		want  time.Duration
	}{
		"this pod has not served":              {false, nil, 0},
		"its own watch has not timed out":      {true, [][]string{{ours}}, 0},
		"there is no watcher":                  {true, [][]string{nil}, 0},
		"another pod serves for ten seconds":   {true, [][]string{{next}, {next}, nil}, 2 * successorPoll},
		"another pod has begun and ours stays": {true, [][]string{{ours, next}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
				if tc.served {
					b.watching.set([]string{ours})
				}
				cluster := &sick{}
				watch := &healthWatch{connection: cluster, watching: &b.watching}
				go func() {
					for _, addresses := range tc.watch {
						cluster.watch = addresses
						watch.answer(t.Context(), <-b.asking)
					}
				}()
				began := time.Now()
				b.awaitTurn(t.Context())
				if took := time.Since(began); took != tc.want {
					t.Errorf("ganesha may start after %s, want %s", took, tc.want)
				}
			})
		})
	}
}

func TestAHealthWatchWithoutConnectionDoesNotAnswerForIt(t *testing.T) {
	answer := make(chan []string, 1)
	(&healthWatch{}).answer(t.Context(), answer)
	if found, ok := <-answer; ok {
		t.Errorf("without a connection the watchers are %v", found)
	}
}
