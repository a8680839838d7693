package ceph

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/test/spare"
)

// load runs two processes in a directory. One writes lines to a file that it keeps open and locked, each to stable storage.
// The other opens a file for writing and closes it. Each repeats this with a pause of 50 ms, and at the end prints the
// longest time between two operations in seconds, and the number of operations. Any error ends the load: hard mounts
// return none, except if a client could not reclaim a lock (EIO; nfs.recover_lost_locks is off). The clock is the kernel's
// uptime in hundredths of a second, because perl-base has no finer one.
const load = `exec perl -e '
use Fcntl qw(:DEFAULT :flock); $| = 1;
my $directory = shift;
sub now { open my $f, "<", "/proc/uptime" or die; my ($t) = split " ", <$f>; $t }
sub again {
  my ($what, $do) = @_;
  my $pid = fork; return $pid if $pid;
  my ($most, $count, $last) = (0, 0, now);
  until (-e "/tmp/stop") {
    $do->($count) or do { print "failed $what $count: $!\n"; exit 1 };
    my $now = now;
    $most = $now - $last if $now - $last > $most;
    $last = $now; $count++;
    select undef, undef, undef, 0.05;
  }
  print "$what $most $count\n"; exit 0;
}
sysopen my $kept, "$directory/kept", O_WRONLY|O_CREAT|O_TRUNC|O_SYNC or die "kept: $!";
flock $kept, LOCK_EX|LOCK_NB or die "lock: $!";
my @children = (
  again("io", sub { my $line = "line $_[0]\n"; syswrite($kept, $line) == length $line }),
  again("open", sub { my $f; sysopen($f, "$directory/opened", O_RDWR|O_CREAT) && close $f }),
);
open my $f, ">", "/tmp/loaded"; close $f;
for (@children) { waitpid $_, 0; $code ||= $? }
exit($code ? 1 : 0);
' %s`

// pauses has the longest pauses of a client under load, and how many lines it wrote.
type pauses struct {
	io, open time.Duration
	lines    int
	// stolen is the part of this machine's CPU time that other machines had meanwhile.
	stolen float64
}

// underLoad runs do while pods load their directories (a map from pod to directory), and returns each pod's pauses. The load
// starts 3 s before do and ends 12 s after it.
func underLoad(ctx context.Context, directories map[string]string, do func()) map[string]pauses {
	GinkgoHelper()
	type outcome struct {
		pod, output string
		err         error
	}
	done := make(chan outcome, len(directories))
	for pod, directory := range directories {
		sh(ctx, pod, "rm -f /tmp/stop /tmp/loaded")
		go func() {
			output, err := c.Shell(ctx, pod, fmt.Sprintf(load, directory))
			done <- outcome{pod, output, err}
		}()
	}
	for pod := range directories {
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, pod, "test -e /tmp/loaded")
			return err
		}).Should(Succeed())
	}
	before, unknown := spare.Now()
	time.Sleep(3 * time.Second)
	do()
	time.Sleep(12 * time.Second) // As long as a lease and a grace period at most, to see late effects.
	after, err := spare.Now()
	stolen := 0.0
	if unknown == nil && err == nil {
		stolen = after.Since(before).Stolen
	}
	for pod := range directories {
		sh(ctx, pod, "touch /tmp/stop")
	}
	found := map[string]pauses{}
	for range directories {
		end := <-done
		Expect(end.err).NotTo(HaveOccurred(), "a client in %s had an error: %s", end.pod, end.output)
		p := parsePauses(end.output)
		p.stolen = stolen
		found[end.pod] = p
	}
	for pod, directory := range directories {
		Expect(strings.TrimSpace(sh(ctx, pod, "wc -l <%s/kept", directory))).To(Equal(strconv.Itoa(found[pod].lines)), "the number of lines in the file")
		Expect(sh(ctx, pod, "tail -n1 %s/kept", directory)).To(Equal(fmt.Sprintf("line %d\n", found[pod].lines-1)))
	}
	return found
}

func parsePauses(output string) pauses {
	GinkgoHelper()
	var p pauses
	for line := range strings.Lines(output) {
		var what string
		var seconds float64
		var count int
		_, err := fmt.Sscan(line, &what, &seconds, &count)
		Expect(err).NotTo(HaveOccurred(), output)
		took := time.Duration(seconds * float64(time.Second)).Round(10 * time.Millisecond)
		switch what {
		case "io":
			p.io, p.lines = took, count
		case "open":
			p.open = took
		}
	}
	Expect(p.lines).To(BeNumerically(">", 0), output)
	return p
}

// within reports a time beside its goal. It fails the spec if the time is over the goal by more than HOWDAH_E2E_TIMEOUT_FACTOR. The time is
// not judged if the machine has no CPU to spare, or if much of its CPU time was stolen meanwhile.
func within(what string, took, goal time.Duration, stolen float64) {
	GinkgoHelper()
	factor, err := spare.TimeoutFactor(1)
	Expect(err).NotTo(HaveOccurred())
	share, err := spare.Share(500 * time.Millisecond)
	if err != nil {
		share = 1
	}
	verdict, failed := spare.Judge(took, goal, factor, spare.Room{Share: share, Stolen: stolen})
	AddReportEntry(what, verdict, ReportEntryVisibilityAlways)
	Expect(failed).To(BeFalse(), "%s: %s", what, verdict)
}
