package servertime

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// machine is one whose wall clock may be wrong, and an API server that is right.
type machine struct {
	// gone is how long it has run, by its monotonic clock.
	gone time.Duration
	// serverAhead is how far the API server's clock is ahead of the time that passes, ahead that of the machine.
	serverAhead, ahead time.Duration
	noDate             bool
	clock              *Clock
}

// The times of a test have no monotonic part, so the machine's clock is one that can't be set; what it shows is moved afterwards.
func newMachine() *machine {
	m := &machine{}
	m.clock = &Clock{now: func() time.Time { return noon.Add(m.gone) }}
	return m
}

func (m *machine) read() Reading {
	r := m.clock.Read()
	r.Own = r.Own.Add(m.ahead)
	return r
}

// ask has a request answered that takes so long.
func (m *machine) ask(took time.Duration) {
	transport := m.clock.Observe(roundTripper(func(*http.Request) (*http.Response, error) {
		m.gone += took
		response := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
		if !m.noDate {
			response.Header.Set("Date", noon.Add(m.gone+m.serverAhead).Format(http.TimeFormat))
		}
		return response, nil
	}))
	if response, err := transport.RoundTrip(nil); err == nil {
		_ = response.Body.Close()
	}
}

func TestTheTimeIsTheAPIServersAsItsResponsesSay(t *testing.T) {
	m := newMachine()
	if r := m.read(); r.Ahead() != 0 || !r.Server.Equal(noon) {
		t.Errorf("before any response: %+v", r)
	}
	m.serverAhead = -20 * 24 * time.Hour
	m.ask(200 * time.Millisecond)
	m.gone += 90 * time.Minute
	if r := m.read(); r.Ahead().Round(2*time.Second) != 20*24*time.Hour || !r.Earliest().Equal(r.Server) {
		t.Errorf("a machine that is 20 days ahead: %+v", r)
	}
	if at := m.clock.Now(); at.Sub(noon.Add(m.gone+m.serverAhead)).Abs() > 2*time.Second {
		t.Errorf("the time is %s", at)
	}
	m.serverAhead = 0
	m.ask(200 * time.Millisecond)
	if r := m.read(); r.Ahead().Abs() > 2*time.Second {
		t.Errorf("an API server that was put right: %+v", r)
	}
}

func TestAMachineThatIsSetBetweenTwoResponsesIsFoundOut(t *testing.T) {
	m := newMachine()
	m.ask(time.Millisecond)
	m.gone, m.ahead = m.gone+time.Minute, 48*time.Hour
	if r := m.read(); r.Ahead().Round(2*time.Second) != 48*time.Hour || r.Earliest().After(noon.Add(62*time.Second)) {
		t.Errorf("%+v", r)
	}
	m.ahead = -48 * time.Hour
	if r := m.read(); r.Ahead().Round(2*time.Second) != -48*time.Hour || !r.Earliest().Equal(r.Own) {
		t.Errorf("%+v", r)
	}
}

func TestSecondsThatDatesLeaveOutDoNotMoveTheClock(t *testing.T) {
	m := newMachine()
	m.gone = 300 * time.Millisecond
	m.ask(0)
	last := m.clock.Now()
	for range 50 {
		m.gone += 370 * time.Millisecond
		m.ask(30 * time.Millisecond)
		now := m.clock.Now()
		if now.Before(last) || now.Sub(noon.Add(m.gone)).Abs() > 2*time.Second {
			t.Fatalf("%s after %s at %s", now, last, noon.Add(m.gone))
		}
		last = now
	}
}

func TestADateThatAProxyDropsChangesNothing(t *testing.T) {
	m := newMachine()
	m.noDate = true
	m.ask(time.Second)
	if r := m.read(); r.Ahead() != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAnyOtherClockIsTheOnlyOne(t *testing.T) {
	if r := Read(clocktesting.NewFakePassiveClock(noon)); r.Ahead() != 0 || !r.Earliest().Equal(noon) {
		t.Errorf("%+v", r)
	}
	if r := Read(newMachine().clock); !r.Server.Equal(noon) {
		t.Errorf("%+v", r)
	}
}
