package owners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/howdah/howdah/internal/namespace/ownertest"
)

func TestAServerIsDownWhenItsPortIsClosedOrItMissesTwoProbes(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []error
		want    []bool // reachable after each answer
	}{
		"it answers":         {[]error{nil, nil}, []bool{true, true}},
		"its port is closed": {[]error{fmt.Errorf("dial: %w", syscall.ECONNREFUSED)}, []bool{false}},
		"it is slow once":    {[]error{errors.New("timeout"), nil}, []bool{true, true}},
		"it is slow twice":   {[]error{errors.New("timeout"), errors.New("timeout"), nil}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var answer atomic.Pointer[error]
			p := NewProber(nil, func(context.Context, string) error { return *answer.Load() },
				clocktesting.NewFakeClock(time.Unix(0, 0)), slog.New(slog.DiscardHandler))
			for i, err := range tc.answers {
				answer.Store(&err)
				if !p.begin("s") {
					t.Fatal("the last probe still runs")
				}
				p.probe(t.Context(), "s", "address")
				if got := p.Reachable("s"); got != tc.want[i] {
					t.Errorf("after answer %d it is reachable: %v", i, got)
				}
			}
		})
	}
}

func TestAServerAnswersOrIsSilentOnlyAfterItWasAsked(t *testing.T) {
	timeout := errors.New("timeout")
	for name, tc := range map[string]struct {
		answers []error
		want    Answer
	}{
		"it was not asked yet":                  {nil, NotKnown},
		"it answered":                           {[]error{nil}, Answers},
		"it missed its first probe":             {[]error{timeout}, NotKnown},
		"it missed its first probes":            {[]error{timeout, timeout}, Silent},
		"it answered once and missed one probe": {[]error{nil, timeout}, NotKnown},
		"it is back":                            {[]error{timeout, timeout, nil}, Answers},
	} {
		t.Run(name, func(t *testing.T) {
			var answer error
			servers := map[string]string{"s": "address"}
			p := NewProber(nil, func(context.Context, string) error { return answer },
				clocktesting.NewFakeClock(time.Unix(7, 0)), slog.New(slog.DiscardHandler))
			for _, answer = range tc.answers {
				p.probe(t.Context(), "s", "address")
			}
			p.forget(servers)
			got, since := p.Answer("s")
			if got != tc.want || since.IsZero() == (got == Silent) {
				t.Errorf("got %v since %v", got, since)
			}
			p.forget(nil)
			if got, _ := p.Answer("s"); got != NotKnown {
				t.Errorf("of a server that is not probed any more: %v", got)
			}
		})
	}
}

func TestTheProberAsksRealServers(t *testing.T) {
	owner := ownertest.Start(t, "owner", "fs-0")
	pool := NewPool("test", func(string) string { return "" }, nil, slog.New(slog.DiscardHandler))
	servers := map[string]string{"up": owner.Address, "down": "127.0.0.1:1"}
	p := NewProber(func() map[string]string { return servers }, pool.Null, clocktesting.NewFakeClock(time.Unix(0, 0)), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	deadline := time.Now().Add(time.Minute)
	for p.Reachable("down") && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if p.Reachable("down") || !p.Reachable("up") || p.Down() != 1 {
		t.Errorf("reachable: down %v, up %v", p.Reachable("down"), p.Reachable("up"))
	}
}
