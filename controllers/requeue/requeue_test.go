package requeue

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestSoonestIgnoresDurationsThatAreNever(t *testing.T) {
	for name, tc := range map[string]struct {
		durations []time.Duration
		want      time.Duration
	}{
		"none":              {nil, 0},
		"only never":        {[]time.Duration{0, 0}, 0},
		"never and a time":  {[]time.Duration{0, time.Minute}, time.Minute},
		"the first is less": {[]time.Duration{time.Second, time.Minute, 0}, time.Second},
		"negative":          {[]time.Duration{-time.Second, time.Minute}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Soonest(tc.durations...); got != tc.want {
				t.Errorf("Soonest(%v) = %s, want %s", tc.durations, got, tc.want)
			}
		})
	}
}

func TestAFailedReconcileRunsAgainWithinHalfAMinute(t *testing.T) {
	limiter, last := RateLimiter(), time.Duration(0)
	for range 100 {
		last = limiter.When(reconcile.Request{})
	}
	if last != 30*time.Second {
		t.Errorf("after 100 failures the next reconcile is after %s, want 30s", last)
	}
}
