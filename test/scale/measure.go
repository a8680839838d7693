package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// figure is one kind of measurement: bytes per second of each round.
type figure struct {
	name   string
	rounds []float64
}

func (f figure) median() float64 {
	sorted := append([]float64(nil), f.rounds...)
	sort.Float64s(sorted)
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// Names of the figures.
const (
	rawTCP      = "raw TCP from one capped node"
	oneServer   = "one mount, 1 server, nconnect=16"
	allServers  = "one mount, all servers, nconnect=16"
	directMount = "direct mounts of all servers, nconnect=16"
	narrowMount = "one mount, all servers, nconnect=1"
)

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

// measure makes every measurement in turn, as often as there are rounds.
func (b *bench) measure(ctx context.Context, rounds int) ([]figure, error) {
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
	kinds := []struct {
		name   string
		claims map[string]string
		files  []string
	}{
		{oneServer, map[string]string{"/m": one}, b.files(one, "/m", false)},
		{allServers, map[string]string{"/m": all}, b.files(all, "/m", false)},
		{directMount, direct, b.files(all, "/direct", true)},
		{narrowMount, map[string]string{"/m": "narrow"}, b.files(all, "/m", false)},
	}
	figures := []figure{{name: rawTCP}}
	for _, kind := range kinds {
		figures = append(figures, figure{name: kind.name})
	}
	for range rounds {
		rate, err := b.rawTCP(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rawTCP, err)
		}
		figures[0].rounds = append(figures[0].rounds, rate)
		for i, kind := range kinds {
			rate, err := b.read(ctx, kind.claims, kind.files)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind.name, err)
			}
			figures[i+1].rounds = append(figures[i+1].rounds, rate)
		}
	}
	return figures, nil
}

func (b *bench) read(ctx context.Context, claims map[string]string, files []string) (float64, error) {
	pod, err := b.client(ctx, claims)
	if err != nil {
		return 0, err
	}
	defer b.drop(ctx, pod)
	// The first entry mounts; that is not what is measured here.
	if _, err := b.Shell(ctx, pod, "for f in "+strings.Join(files, " ")+"; do head -c 4096 $f > /dev/null || exit 1; done"); err != nil {
		return 0, err
	}
	return b.rate(ctx, pod, fmt.Sprintf(readScript, strings.Join(files, " "), b.seconds+2*settle, settle, b.seconds))
}

// rate runs a script that prints bytes and seconds.
func (b *bench) rate(ctx context.Context, pod, script string) (float64, error) {
	output, err := b.Shell(ctx, pod, script)
	if err != nil {
		return 0, err
	}
	var bytes, seconds float64
	if _, err := fmt.Sscan(output, &bytes, &seconds); err != nil || bytes == 0 || seconds == 0 {
		return 0, fmt.Errorf("no figures in %q: %w", output, err)
	}
	return bytes / seconds, nil
}

const (
	tcpSend = `perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(Listen=>1,LocalPort=>5001,ReuseAddr=>1) or die $!;
		$s=$l->accept; $b="x"x262144; $SIG{PIPE}="IGNORE"; while (syswrite($s,$b)) {}'`
	tcpReceive = `for try in $(seq 50); do exec 3<>/dev/tcp/%s/5001 && break; sleep 0.2; done 2>/dev/null
		start=$(date +%%s%%N); bytes=$(timeout %d cat <&3 | wc -c); end=$(date +%%s%%N)
		echo $bytes $((end-start)) | awk '{printf "%%d %%f\n", $1, $2/1e9}'`
)

// rawTCP measures the limit: one TCP stream from a data server's pod to the client's node.
func (b *bench) rawTCP(ctx context.Context) (float64, error) {
	server := &corev1.Pod{}
	if err := b.Get(ctx, one+"-0", server); err != nil {
		return 0, err
	}
	pod, err := b.client(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer b.drop(ctx, pod)
	sender := make(chan error, 1)
	go func() {
		_, err := b.Shell(ctx, server.Name, tcpSend)
		sender <- err
	}()
	// bash for its /dev/tcp.
	script := "exec bash -c " + shellQuote(fmt.Sprintf(tcpReceive, server.Status.PodIP, b.seconds))
	rate, err := b.rate(ctx, pod, script)
	if err == nil {
		err = <-sender
	}
	return rate, err
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

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
