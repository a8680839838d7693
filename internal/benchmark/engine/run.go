package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
)

const (
	// findTimeout is how long a client waits for the coordinator's address.
	findTimeout = gatherTimeout
	findEvery   = 500 * time.Millisecond
	dialTimeout = 5 * time.Second
	// connectLimit is how long a coordinator with a known address may be unreachable.
	connectLimit = 30 * time.Second
	// recordTimeout is how long the outcome of a run may take to be written.
	recordTimeout = 30 * time.Second
	// warmers is the number of files that are checked at the same time before the run.
	warmers = 8
	// lookAgain is how often to look again for a missing file, a second apart: the mounts' acdirmax is 2 s.
	lookAgain = 4
)

// Runner is one client of a run.
type Runner struct {
	// Plan describes the run.
	Plan benchmark.Plan
	// ID distinguishes the run from others in the same journal; it may be "".
	ID string
	// Client is the number of this client; client 0 coordinates.
	Client int
	// Name and NodeName are of the client's pod.
	Name, NodeName string
	// Data is where the share is mounted.
	Data string
	// Address is where other clients reach this one, Port the coordinator's port (0: any).
	Address string
	Port    int
	// Token is a secret of the clients of the run.
	Token string
	// Journal is for progress and result.
	Journal Journal
	// Log is for messages to people.
	Log *slog.Logger

	// Replaced by tests; nil means the real one.
	open      func(path string) (sampleFile, error)
	compute   func(context.Context, time.Duration) error
	cpu       func() (benchmark.CPUTime, error)
	transport transport
}

func (r *Runner) network() transport {
	if r.transport != nil {
		return r.transport
	}
	return tcp{host: r.Address, port: r.Port}
}

// Run runs the workload with all other clients. On client 0 it returns the result, on others nil.
// The error names the client that failed and why.
func (r *Runner) Run(ctx context.Context) (*v1alpha1.BenchmarkResult, error) {
	if r.Token == "" {
		return nil, errors.New("the token of the run is not set")
	}
	if r.Client != 0 {
		address, err := r.findCoordinator(ctx)
		if err != nil {
			return nil, err
		}
		return nil, r.take(ctx, address)
	}
	return r.coordinate(ctx)
}

func (r *Runner) coordinate(ctx context.Context) (*v1alpha1.BenchmarkResult, error) {
	listener, address, err := r.network().listen()
	if err != nil {
		return nil, fmt.Errorf("coordinating the run: %w", err)
	}
	if err := r.Journal.Record(ctx, map[string]string{benchmark.KeyCoordinator(r.ID): address}); err != nil {
		_ = listener.Close()
		return nil, err
	}
	c := &coordinator{
		plan: r.Plan, id: r.ID, token: r.Token, journal: r.Journal, log: r.Log,
		counters: &counters{servers: r.Plan.Servers, log: r.Log},
	}
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	own := make(chan error, 1)
	go func() {
		err := r.take(runCtx, address)
		if err != nil {
			stop(err) // it may not even have joined
		}
		own <- err
	}()
	measured, err := c.run(runCtx, listener)
	if err == nil {
		err = <-own
	}
	// After a failure the coordinator does not wait for its own client: with a mount that hangs the reason would never be recorded.
	stop(err)
	var result *v1alpha1.BenchmarkResult
	if err == nil {
		result = benchmark.NewResult(r.Plan, measured.reports, measured.servers)
	}
	return result, errors.Join(err, r.record(result, err))
}

// record writes the outcome, also when the run was stopped.
func (r *Runner) record(result *v1alpha1.BenchmarkResult, failure error) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if failure != nil {
		return r.Journal.Record(ctx, map[string]string{benchmark.KeyFailure(r.ID): failure.Error()})
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	values := map[string]string{benchmark.KeyResult: string(text), benchmark.KeyTable: benchmark.Table(r.Plan, result)}
	for err = r.Journal.Record(ctx, values); err != nil && ctx.Err() == nil; err = r.Journal.Record(ctx, values) {
		r.Log.Warn("the result was not recorded; trying again", "error", err)
		time.Sleep(findEvery)
	}
	return err
}

// findCoordinator waits until client 0 has recorded its address.
func (r *Runner) findCoordinator(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	ticker := time.NewTicker(findEvery)
	defer ticker.Stop()
	for {
		values, err := r.Journal.Read(ctx)
		if address := values[benchmark.KeyCoordinator(r.ID)]; err == nil && address != "" {
			return address, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("client 0, the coordinator, did not start within %s: %w", findTimeout, errors.Join(err, context.Cause(ctx)))
		case <-ticker.C:
		}
	}
}

// take takes part in a run as a client.
func (r *Runner) take(ctx context.Context, coordinatorAddress string) error {
	s, err := r.join(ctx, coordinatorAddress)
	if err != nil {
		return err
	}
	defer s.link.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.link.keepAlive(ctx)
	go s.listen(cancel)

	report, err := r.measure(ctx, s)
	if err == nil {
		err = s.link.send(message{Kind: kindReport, Report: report})
	}
	if err == nil {
		<-ctx.Done() // the coordinator sends the outcome
		err = ctx.Err()
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errRunDone):
		return nil
	case cause != nil:
		return cause
	}
	if sendErr := s.link.send(message{Kind: kindFail, Reason: err.Error()}); sendErr == nil {
		// Wait for the coordinator's answer, so that it has the reason before the connection ends.
		select {
		case <-ctx.Done():
		case <-time.After(silence):
		}
	}
	return err
}

// join connects to the coordinator and shows the token.
func (r *Runner) join(ctx context.Context, address string) (*session, error) {
	conn, err := r.dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("can't reach client 0, the coordinator, at %s; check NetworkPolicies: %w", address, err)
	}
	l := newLink(conn)
	challenge, err := l.receive(maxHello)
	if err == nil {
		err = l.send(message{Kind: kindHello, Client: r.Client, Name: r.Name, Proof: proof(r.Token, challenge.Nonce)})
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("joining the run: %s", lossReason(err))
	}
	return &session{link: l, released: make(chan int, 1)}, nil
}

// dial retries: other nodes learn of the network of a new pod with a delay.
func (r *Runner) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	for {
		conn, err := r.network().dial(ctx, address)
		if err == nil {
			return conn, nil
		}
		if sleep(ctx, findEvery) != nil {
			return nil, err
		}
	}
}

// measure gets ready, reads all epochs with all accelerators of this client, and reports.
func (r *Runner) measure(ctx context.Context, s *session) (*benchmark.ClientReport, error) {
	dataset := r.Plan.Dataset()
	files := make([]file, r.Plan.Samples)
	for i, shape := range dataset.Shapes() {
		files[i] = file{path: filepath.Join(r.Data, dataset.File(i)), shape: shape}
	}
	perClient := r.Plan.AcceleratorsPerClient()
	share := perClient * (r.Plan.Samples / r.Plan.Accelerators)
	if err := r.warmUp(ctx, files[r.Client*share:(r.Client+1)*share]); err != nil {
		return nil, err
	}
	r.logMounts()
	s.local = newBarrier(perClient, s.pass)
	if err := s.pass(ctx); err != nil { // all clients are ready
		return nil, err
	}
	return r.allEpochs(ctx, s, files)
}

// allEpochs reads all epochs with all accelerators of this client.
func (r *Runner) allEpochs(ctx context.Context, s *session, files []file) (*benchmark.ClientReport, error) {
	accelerators := make([]*accelerator, r.Plan.AcceleratorsPerClient())
	for i := range accelerators {
		rank := r.Client*len(accelerators) + i
		accelerators[i] = &accelerator{runner: r, session: s, files: files, order: benchmark.NewOrder(r.Plan.Samples, r.Plan.Accelerators, rank)}
	}
	cpu := watchCPU(r.cpu, r.Log)
	err := inParallel(ctx, len(accelerators), accelerators, func(ctx context.Context, a *accelerator) error {
		for range r.Plan.Epochs {
			if err := a.epoch(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	use, starved := cpu.stop()
	if err != nil {
		return nil, err
	}
	report := &benchmark.ClientReport{Name: r.Name, NodeName: r.NodeName, MemoryBytes: memoryBytes(), CPU: use}
	for i := range r.Plan.Epochs {
		var measured []measuredEpoch
		var epoch benchmark.ClientEpoch
		for _, a := range accelerators {
			measured = append(measured, a.epochs[i])
			epoch.Ranks = append(epoch.Ranks, a.epochs[i].RankEpoch)
		}
		epoch.LostFirst, epoch.Lost = lost(measured, starved)
		report.Epochs = append(report.Epochs, epoch)
	}
	return report, nil
}

// warmUp opens every file that this client reads. That mounts the folders, as DLIO's listing of the dataset does, checks that the dataset is
// complete, and removes the files from this node's page cache.
func (r *Runner) warmUp(ctx context.Context, files []file) error {
	return inParallel(ctx, warmers, files, func(ctx context.Context, f file) error {
		err := look(f)
		// NFS clients may use a cached directory for a while after another client has changed it.
		for range lookAgain {
			if err == nil || sleep(ctx, time.Second) != nil {
				break
			}
			err = look(f)
		}
		if err != nil {
			return fmt.Errorf("the dataset is not complete: %w", err)
		}
		return nil
	})
}

// look opens a file, checks its size, and removes it from the page cache.
func look(f file) error {
	opened, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer opened.Close() //nolint:errcheck // read only
	info, err := opened.Stat()
	if err == nil && info.Size() != f.shape.FileSize() {
		err = fmt.Errorf("%s has %d bytes instead of %d", f.path, info.Size(), f.shape.FileSize())
	}
	dropCached(opened)
	return err
}

// logMounts logs which servers this client reads from, and with how many connections.
func (r *Runner) logMounts() {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return // not on Linux
	}
	for _, m := range benchmark.NFSMounts(string(text), r.Data) {
		r.Log.Info("mounted", "path", m.Path, "server", m.Address, "version", m.Version, "nconnect", m.Nconnect)
		if m.Nconnect != r.Plan.Nconnect {
			r.Log.Warn("the number of connections is not what the job asks for: this node has another mount of that server, and Linux shares its connections",
				"server", m.Address, "nconnect", m.Nconnect, "wanted", r.Plan.Nconnect)
		}
	}
}

// memoryBytes is the memory of this node, 0 if it is not known. DLIO counts it the
// same way: a pod's limit does not bound the page cache of others on the node.
func memoryBytes() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return 0
}
