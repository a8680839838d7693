package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// quiet is how long nothing must happen for the operator to be done.
const quiet = 2500 * time.Millisecond

// pollEvery is how often to look whether the operator is done.
const pollEvery = 500 * time.Millisecond

// settleAllowance is how long the operator may go without a pass and still have something to do: what it waits for does not come.
const settleAllowance = 5 * time.Minute

// startAllowance is how long the operator may take until it answers.
const startAllowance = 20 * time.Second

// figure is what something cost the operator, for each time that it was done.
type figure struct {
	name                 string
	cpu                  time.Duration
	writes, passes       float64
	resident, heap, peak float64 // Memory at the end, in bytes.
	// apiCPU is the API server's, for the operator and for those whose part this command plays.
	apiCPU time.Duration
	// requests are the operator's.
	requests map[string]int
	times    int
}

// measure builds the world and measures one thing after the other.
func measure(ctx context.Context, w *world, binary, kubeconfig string) ([]figure, error) {
	var figures []figure
	note := func(f figure, err error) error {
		if err == nil {
			figures = append(figures, f)
			fmt.Printf("%s: %.3f CPU seconds, %.1f writes, %.1f passes; the API server: %.2f CPU seconds\n%s",
				f.name, f.cpu.Seconds(), f.writes, f.passes, f.apiCPU.Seconds(), describeRequests(f.requests, f.times))
		}
		return err
	}
	fmt.Printf("making %d FileServers with %d shares each\n", w.size.fileServers, w.size.shares)
	operator, err := startOperator(ctx, w.server, binary, kubeconfig)
	if err != nil {
		return nil, err
	}
	err = note(cost(ctx, operator, "all FileServers and shares made Ready", 1, func(int) error {
		if err := w.makeFileServers(ctx); err != nil {
			return err
		}
		return w.serve(ctx)
	}))
	operator.stop()
	if err != nil {
		return figures, err
	}
	total := w.size.fileServers * w.size.shares * w.size.directories
	fmt.Printf("making %d ShareDirectories while the operator is away\n", total)
	if err := w.makeDirectories(ctx); err != nil {
		return figures, err
	}
	if operator, err = startOperator(ctx, w.server, binary, kubeconfig); err != nil {
		return figures, err
	}
	defer operator.stop()
	starting, err := settle(ctx, operator, float64(w.size.fileServers*(w.size.shares+1)))
	if err != nil {
		return figures, err
	}
	_ = note(figure{
		name: "operator started, until nothing is left to do", cpu: starting.cpu, writes: starting.writes, passes: starting.passes,
		resident: starting.resident, heap: starting.heap, peak: starting.peak,
	}, nil)
	steps := []struct {
		name string
		do   func(round int) error
	}{
		{"one mkdir", func(round int) error { return w.mkdir(ctx, round%w.size.fileServers, fmt.Sprintf("new%d", round)) }},
		{"one restart of a data server's pod", func(round int) error { return w.restartDataServer(ctx, round%w.size.fileServers) }},
		{"one restart of a namespace server's pod", func(round int) error { return w.restartNamespaceServer(ctx, round%w.size.fileServers) }},
	}
	for _, step := range steps {
		if err := note(cost(ctx, operator, step.name, w.size.rounds, step.do)); err != nil {
			return figures, err
		}
	}
	return figures, note(cost(ctx, operator, fmt.Sprintf("nothing for %s", w.size.idle), 1, func(int) error { return wait(ctx, w.size.idle) }))
}

// cost does something some times, each time until the operator is done with it.
func cost(ctx context.Context, operator *process, name string, times int, do func(round int) error) (figure, error) {
	before, err := settle(ctx, operator, 0)
	if err != nil {
		return figure{}, err
	}
	if _, err := operator.server.requests(); err != nil {
		return figure{}, err
	}
	apiCPU, err := operator.server.cpu(ctx)
	if err != nil {
		return figure{}, err
	}
	profiled := profile(ctx, operator, name)
	if before.cpu, err = cpuSeconds(operator.command.Process.Pid); err != nil {
		return figure{}, err
	}
	after := before
	for round := range times {
		if err := do(round); err != nil {
			return figure{}, fmt.Errorf("%s: %w", name, err)
		}
		if after, err = settle(ctx, operator, 0); err != nil {
			return figure{}, err
		}
	}
	if err := profiled(); err != nil {
		return figure{}, err
	}
	requests, err := operator.server.requests()
	if err != nil {
		return figure{}, err
	}
	apiCPUAfter, err := operator.server.cpu(ctx)
	if err != nil {
		return figure{}, err
	}
	return figure{
		apiCPU: (apiCPUAfter - apiCPU) / time.Duration(times), requests: requests, times: times,
		name: name, cpu: (after.cpu - before.cpu) / time.Duration(times),
		writes: (after.writes - before.writes) / float64(times), passes: (after.passes - before.passes) / float64(times),
		resident: after.resident, heap: after.heap, peak: after.peak,
	}, nil
}

// settle waits until the operator has had nothing to do for a while, after this many passes at least. It asks the
// operator itself only when the API server has had no request from it for that while, twice: with 4,096 shares an answer
// takes 0.3 CPU seconds, and asking all the time was a tenth of what was measured. The CPU seconds that it returns are
// those before it asked.
func settle(ctx context.Context, operator *process, passes float64) (reading, error) {
	began := time.Now()
	var last reading
	for moved := began; ; {
		now, err := operator.readWhenQuiet(ctx)
		switch {
		case err != nil && time.Since(began) > startAllowance:
			return now, fmt.Errorf("the operator does not answer: %w", err)
		case err != nil: // It is starting.
		case now.passes == last.passes && now.writes == last.writes && now.waiting == 0 && now.passes >= passes:
			now.cpu = last.cpu
			return now, nil
		case now.passes != last.passes || now.writes != last.writes:
			moved, last = time.Now(), now
		case time.Since(moved) > settleAllowance:
			return now, fmt.Errorf("nothing happened for %s, with %.0f requests waiting, after %.0f passes of at least %.0f", settleAllowance, now.waiting, now.passes, passes)
		default:
			last = now
		}
	}
}

// readWhenQuiet reads what the operator has done, once the API server has had no request from it for a while.
func (p *process) readWhenQuiet(ctx context.Context) (reading, error) {
	last, since := int64(-1), time.Now()
	for time.Since(since) < quiet {
		size, err := p.server.auditSize()
		if err != nil {
			return reading{}, err
		}
		if size != last {
			last, since = size, time.Now()
		}
		if err := wait(ctx, pollEvery); err != nil {
			return reading{}, err
		}
	}
	cpu, err := cpuSeconds(p.command.Process.Pid)
	if err != nil {
		return reading{}, err
	}
	r, err := p.read(ctx)
	r.cpu = cpu
	return r, err
}

// report is the table.
func report(s size, figures []figure) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d FileServers × %d shares × %d directories = %d ShareDirectories, %d data servers each; means of %d\n",
		s.fileServers, s.shares, s.directories, s.fileServers*s.shares*s.directories, s.replicas, s.rounds)
	fmt.Fprintf(&text, "%-48s %12s %8s %8s %10s %9s %9s\n", "", "CPU seconds", "writes", "passes", "resident", "peak", "heap")
	const mib = 1 << 20
	for _, f := range figures {
		fmt.Fprintf(&text, "%-48s %12.3f %8.1f %8.1f %6.0f MiB %5.0f MiB %5.0f MiB\n",
			f.name, f.cpu.Seconds(), f.writes, f.passes, f.resident/mib, f.peak/mib, f.heap/mib)
	}
	return text.String()
}
