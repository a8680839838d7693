package servertime

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Reading has the time of two clocks at one moment.
type Reading struct {
	// Server is the API server's time, exact to a second or two. Own is the time of the operator's machine. Server is
	// Own until the first response.
	Server, Own time.Time
}

// Ahead is how far the machine's clock is ahead of the API server's; below 0, how far it is behind.
func (r Reading) Ahead() time.Duration { return r.Own.Sub(r.Server) }

// Earliest is the earlier time of the two clocks. Use it to delete things for their age.
func (r Reading) Earliest() time.Time {
	if r.Own.Before(r.Server) {
		return r.Own
	}
	return r.Server
}

// Clock is the API server's clock. It reads the Date header of responses (RFC 9110, section 6.6.1), which every API
// server sets, so it needs no requests and no rights. Between responses it uses the machine's monotonic clock, which
// can't be set. It is safe for concurrent use.
type Clock struct {
	// now is time.Now except in tests. Its differences are monotonic.
	now func() time.Time

	mu sync.Mutex
	// server is the API server's time when the machine's time was own.
	server, own time.Time
}

var _ clock.PassiveClock = (*Clock)(nil)

// New returns a clock that has the machine's time until Observe has seen a response.
func New() *Clock {
	return &Clock{now: clock.RealClock{}.Now}
}

// Now is the API server's time.
func (c *Clock) Now() time.Time { return c.Read().Server }

// Since is how long ago a moment was by the API server's clock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Read looks at both clocks.
func (c *Clock) Read() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return Reading{Server: c.at(now), Own: now.Round(0)}
}

// at is the API server's time at a moment of the machine's.
func (c *Clock) at(own time.Time) time.Time {
	if c.server.IsZero() {
		return own.Round(0)
	}
	return c.server.Add(own.Sub(c.own))
}

// Observe wraps the transport of the operator's client (rest.Config.Wrap).
func (c *Clock) Observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		asked := c.now()
		response, err := next.RoundTrip(request)
		if err == nil {
			c.learn(response.Header.Get("Date"), asked)
		}
		return response, err
	})
}

// learn takes the date of a response to a request of that moment. A date has no fractions of seconds, and the response
// took some time. If the date allows the clock's current time, the clock does not change, so that it does not jump.
func (c *Clock) learn(date string, asked time.Time) {
	sent, err := http.ParseTime(date)
	if err != nil {
		return // A proxy that drops it leaves the clock as it is.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	latest := sent.Add(time.Second + now.Sub(asked))
	if known := c.at(now); !c.server.IsZero() && !known.Before(sent) && !known.After(latest) {
		return
	}
	c.server, c.own = sent, now
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Read reads a clock that may be a Clock. For any other clock both times are the same.
func Read(c clock.PassiveClock) Reading {
	if both, is := c.(interface{ Read() Reading }); is {
		return both.Read()
	}
	now := c.Now()
	return Reading{Server: now, Own: now}
}
