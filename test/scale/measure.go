package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// figure is one kind of measurement: bytes per second of each round.
type figure struct {
	name   string
	rounds []float64
}

// Names of the figures.
const (
	rawTCP      = "raw TCP from one capped node"
	oneServer   = "one mount, 1 server, nconnect=16"
	allServers  = "one mount, all servers, nconnect=16"
	directMount = "direct mounts of all servers, nconnect=16"
	narrowMount = "one mount, all servers, nconnect=1"
)

// measurements is how many there are in a round.
const measurements = 5

// readScript reads every file named by its arguments in a loop, around the page cache. Once all readers are
// under way it prints the bytes that the kernel got from servers in some seconds (the fifth number of "bytes:"
// in /proc/self/mountstats), and the seconds. Mounts of one export have one superblock and show its numbers
// each; mountinfo tells which those are.
const readScript = `for f in %s; do
	timeout %d sh -c "while dd if=$f of=/dev/null bs=128k iflag=direct 2>/dev/null; do :; done" &
done
got() { awk 'FNR == NR {device[$5] = $3; next} $1 == "device" {d = device[$5]}
	$1 == "bytes:" && !(d in seen) {seen[d]; s += $6} END {printf "%%.0f\n", s}' /proc/self/mountinfo /proc/self/mountstats; }
sleep %d; before=$(got); start=$(date +%%s%%N)
sleep %d; after=$(got); end=$(date +%%s%%N)
wait
echo $((after-before)) $((end-start)) | awk '{printf "%%d %%f\n", $1, $2/1e9}'`

// settle is how long readers run before and after what is measured, in seconds.
const settle = 3

// kind is one kind of reading.
type kind struct {
	name   string
	claims map[string]string
	files  []string
}

func (b *bench) kinds(ctx context.Context) ([]kind, error) {
	share := &v1alpha1.FileShare{}
	if err := b.Get(ctx, all, share); err != nil {
		return nil, err
	}
	options := share.Status.Mount.Options
	direct, err := b.directClaims(ctx, all, options)
	if err != nil {
		return nil, err
	}
	if err := b.NFSClaim(ctx, "narrow", share.Status.Mount.Address, share.Status.Mount.Path, withNconnect(options, 1)...); err != nil {
		return nil, err
	}
	return []kind{
		{oneServer, map[string]string{"/m": one}, b.files(one, "/m", false)},
		{allServers, map[string]string{"/m": all}, b.files(all, "/m", false)},
		{directMount, direct, b.files(all, "/direct", true)},
		{narrowMount, map[string]string{"/m": "narrow"}, b.files(all, "/m", false)},
	}, nil
}

// measure makes every measurement in turn, as often as there are rounds.
func (b *bench) measure(ctx context.Context, rounds int) ([]figure, []verdict.Window, error) {
	kinds, err := b.kinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	figures := []figure{{name: rawTCP}}
	for _, k := range kinds {
		figures = append(figures, figure{name: k.name})
	}
	var windows []verdict.Window
	for round := 1; round <= rounds; round++ {
		for i := range figures {
			f := &figures[i]
			b.begin("round %d of %d, %s", round, rounds, f.name)
			rate, use, err := b.take(ctx, kinds, i)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", f.name, err)
			}
			f.rounds = append(f.rounds, rate)
			windows = append(windows, verdict.Window{Name: fmt.Sprintf("round %d, %s", round, f.name), Use: use})
			b.end("%.1f MB/s, %.0f %% of the CPU idle", rate/1e6, 100*use.Idle)
		}
	}
	return figures, windows, nil
}

// take makes the measurement of a kind, or of raw TCP before all kinds.
func (b *bench) take(ctx context.Context, kinds []kind, i int) (float64, spare.Use, error) {
	if i == 0 {
		return b.rawTCP(ctx, b.nodes[:1], b.seconds)
	}
	return b.read(ctx, kinds[i-1])
}

func (b *bench) read(ctx context.Context, k kind) (float64, spare.Use, error) {
	b.note("starting a client")
	pod, err := b.client(ctx, k.claims)
	if err != nil {
		return 0, spare.Use{}, err
	}
	defer b.drop(ctx, pod)
	b.note("mounting")
	// The first entry mounts; that is not what is measured here.
	if _, err := b.Shell(ctx, pod, "for f in "+strings.Join(k.files, " ")+"; do head -c 4096 $f > /dev/null || exit 1; done"); err != nil {
		return 0, spare.Use{}, err
	}
	b.note("reading for %d s", b.seconds+2*settle)
	return b.rate(ctx, pod, fmt.Sprintf(readScript, strings.Join(k.files, " "), b.seconds+2*settle, settle, b.seconds))
}

// rate runs a script that prints bytes and seconds, and watches this machine's CPU meanwhile.
func (b *bench) rate(ctx context.Context, pod, script string) (float64, spare.Use, error) {
	before, err := spare.Now()
	if err != nil {
		return 0, spare.Use{}, err
	}
	output, err := b.Shell(ctx, pod, script)
	if err != nil {
		return 0, spare.Use{}, err
	}
	after, err := spare.Now()
	if err != nil {
		return 0, spare.Use{}, err
	}
	var bytes, seconds float64
	if _, err := fmt.Sscan(output, &bytes, &seconds); err != nil || bytes == 0 || seconds == 0 {
		return 0, spare.Use{}, fmt.Errorf("no figures in %q: %w", output, err)
	}
	return bytes / seconds, after.Since(before), nil
}

func withNconnect(options []string, n int) []string {
	changed := make([]string, 0, len(options))
	for _, option := range options {
		if strings.HasPrefix(option, "nconnect=") {
			option = fmt.Sprintf("nconnect=%d", n)
		}
		changed = append(changed, option)
	}
	return changed
}
