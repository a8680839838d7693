package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/serverpod"
)

func TestAPodStaysReadyWhileGaneshaRestartsButNotWhileItStops(t *testing.T) {
	now := time.Unix(1000, 0)
	expected := &Expectation{}
	p := NewProbes(func() supervisor.State { return supervisor.State{} }, nil, expected)
	p.now = func() time.Time { return now }
	isReady := func(what string, want bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*readyPoll)
		defer cancel()
		if err := p.ready(ctx); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	isReady("it has never served", false)
	expected.setReady(now)
	now = now.Add(serverpod.ReadyAllowance - time.Millisecond)
	isReady("ganesha is down for less than the limit", true)
	now = now.Add(time.Millisecond)
	isReady("ganesha is down for too long", false)
	expected.setReady(now)
	isReady("it was ready a moment ago", true)
	expected.SetStopping()
	isReady("it is being stopped", false)
}

// A clock that is put back by an hour must not keep a pod ready for an hour.
func TestWhenAPodWasReadyDoesNotDependOnTheClock(t *testing.T) {
	var expected Expectation
	expected.setReady(time.Now())
	if last, ok := expected.lastReady(); !ok || !strings.Contains(last.String(), " m=") {
		t.Errorf("it has no monotonic part: %s, %v", last, ok)
	}
}
