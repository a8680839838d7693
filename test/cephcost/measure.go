package main

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

//go:embed testdata/work.pl
var workScript string

const (
	// restFor is how long the lab rests before each measurement, while the CPU of the machine is checked.
	restFor = 3 * time.Second
	// restTries is how often the check is repeated while the machine is busy: the lab itself works for some seconds after a measurement (Ceph
	// removes data in the background, a pod releases what it used). If it is busy for longer, the cause is another process.
	restTries = 10
	// ticksPerSecond is the unit of /proc/PID/stat (proc_pid_stat(5)), the same on every architecture of today.
	ticksPerSecond = 100
)

// used is what processes used so far.
type used struct {
	cpu    time.Duration
	memory int64 // bytes
}

// serving adds up the processes that serve a way.
func (b *bench) serving(ctx context.Context, w way) (used, error) {
	const script = `for p in /proc/[0-9]*; do
		[ "$(cat $p/comm 2>/dev/null)" = %s ] || continue
		# A zombie has no VmRSS: ceph-fuse, after an umount in a pod whose first process does not reap its children.
		memory=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' $p/status)
		[ -n "$memory" ] || continue
		read -r stat <$p/stat; set -- $stat
		echo $((${14} + ${15})) $memory
	done`
	var sum used
	for _, pod := range w.pods {
		output, err := b.Shell(ctx, pod, fmt.Sprintf(script, w.process))
		if err != nil {
			return used{}, err
		}
		found := false
		for line := range strings.Lines(output) {
			var ticks, kilobytes int64
			if _, err := fmt.Sscan(line, &ticks, &kilobytes); err != nil {
				return used{}, fmt.Errorf("%s in pod %s: %q: %w", w.process, pod, line, err)
			}
			found = true
			sum.cpu += time.Duration(ticks) * time.Second / ticksPerSecond
			sum.memory += kilobytes << 10
		}
		if !found {
			return used{}, fmt.Errorf("no %s runs in pod %s", w.process, pod)
		}
	}
	return sum, nil
}

// work is one measurement: the words for work.pl, and what becomes of its figures.
type work struct {
	what, file string
	much       int
	rate       string
	// scale is what the number is divided by. cpu and all are for what has bytes.
	scale    float64
	cpu, all string
}

func (b *bench) works(round int) []work {
	small := fmt.Sprintf("small-%d", round)
	return []work{
		{"write", fmt.Sprintf("write-%d", round), b.mib, writeRate, 1e6, writeCPU, writeAll},
		{"read", fmt.Sprintf("read-%d", round), b.mib, readRate, 1e6, readCPU, readAll},
		{"create", small, b.seconds, createRate, 1, "", ""},
		{"open", small, b.seconds, openRate, 1, "", ""},
		{"remove", small, b.seconds, removeRate, 1, "", ""},
	}
}

// measure makes every measurement in turn, as often as there are rounds.
func (b *bench) measure(ctx context.Context) (figures, []window, error) {
	all, err := b.theWays(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := b.fill(ctx, all); err != nil {
		return nil, nil, err
	}
	f, windows := figures{}, []window{}
	for round := 1; round <= b.rounds; round++ {
		for _, work := range b.works(round) {
			for _, w := range all {
				more, err := b.take(ctx, f, w, work, fmt.Sprintf("round %d of %d, %s: %s", round, b.rounds, w.name, work.what))
				if err != nil {
					return nil, nil, fmt.Errorf("%s: %s: %w", w.name, work.what, err)
				}
				windows = append(windows, more...)
			}
		}
		for _, w := range all {
			at, err := b.serving(ctx, w)
			if err != nil {
				return nil, nil, err
			}
			f.add(w.name, memory, float64(at.memory)/1e6)
		}
	}
	last, err := awaitIdle(func() (window, error) { return rest("at the end") })
	return f, append(windows, last), err
}

// fill makes the files that are read, past every server: none has them in its memory.
func (b *bench) fill(ctx context.Context, all []way) error {
	b.say("files to read: %d of %d MiB", len(all)*workers*b.rounds, b.mib)
	if _, err := b.ShellInput(ctx, clientPod, "cat >/tmp/work.pl", strings.NewReader(workScript)); err != nil {
		return err
	}
	if _, err := b.Shell(ctx, clientPod, fmt.Sprintf("mkdir -p %[1]s && ceph-fuse --id admin --client_fs %[2]s %[1]s >/dev/null 2>&1", everything, b.fileSystem)); err != nil {
		return err
	}
	for round := 1; round <= b.rounds; round++ {
		for _, w := range all {
			if _, err := b.Shell(ctx, clientPod, fmt.Sprintf("perl /tmp/work.pl write read-%d %d %s", round, b.mib, directories(everything+w.root))); err != nil {
				return err
			}
		}
	}
	// Its cache and its capabilities go with it. The first entry into a directory mounts, which is not what is measured.
	mounted := make([]string, 0, len(all))
	for _, w := range all {
		mounted = append(mounted, directories(w.mounted))
	}
	_, err := b.Shell(ctx, clientPod, fmt.Sprintf("umount %s; ls %s >/dev/null", everything, strings.Join(mounted, " ")))
	return err
}

func directories(below string) string {
	var names []string
	for i := range workers {
		names = append(names, fmt.Sprintf("%s/d%d", below, i))
	}
	return strings.Join(names, " ")
}

// rest looks what the machine does while the lab has nothing to do.
func rest(name string) (window, error) {
	before, err := spare.Now()
	if err != nil {
		return window{}, err
	}
	time.Sleep(restFor)
	after, err := spare.Now()
	return window{verdict.Window{Name: "before " + name, Use: after.Since(before)}, true}, err
}

// awaitIdle measures until the machine is idle enough, as often as it may. The last look counts.
func awaitIdle(look func() (window, error)) (w window, err error) {
	for range restTries {
		if w, err = look(); err != nil || w.Use.Idle >= leastRest {
			return w, err
		}
	}
	return w, nil
}

// take makes one measurement, and watches this machine's CPU before and meanwhile.
func (b *bench) take(ctx context.Context, f figures, w way, what work, name string) ([]window, error) {
	rested, err := awaitIdle(func() (window, error) { return rest(name) })
	if err != nil {
		return nil, err
	}
	usedBefore, err := b.serving(ctx, w)
	if err != nil {
		return nil, err
	}
	before, err := spare.Now()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	output, err := b.Shell(ctx, clientPod, fmt.Sprintf("perl /tmp/work.pl %s %s %d %s", what.what, what.file, what.much, directories(w.mounted)))
	if err != nil {
		return nil, err
	}
	wall := time.Since(began)
	after, err := spare.Now()
	if err != nil {
		return nil, err
	}
	usedAfter, err := b.serving(ctx, w)
	if err != nil {
		return nil, err
	}
	var number, seconds float64
	if _, err := fmt.Sscan(output, &number, &seconds); err != nil || number == 0 || seconds == 0 {
		return nil, fmt.Errorf("no figures in %q: %w", output, err)
	}
	use := after.Since(before)
	f.add(w.name, what.rate, number/what.scale/seconds)
	if what.cpu != "" {
		f.add(w.name, what.cpu, (usedAfter.cpu-usedBefore.cpu).Seconds()/(number/1e9))
		f.add(w.name, what.all, (1-use.Idle)*float64(runtime.NumCPU())*wall.Seconds()/(number/1e9))
	}
	b.say("%s: %.1f %s; %.0f %% of the CPU idle, before %.0f %%", name, number/what.scale/seconds, what.rate, 100*use.Idle, 100*rested.Use.Idle)
	return []window{rested, {verdict.Window{Name: name, Use: use}, false}}, nil
}
