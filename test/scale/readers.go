package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// readersScript reads files of directories around the page cache until it gets TERM, with some processes in each. Each writes a line with
// the time and the bytes so far every second, and at the end its errors and the longest wait for an open, a read or a close.
const readersScript = `use strict;
use Fcntl;
my ($each, $files, $size, $out, @directories) = @ARGV;
my ($stop, @children) = (0);
open my $uptime, '<', '/proc/uptime' or die;
sub now { sysseek $uptime, 0, 0; sysread $uptime, my $text, 64; return (split ' ', $text)[0]; }
sub work {
	my ($directory, $log) = @_;
	my ($bytes, $errors, $longest, $when, $failed) = (0, 0, 0, 0, '-');
	open $uptime, '<', '/proc/uptime' or die; # With a position of its own.
	open my $to, '>', $log or die;
	my $next = now();
	my $from;
	my $took = sub { my $wait = now() - $from; ($longest, $when) = ($wait, $from) if $wait > $longest; $from += $wait; };
	# A call that the end of the run interrupts is no error.
	my $wrong = sub { return if $stop; $failed = $_[0] if !$errors++; select undef, undef, undef, 1; $from = now(); };
	while (!$stop) {
		my $file = "$directory/" . int rand $files;
		my $got = 0;
		$from = now();
		if (sysopen my $handle, $file, O_RDONLY | O_DIRECT) {
			$took->();
			while (1) {
				my $n = sysread $handle, my $buffer, 131072;
				if (!defined $n) { $wrong->("read of $file: $!"); last; }
				$took->();
				last if !$n;
				$got += $n; $bytes += $n;
				if ($from >= $next) { syswrite $to, "$from $bytes\n"; $next = $from + 1; }
			}
			close $handle or $wrong->("close of $file: $!");
			$took->();
			$wrong->("$file has $got bytes") if $got != $size;
		} else { $wrong->("open of $file: $!"); }
	}
	syswrite $to, now() . " $bytes\nend $errors $longest $when $failed\n";
}
$SIG{TERM} = sub { $stop = 1; kill TERM => @children; };
for my $i (0 .. $each * @directories - 1) {
	my $child = fork;
	defined $child or die;
	if (!$child) { @children = (); srand $$; work($directories[$i / $each], "$out/$i"); exit 0; }
	push @children, $child;
}
1 while wait != -1;
`

// reader is one process that reads: what it had read when, and what it has to say at its end.
type reader struct {
	at, bytes     []float64
	errors        int
	longest, when float64
	failed        string
}

// startReaders starts them in a pod and returns when all read.
func (b *bench) startReaders(ctx context.Context, pod string) error {
	if _, err := b.ShellInput(ctx, pod, "mkdir /tmp/readers && cat >/tmp/readers.pl", strings.NewReader(readersScript)); err != nil {
		return err
	}
	script := fmt.Sprintf(`{ perl /tmp/readers.pl %d %d %d /tmp/readers %s/* >/tmp/readers.log 2>&1 </dev/null & echo $! >/tmp/readers.pid; wait $!; } >/dev/null 2>&1 &
		for try in $(seq 120); do test "$(cat /tmp/readers/* 2>/dev/null | cut -d' ' -f2 | grep -vc '^0$')" -lt %d || exit 0; sleep 1; done
		cat /tmp/readers.log >&2; exit 1`,
		readersEach, grownFiles, b.fileKiB<<10, grownMount, 2*readersEach*grownDirectories)
	_, err := b.Shell(ctx, pod, script)
	return err
}

// clock is the time by which readers go.
func (b *bench) clock(ctx context.Context, pod string) (float64, error) {
	output, err := b.Shell(ctx, pod, "cat /proc/uptime")
	if err != nil {
		return 0, err
	}
	var now float64
	_, err = fmt.Sscan(output, &now)
	return now, err
}

// window lets readers settle and watches them, and this machine's CPU meanwhile.
func (b *bench) window(ctx context.Context, pod, name string, found *growth) (span, error) {
	if _, err := b.Shell(ctx, pod, fmt.Sprintf("sleep %d", settle)); err != nil {
		return span{}, err
	}
	before, err := spare.Now()
	if err != nil {
		return span{}, err
	}
	output, err := b.Shell(ctx, pod, fmt.Sprintf("cat /proc/uptime; sleep %d; cat /proc/uptime", b.seconds))
	if err != nil {
		return span{}, err
	}
	after, err := spare.Now()
	if err != nil {
		return span{}, err
	}
	lines := strings.Split(output, "\n")
	var s span
	if _, err := fmt.Sscan(lines[0], &s.from); err != nil {
		return s, err
	}
	if _, err := fmt.Sscan(lines[1], &s.to); err != nil {
		return s, err
	}
	found.windows = append(found.windows, verdict.Window{Name: name, Use: after.Since(before)})
	return s, nil
}

// mount is the number of the share's mount in the client; another one after a remount.
func (b *bench) mount(ctx context.Context, pod string) (string, error) {
	return b.Shell(ctx, pod, fmt.Sprintf(`awk '$5 == "%s" {print $1, $3}' /proc/self/mountinfo`, grownMount))
}

// lookAfter ends the readers, and finds what is not as it was, and what else the storage-only nodes run.
func (b *bench) lookAfter(ctx context.Context, pod, mounted string, added []string, found *growth) error {
	output, err := b.Shell(ctx, pod, `kill -TERM $(cat /tmp/readers.pid) && for try in $(seq 120); do
		test -e /proc/$(cat /tmp/readers.pid) || break; sleep 1; done; tail -n +1 /tmp/readers/*`)
	if err != nil {
		return err
	}
	if found.samples, err = parseReaders(output); err != nil {
		return err
	}
	if n := len(found.samples); n != readersEach*grownDirectories {
		found.wrong = append(found.wrong, fmt.Sprintf("%d of %d readers are there", n, readersEach*grownDirectories))
	}
	if now, err := b.mount(ctx, pod); err != nil || now != mounted {
		found.wrong = append(found.wrong, fmt.Sprintf("the share's mount was %q and is %q (%v)", mounted, now, err))
	}
	if _, err := b.Shell(ctx, pod, "cd "+grownMount+" && md5sum --quiet -c /tmp/sums"); err != nil {
		found.wrong = append(found.wrong, "files changed: "+err.Error())
	}
	object := &corev1.Pod{}
	if err := b.Get(ctx, pod, object); err != nil {
		return err
	}
	if restarts := object.Status.ContainerStatuses[0].RestartCount; restarts != 0 {
		found.wrong = append(found.wrong, fmt.Sprintf("the client was restarted %d times", restarts))
	}
	delayed, err := b.Kubectl(ctx, "get", "events", "--field-selector", "reason=MoveDelayed", "-o", "name")
	if err != nil {
		return err
	}
	found.delayed = len(strings.Fields(delayed))
	found.others, err = b.othersOn(ctx, added)
	return err
}

// othersOn names the pods on nodes that are no data servers, but for those that each node has.
func (b *bench) othersOn(ctx context.Context, nodes []string) (others []string, err error) {
	for _, node := range nodes {
		pods := &corev1.PodList{}
		if err := b.List(ctx, pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
			return nil, err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			owner := ""
			for _, reference := range pod.OwnerReferences {
				owner = reference.Kind
			}
			if pod.Labels[v1alpha1.ComponentLabel] != naming.ComponentDataServer && owner != "DaemonSet" && owner != "Node" {
				others = append(others, pod.Namespace+"/"+pod.Name+" on "+node)
			}
		}
	}
	return others, nil
}

// parseReaders reads what readers wrote.
func parseReaders(text string) (readers []reader, err error) {
	for part := range strings.SplitSeq("\n"+text, "\n==> ") {
		_, text, found := strings.Cut(part, " <==\n")
		if !found {
			continue
		}
		r, err := parseReader(text)
		if err != nil {
			return nil, err
		}
		readers = append(readers, r)
	}
	return readers, nil
}

func parseReader(text string) (r reader, err error) {
	ended := false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 5)
		switch {
		case len(fields) == 5 && fields[0] == "end":
			ended, r.failed = true, fields[4]
			_, err = fmt.Sscan(strings.Join(fields[1:4], " "), &r.errors, &r.longest, &r.when)
		case len(fields) == 2 && !ended:
			var at, bytes float64
			if at, err = strconv.ParseFloat(fields[0], 64); err == nil {
				bytes, err = strconv.ParseFloat(fields[1], 64)
			}
			r.at, r.bytes = append(r.at, at), append(r.bytes, bytes)
		default:
			err = fmt.Errorf("what is %q?", line)
		}
		if err != nil {
			return r, fmt.Errorf("a reader: %w", err)
		}
	}
	if !ended {
		return r, fmt.Errorf("a reader did not come to its end: %q", text)
	}
	return r, nil
}

// until is what a reader had read at a moment.
func (r reader) until(when float64) float64 {
	for i := range r.at {
		switch {
		case r.at[i] < when:
		case i == 0:
			return r.bytes[0]
		default:
			part := (when - r.at[i-1]) / (r.at[i] - r.at[i-1])
			return r.bytes[i-1] + part*(r.bytes[i]-r.bytes[i-1])
		}
	}
	if n := len(r.bytes); n > 0 {
		return r.bytes[n-1]
	}
	return 0
}

// rateOf is what all readers got in a span, in bytes a second.
func rateOf(readers []reader, s span) float64 {
	sum := 0.0
	for _, r := range readers {
		sum += r.until(s.to) - r.until(s.from)
	}
	return sum / (s.to - s.from)
}
