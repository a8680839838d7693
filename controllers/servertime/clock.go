package servertime

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Reading is what two clocks say at one moment.
type Reading struct {
	// Server is the API server's time, exact to a second or two. Own is that of the machine that the operator runs on. Server is Own for as long as no
	// response has shown.
	Server, Own time.Time
}

// Ahead is how far the machine's clock is ahead of the API server's; below 0, how far it is behind.
func (r Reading) Ahead() time.Duration { return r.Own.Sub(r.Server) }

// Earliest is what it is by both clocks at least. What is removed for its age is old enough by this.
func (r Reading) Earliest() time.Time {
	if r.Own.Before(r.Server) {
		return r.Own
	}
	return r.Server
}

// Clock is the API server's. It reads the Date header of responses (RFC 9110, section 6.6.1), which Go's HTTP server and so every API server sets: no request is
// made for it, and no right is needed. Between responses it goes on with the machine's monotonic clock, which can't be set. It is safe for concurrent use.
type Clock struct {
	// now is time.Now, unless a test says otherwise. Its differences are monotonic.
	now func() time.Time

	mu sync.Mutex
	// server is the time of the API server's clock when the machine's had own.
	server, own time.Time
}

var _ clock.PassiveClock = (*Clock)(nil)

// New is a clock that is the machine's until a response has come by Observe.
func New() *Clock {
	return &Clock{now: clock.RealClock{}.Now}
}

// Now is the API server's time.
func (c *Clock) Now() time.Time { return c.Read().Server }

// Since is how long ago a moment was by the API server.
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

// learn takes what a response to a request of that moment says. A date has no fractions of seconds, and the response was on its way for a while. What the
// clock says already is kept if the date allows it, so that it does not jump back and forth.
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

// Read looks at a clock that may be a Clock. Any other is the only one that there is.
func Read(c clock.PassiveClock) Reading {
	if both, is := c.(interface{ Read() Reading }); is {
		return both.Read()
	}
	now := c.Now()
	return Reading{Server: now, Own: now}
}
