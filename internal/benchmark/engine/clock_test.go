package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
)

// Everything that is timed runs here in a bubble of testing/synctest: its clock moves when all
// goroutines wait, so that a second is a second on any machine. Sockets can't be waited for in a bubble; pipes can.

// pipes is a transport within a bubble.
type pipes struct {
	arriving chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newPipes() *pipes {
	return &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) listen() (net.Listener, string, error) { return p, "pipes", nil }

func (p *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.arriving <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.arriving:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// cpus are CPUs of which always the same part is left.
func cpus(leftPercent uint64) func() (benchmark.CPUTime, error) {
	start := time.Now()
	return func() (benchmark.CPUTime, error) {
		ticks := uint64(time.Since(start) / (10 * time.Millisecond))
		return benchmark.CPUTime{Total: 100 * ticks, Left: leftPercent * ticks}, nil
	}
}

// timedRunner is a client in a bubble, with a machine to itself.
func timedRunner(plan benchmark.Plan, client int, data string, journal Journal, p *pipes) *Runner {
	r := runner(plan, client, data, journal)
	r.transport, r.cpu = p, cpus(60)
	return r
}

// slowFile gives its bytes at a rate that all readers share.
type slowFile struct {
	sampleFile
	limiter *limiter
}

type limiter struct {
	perSecond int64
	turn      chan struct{}
}

func (f slowFile) Read(p []byte) (int, error) {
	n, err := f.sampleFile.Read(p)
	f.limiter.turn <- struct{}{}
	time.Sleep(time.Duration(int64(n) * int64(time.Second) / f.limiter.perSecond))
	<-f.limiter.turn
	return n, err
}

// slowly makes a client read at a rate.
func slowly(r *Runner, perSecond int64) {
	limit := &limiter{perSecond: perSecond, turn: make(chan struct{}, 1)}
	r.open = func(path string) (sampleFile, error) {
		f, err := openCached(path)
		return slowFile{f, limit}, err
	}
}

func onePlan() benchmark.Plan {
	plan := testPlan()
	plan.Clients, plan.Accelerators, plan.Epochs, plan.ComputeMillis = 1, 1, 1, 100
	return plan
}

func TestUtilizationFallsWithSlowStorage(t *testing.T) {
	plan, data := onePlan(), t.TempDir()
	generate(t, plan, data)
	demand := int64(benchmark.BatchSize) * plan.SampleSize * 1000 / plan.ComputeMillis // bytes in a second at an AU of 100 %
	late := func(ctx context.Context, d time.Duration) error { return sleep(ctx, d+d/5) }
	tests := map[string]struct {
		perSecond   int64
		cpuLeft     uint64
		compute     func(context.Context, time.Duration) error
		least, most float64
		verdict     v1alpha1.Verdict
	}{
		"storage with four times what is asked for":          {4 * demand, 60, nil, 100, 100, v1alpha1.VerdictPassed},
		"storage with half of what is asked for":             {demand / 2, 60, nil, 45, 55, v1alpha1.VerdictFailed},
		"a client that has no CPU left and waits":            {demand / 2, 4, nil, 45, 55, v1alpha1.VerdictInvalid},
		"a client that has no CPU left and need not wait":    {4 * demand, 0, nil, 100, 100, v1alpha1.VerdictPassed},
		"a client that computes late, whatever its CPUs say": {4 * demand, 60, late, 83, 84, v1alpha1.VerdictInvalid},
	}
	for name, tc := range tests {
		journal := NewDirectoryJournal(t.TempDir())
		synctest.Test(t, func(t *testing.T) {
			r := timedRunner(plan, 0, data, journal, newPipes())
			r.cpu, r.compute = cpus(tc.cpuLeft), tc.compute
			slowly(r, tc.perSecond)
			result, err := r.Run(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			au, err := strconv.ParseFloat(result.AUPercent, 64)
			if err != nil || au < tc.least || au > tc.most || result.Verdict != tc.verdict {
				t.Errorf("%s: AU is %s, want %.0f to %.0f; verdict %s, want %s; %s", name, result.AUPercent, tc.least, tc.most, result.Verdict, tc.verdict, result.Message)
			}
			if left := fmt.Sprintf("%d.00", tc.cpuLeft); result.PerClient[0].CPUIdlePercent != left {
				t.Errorf("%s: %s %% of the CPU left, want %s", name, result.PerClient[0].CPUIdlePercent, left)
			}
		})
	}
}

// Of two clients one has no CPU; both wait for it in every step, and it alone is named.
func TestTheClientWithoutCPUIsNamed(t *testing.T) {
	plan, data := testPlan(), t.TempDir()
	generate(t, plan, data)
	journal := NewDirectoryJournal(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		starved := timedRunner(plan, 1, data, journal, p)
		starved.cpu = cpus(1)
		slowly(starved, plan.SampleSize*2*benchmark.BatchSize*1000/plan.ComputeMillis/2) // half of what it needs
		failed := make(chan error, 1)
		go func() {
			_, err := starved.Run(t.Context())
			failed <- err
		}()
		result, err := timedRunner(plan, 0, data, journal, p).Run(t.Context())
		if err := errors.Join(err, <-failed); err != nil {
			t.Fatal(err)
		}
		if result.Verdict != v1alpha1.VerdictInvalid || !strings.Contains(result.Message, "client-1") || strings.Contains(result.Message, "client-0") {
			t.Errorf("verdict %s: %s", result.Verdict, result.Message)
		}
		values, err := journal.Read(t.Context())
		if err != nil || !strings.Contains(values[benchmark.KeyTable], "VERDICT: INVALID") || !strings.Contains(values[benchmark.KeyTable], result.Message) {
			t.Errorf("the table does not say so: %v\n%s", err, values[benchmark.KeyTable])
		}
	})
}

// hold makes a client's storage hang as a hard mount does, from its first read on.
func hold(r *Runner) (release func()) {
	held := make(chan struct{})
	r.open = func(path string) (sampleFile, error) {
		<-held
		return openCached(path)
	}
	return sync.OnceFunc(func() { close(held) })
}

func TestTimeoutsForSilentClients(t *testing.T) {
	plan, data := testPlan(), t.TempDir()
	generate(t, plan, data)
	tests := map[string]struct {
		// client plays client 1 until the run is over.
		client           func(t *testing.T, r *Runner, over <-chan struct{})
		coordinatorHangs bool
		after            time.Duration
		reason           string
	}{
		"it never comes": {
			func(_ *testing.T, _ *Runner, over <-chan struct{}) { <-over },
			false, gatherTimeout, "client 1 did not connect within 10m0s",
		},
		"its process ends": {
			func(t *testing.T, r *Runner, _ <-chan struct{}) { joined(t, r).link.close() },
			false, 0, "lost the connection to client 1 (client-1): it closed the connection",
		},
		"its node ends": {
			func(t *testing.T, r *Runner, over <-chan struct{}) {
				s := joined(t, r)
				go s.listen(func(error) {}) // what the kernel of a dead node's peer keeps in its buffers
				<-over
				s.link.close()
			},
			false, silence, "lost the connection to client 1 (client-1): no message for 10s",
		},
		"the mount of the one that coordinates hangs": {
			func(t *testing.T, r *Runner, _ <-chan struct{}) {
				_, err := r.Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), "no step ended") {
					t.Errorf("the client itself says %v", err)
				}
			},
			true, stallTimeout, "no step ended within 5m0s: client 0 (client-0) did not finish; check whether its mount of the share hangs",
		},
		"its mount hangs": {
			func(t *testing.T, r *Runner, over <-chan struct{}) {
				release := hold(r)
				go func() { <-over; release() }()
				_, err := r.Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), "no step ended") {
					t.Errorf("the client itself says %v", err)
				}
			},
			false, stallTimeout, "no step ended within 5m0s: client 1 (client-1) did not finish; check whether its mount of the share hangs",
		},
	}
	for name, tc := range tests {
		journal := NewDirectoryJournal(t.TempDir())
		synctest.Test(t, func(t *testing.T) {
			p := newPipes()
			over, gone := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(gone)
				tc.client(t, timedRunner(plan, 1, data, journal, p), over)
			}()
			coordinator := timedRunner(plan, 0, data, journal, p)
			release := func() {}
			if tc.coordinatorHangs {
				release = hold(coordinator)
			}
			start := time.Now()
			_, err := coordinator.Run(t.Context())
			took := time.Since(start)
			release()
			close(over)
			<-gone
			if err == nil || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("%s: error is %v", name, err)
			}
			if took < tc.after || took > tc.after+heartbeat {
				t.Errorf("%s: it took %s, want %s", name, took, tc.after)
			}
			values, err := journal.Read(t.Context())
			if err != nil || !strings.Contains(values[benchmark.KeyFailure("")], tc.reason) {
				t.Errorf("%s: recorded failure is %q, %v", name, values[benchmark.KeyFailure("")], err)
			}
		})
	}
}

// joined is a client that has joined the run, and does nothing more by itself.
func joined(t *testing.T, r *Runner) *session {
	t.Helper()
	s, err := r.join(t.Context(), "pipes")
	if err != nil {
		t.Error(err)
	}
	return s
}

func TestOverlaps(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	spans := func(seconds ...int) []span {
		var s []span
		for i := 0; i < len(seconds); i += 2 {
			s = append(s, span{at(seconds[i]), at(seconds[i+1])})
		}
		return s
	}
	tests := map[string]struct {
		waits, starved []span
		want           []int
	}{
		"never starved":             {spans(0, 5, 7, 9), nil, []int{0, 0}},
		"starved all the time":      {spans(0, 5, 7, 9), spans(0, 1, 1, 2, 2, 10), []int{5, 2}},
		"starved between the waits": {spans(0, 5, 7, 9), spans(5, 7), []int{0, 0}},
		"one span for two waits":    {spans(0, 5, 7, 9), spans(4, 8), []int{1, 1}},
		"two spans for one wait":    {spans(0, 9), spans(1, 2, 4, 6), []int{3}},
		"never waited":              {nil, spans(1, 2), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := overlaps(tc.waits, tc.starved)
			if len(got) != len(tc.want) {
				t.Fatalf("%v", got)
			}
			for i, want := range tc.want {
				if got[i] != time.Duration(want)*time.Second {
					t.Errorf("wait %d: %s, want %d s", i, got[i], want)
				}
			}
		})
	}
}

func TestTheLossOfAStepIsThatOfItsSlowestAccelerator(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	wait := func(from, to int) span { return span{at(from), at(to)} }
	epochs := []measuredEpoch{
		{waits: []span{wait(0, 100), wait(500, 500)}, late: []time.Duration{5, 0}},
		{waits: []span{wait(0, 300), wait(500, 510)}, late: []time.Duration{0, 3}},
	}
	if first, others := lost(epochs, []span{wait(0, 1000)}); first != 300*time.Millisecond || others != 10*time.Millisecond+3 {
		t.Errorf("with no CPU at all %s and %s are lost", first, others)
	}
	if first, others := lost(epochs, nil); first != 5 || others != 3 {
		t.Errorf("with CPU %s and %s are lost", first, others)
	}
}

// The real files, on the machine of the test: there is a CPU that the process may use, and it works.
func TestCPUTimeOfThisMachine(t *testing.T) {
	before, err := readCPUTime()
	if err != nil {
		t.Fatal(err)
	}
	after := before
	for i := 0; after.Total == before.Total; i++ {
		if after, err = readCPUTime(); err != nil {
			t.Fatal(err)
		}
	}
	if use := after.Since(before); use.LeftPercent < 0 || use.LeftPercent > 100 {
		t.Errorf("%+v", use)
	}
}
