package ceph

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/cluster"
)

// randomWrites is a script that writes blocks of 8 KiB at random offsets of a file of 64 MiB, in four processes, each block
// to stable storage (O_SYNC), until a file "stop" exists. It prints the number of writes of each second. The first argument
// is the file.
const randomWrites = `use strict; use Fcntl;
my ($file) = @ARGV; my ($size, $block, $workers) = (64 << 20, 8192, 4);
unless (-e $file && -s $file == $size) {
	open(my $new, ">", $file) or die "$file: $!";
	print $new "x" x (1 << 20) or die $! for 1 .. $size >> 20;
	close($new) or die $!;
}
pipe(my $in, my $out) or die $!;
for my $worker (1 .. $workers) {
	defined(my $pid = fork) or die $!;
	next if $pid;
	srand($worker); close($in);
	sysopen(my $to, $file, O_RDWR | O_SYNC) or die "$file: $!";
	my ($second, $count) = (time, 0);
	until (-e "/tmp/stop") {
		sysseek($to, $block * int(rand($size / $block)), 0); 
		(syswrite($to, chr(65 + $worker) x $block) // 0) == $block or die "writing: $!";
		$count++;
		if (time > $second) { syswrite($out, "$second $count\n"); ($second, $count) = (time, 0) }
	}
	exit 0;
}
close($out);
my %total;
while (<$in>) { my ($second, $count) = split; $total{$second} += $count }
wait == -1 || ($? == 0 or die "a writer failed") for 1 .. $workers;
print "$_ $total{$_}\n" for sort keys %total;
`

// rates returns the number of writes of each second between two times, sorted.
func rates(log string, from, until time.Time) (found []int) {
	for line := range strings.Lines(log) {
		second, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		at, err := strconv.ParseInt(second, 10, 64)
		Expect(err).NotTo(HaveOccurred(), log)
		n, err := strconv.Atoi(count)
		Expect(err).NotTo(HaveOccurred(), log)
		if at > from.Unix() && at < until.Unix() {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

func describeRates(found []int) string {
	if len(found) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("median %d/s, lowest second %d, highest %d, over %d s", found[len(found)/2], found[0], found[len(found)-1], len(found))
}

// snapshotCost has the rates of random writes relative to the rate before, and how long it took to make and to remove the
// snapshots.
type snapshotCost struct {
	during, with     float64
	making, removing time.Duration
}

// costOfSnapshots measures a pod's random writes before snapshots are made, while they are made, while they exist, while
// they are removed, and after. It ends the writers.
func costOfSnapshots(ctx context.Context, whose, pod, file string, many int, create, remove func()) snapshotCost {
	GinkgoHelper()
	type result struct {
		log string
		err error
	}
	done := make(chan result, 1)
	go func() {
		log, err := c.ShellInput(ctx, pod, "cat >/tmp/random.pl && perl /tmp/random.pl "+file, strings.NewReader(randomWrites))
		done <- result{log, err}
	}()
	const quiet = 30 * time.Second
	time.Sleep(2 * quiet) // In the first half the file is still being filled.
	before := time.Now()
	create()
	after := time.Now()
	time.Sleep(quiet)
	with := time.Now()
	remove()
	removed := time.Now()
	time.Sleep(quiet)
	end := time.Now()
	sh(ctx, pod, "touch /tmp/stop")
	got := <-done
	Expect(got.err).NotTo(HaveOccurred())
	var medians []float64
	for _, part := range []struct {
		what        string
		from, until time.Time
	}{
		{"before", before.Add(-quiet), before},
		{fmt.Sprintf("while %d are made in %s", many, after.Sub(before).Round(time.Second)), before, after},
		{"with all of them", after, with},
		{fmt.Sprintf("while they are removed in %s", removed.Sub(with).Round(time.Second)), with, removed},
		{"after", removed, end},
	} {
		found := rates(got.log, part.from, part.until)
		AddReportEntry("8 KiB random writes, O_SYNC, four writers, "+whose+": "+part.what, describeRates(found), ReportEntryVisibilityAlways)
		Expect(found).NotTo(BeEmpty(), part.what)
		medians = append(medians, float64(found[len(found)/2]))
	}
	return snapshotCost{medians[1] / medians[0], medians[2] / medians[0], after.Sub(before), removed.Sub(with)}
}

func snapshotReady(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		snapshot := &v1alpha1.FileShareSnapshot{}
		if err := c.Get(ctx, name, snapshot); err != nil {
			return err
		}
		return cluster.Expect(snapshot.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)
	}
}

func newSnapshot(ctx context.Context, name, share string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &v1alpha1.FileShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec:       v1alpha1.FileShareSnapshotSpec{FileShareRef: v1alpha1.FileShareReference{Name: share}},
	})).To(Succeed())
}

// pathOf returns the path of a snapshot in the share.
func pathOf(ctx context.Context, name string) string {
	GinkgoHelper()
	snapshot := &v1alpha1.FileShareSnapshot{}
	Expect(c.Get(ctx, name, snapshot)).To(Succeed())
	return snapshot.Status.Path
}

var _ = Describe("Snapshots of a share that Howdah made in Ceph", Ordered, Label("ceph"), func() {
	const (
		name   = "snapped"
		share  = "kept"
		user   = "snapshot-user"
		writer = "snapshot-writer"
		many   = 50
	)
	BeforeAll(func(ctx SpecContext) {
		files(ctx, "provisioning", map[string]string{"userID": provisioner.user, "userKey": provisioner.key})
		fs := &v1alpha1.FileServer{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
			Spec: v1alpha1.FileServerSpec{Replicas: 2, Storage: v1alpha1.FileServerStorage{Ceph: v1alpha1.CephStorage{External: v1alpha1.ExternalCeph{
				Monitors: monitors(), FSID: fsid, FileSystem: filesystem, RecoveryPool: "howdah", ProvisioningSecretRef: v1alpha1.SecretReference{Name: "provisioning"},
			}}}},
		}
		Expect(c.Create(ctx, fs)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			for _, arguments := range [][]string{
				{"delete", "pods", "-l", cluster.ClientLabel, "--grace-period=1"},
				{"delete", "filesharesnapshotschedules,filesharesnapshots", "--all"},
				{"delete", "fileshare", share, "--ignore-not-found"},
				{"delete", "fileserver", name},
			} {
				output, err := c.Kubectl(ctx, append(arguments, "--timeout=5m")...)
				Expect(err).NotTo(HaveOccurred(), output)
			}
		}, NodeTimeout(limit))
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/kept", Directories: []string{"d{0..1}"}, Mode: "0777", ReclaimPolicy: v1alpha1.ReclaimDelete,
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		for _, pod := range []string{user, writer} {
			Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		}
		for _, pod := range []string{user, writer} {
			Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
		}
	}, NodeTimeout(limit))

	It("let a user restore a changed and a removed file, on each data server", func(ctx SpecContext) {
		sh(ctx, user, `set -e; for d in d0 d1; do mkdir %[1]s/$d/below; echo "first of $d" >%[1]s/$d/changed; echo "kept of $d" >%[1]s/$d/below/removed; done; sync`, mountPoint)
		Expect(owners(ctx, share)).To(HaveLen(2))
		began := time.Now()
		newSnapshot(ctx, "before", share)
		Eventually(ctx, snapshotReady("before")).Should(Succeed())
		AddReportEntry("from a FileShareSnapshot to one that is ready", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		path := pathOf(ctx, "before")
		Expect(path).To(MatchRegexp(`^\.snap/_before_[0-9]+$`))
		sh(ctx, user, `set -e; for d in d0 d1; do echo second >%[1]s/$d/changed; rm -r %[1]s/$d/below; done; sync`, mountPoint)
		for _, d := range []string{"d0", "d1"} {
			Expect(sh(ctx, writer, "cat %s/%s/%s/changed", mountPoint, d, path)).To(Equal("first of " + d + "\n"))
			// cp must not take the two files for the same file, and find must not take .snap for its own parent.
			sh(ctx, user, "cd %[1]s/%[2]s && cp -a %[3]s/changed changed && cp -a %[3]s/below . && find .snap >/dev/null", mountPoint, d, path)
			Expect(strings.Fields(sh(ctx, user, "cd %[1]s/%[2]s && stat -c %%i . .snap %[3]s changed %[3]s/changed | sort -u", mountPoint, d, path))).To(HaveLen(5))
			Expect(sh(ctx, user, "cat %[1]s/%[2]s/changed %[1]s/%[2]s/below/removed", mountPoint, d)).To(Equal("first of " + d + "\nkept of " + d + "\n"))
			_, err := c.Shell(ctx, user, fmt.Sprintf("echo x >%s/%s/%s/new", mountPoint, d, path))
			Expect(err).To(MatchError(ContainSubstring("Read-only file system")))
			Expect(sh(ctx, user, "ls -A %s/%s", mountPoint, d)).NotTo(ContainSubstring(".snap"), "a listing shows .snap")
		}
		// A restarted ganesha still finds the files of the client's handles.
		look := fmt.Sprintf("for d in d0 d1; do cd %s/$d/%s && stat -c '%%i %%n' . changed below below/removed && cat changed || exit 1; done", mountPoint, path)
		before := sh(ctx, user, "%s", look)
		for server := range owners(ctx, share) {
			sh(ctx, server, "kill -9 $(cat %s/ganesha.pid)", serverpod.RunDir)
		}
		Expect(sh(ctx, user, "%s", look)).To(Equal(before))
	}, SpecTimeout(limit))

	It("keep the share's data until they are deleted", func(ctx SpecContext) {
		identity := identityOf(ctx, name)
		stored := request{"vol_name": filesystem, "group_name": ceph.Group(identity), "sub_name": ceph.Subvolume(identity, share)}
		Expect(admin.must(ctx, toMgr("fs subvolume snapshot ls", stored))).To(ContainSubstring(`"before"`))
		path := pathOf(ctx, "before")
		output, err := c.Kubectl(ctx, "delete", "fsnap", "before", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(admin.must(ctx, toMgr("fs subvolume snapshot ls", stored))).NotTo(ContainSubstring(`"before"`))
		// Both clients have read a file in the snapshot. They look it up by its path, without a listing that would refresh
		// their caches: neither their caches nor the data server's keep the deleted snapshot.
		for _, pod := range []string{user, writer} {
			began := time.Now()
			Eventually(ctx, func(ctx context.Context) (string, error) {
				return c.Shell(ctx, pod, fmt.Sprintf("cat %s/d0/%s/changed 2>&1 || true", mountPoint, path))
			}).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Or(ContainSubstring("No such file"), ContainSubstring("Stale file handle")))
			AddReportEntry("until "+pod+" no longer reads by a path that it knew", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		}
		for _, pod := range []string{user, writer} {
			Expect(sh(ctx, pod, "ls -a %s/d0/.snap", mountPoint)).NotTo(ContainSubstring(filepath.Base(path)))
		}
	}, SpecTimeout(limit))

	It("are made on schedule, and the configured number is kept", func(ctx SpecContext) {
		schedule := &v1alpha1.FileShareSnapshotSchedule{
			ObjectMeta: metav1.ObjectMeta{Name: "minutely", Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSnapshotScheduleSpec{
				FileShareRef: v1alpha1.FileShareReference{Name: share}, Schedule: "* * * * *", Retention: v1alpha1.SnapshotRetention{KeepLast: 2},
			},
		}
		Expect(c.Create(ctx, schedule)).To(Succeed())
		names := func(ctx context.Context) []string {
			output, err := c.Kubectl(ctx, "get", "fsnap", "-l", v1alpha1.SnapshotScheduleLabel+"=minutely", "-o", `jsonpath={.items[?(@.status.readyTime)].metadata.name}`)
			Expect(err).NotTo(HaveOccurred(), output)
			found := strings.Fields(output)
			slices.Sort(found)
			return found
		}
		var first string
		Eventually(ctx, names).Should(HaveLen(1))
		first = names(ctx)[0]
		Eventually(ctx, names).Should(And(HaveLen(2), Not(ContainElement(first))), "the third snapshot did not replace the first")
		output, err := c.Kubectl(ctx, "delete", "fsnapsched", "minutely")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(names(ctx)).To(HaveLen(2), "they stay")
		output, err = c.Kubectl(ctx, "delete", "fsnap", "-l", v1alpha1.SnapshotScheduleLabel+"=minutely", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
	}, SpecTimeout(limit))

	It(fmt.Sprintf("cost writers what they cost: 8 KiB at random places before, during and after %d of them, and without Howdah", many), func(ctx SpecContext) {
		sh(ctx, writer, "rm -f /tmp/stop")
		through := costOfSnapshots(ctx, "through Howdah", writer, mountPoint+"/d0/random", many, func() {
			for i := range many {
				newSnapshot(ctx, fmt.Sprintf("many-%02d", i), share)
			}
			for i := range many {
				Eventually(ctx, snapshotReady(fmt.Sprintf("many-%02d", i))).Should(Succeed())
			}
		}, func() {
			output, err := c.Kubectl(ctx, "delete", "fsnap", "--all", "--timeout=10m")
			Expect(err).NotTo(HaveOccurred(), output)
		})

		By("writing the same load through ceph-fuse, while Ceph's manager alone makes as many snapshots at the steward's pace")
		plain := newSubvolume(ctx, "without")
		files(ctx, "without", clientFiles(plain.account))
		run(ctx, "without", cephImage, "without", "/etc/ceph", func(container *corev1.Container) {
			container.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}, "sleep", "infinity")
		sh(ctx, "without", "mkdir -p /mnt/share && ceph-fuse --id %s --client_fs %s -r %s /mnt/share", plain.user, filesystem, plain.path)
		pause := through.making / many
		of := func(i int, verb string) request {
			return toMgr("fs subvolume snapshot "+verb, request{"vol_name": filesystem, "group_name": group, "sub_name": plain.name, "snap_name": fmt.Sprintf("many-%02d", i)})
		}
		each := func(verb string, pause time.Duration) func() {
			return func() {
				ticker := time.NewTicker(max(pause, time.Millisecond))
				defer ticker.Stop()
				for i := range many {
					admin.must(ctx, of(i, verb))
					<-ticker.C
				}
			}
		}
		without := costOfSnapshots(ctx, "by ceph-fuse", "without", "/mnt/share/random", many, each("create", pause), each("rm", through.removing/many))
		AddReportEntry("of the writes before, while they are made / with all of them",
			fmt.Sprintf("through Howdah %.2f / %.2f, by ceph-fuse %.2f / %.2f", through.during, through.with, without.during, without.with), ReportEntryVisibilityAlways)
	}, SpecTimeout(3*limit))

	It("delay the deletion of a share with reclaimPolicy Delete", func(ctx SpecContext) {
		newSnapshot(ctx, "last", share)
		Eventually(ctx, snapshotReady("last")).Should(Succeed())
		output, err := c.Kubectl(ctx, "delete", "pods", "-l", cluster.ClientLabel, "--grace-period=1", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		output, err = c.Kubectl(ctx, "delete", "fileshare", share, "--wait=false")
		Expect(err).NotTo(HaveOccurred(), output)
		object := &v1alpha1.FileShare{}
		Eventually(ctx, func(ctx context.Context) string {
			Expect(c.Get(ctx, share, object)).To(Succeed())
			return cluster.Condition(object.Status.Conditions, v1alpha1.ConditionReady).Message
		}).Should(ContainSubstring("for last;"))
		output, err = c.Kubectl(ctx, "delete", "fsnap", "last", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(c.WaitGone(ctx, object)).To(Succeed())
	}, SpecTimeout(limit))
})

// monitors returns the addresses of the lab's monitors in the form of a FileServer's spec. mon_host has the form
// [v2:10.96.0.7:3300/0,v1:10.96.0.7:6789/0].
func monitors() (found []string) {
	GinkgoHelper()
	for _, address := range regexp.MustCompile(`v2:([^/]+)/`).FindAllStringSubmatch(monHost, -1) {
		found = append(found, address[1])
	}
	Expect(found).NotTo(BeEmpty(), monHost)
	return found
}
