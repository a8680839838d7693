package ceph

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/test/cluster"
)

const (
	servers    = 3
	mountPoint = "/share"
)

// cephShares runs hack/ceph-shares.sh as the docs describe.
func cephShares(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "../../hack/ceph-shares.sh", append([]string{"-n", c.Namespace}, arguments...)...)
	output, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), "%v: %s", arguments, output)
	return string(output)
}

// newFileServer creates a FileServer on the lab's Ceph. At the end it removes the FileServer and the shares' directories and
// accounts.
func newFileServer(ctx context.Context, name string, change func(*v1alpha1.FileServer)) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := &v1alpha1.FileServer{}
	Expect(yaml.UnmarshalStrict([]byte(cephShares(ctx, "spec", name)), fs)).To(Succeed())
	change(fs)
	Expect(c.Create(ctx, fs)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		output, err := c.Kubectl(ctx, "delete", "fileserver", name, "--ignore-not-found", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		admin.ask(ctx, toMon("auth rm", request{"entity": "client." + fs.Spec.Storage.Ceph.External.RecoveryUser}))
	}, NodeTimeout(limit))
	return fs
}

// identityOf reads the identity of a FileServer in Ceph, which the operator gives to those that have none in their specification.
func identityOf(ctx context.Context, name string) string {
	GinkgoHelper()
	fs := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, name, fs)).To(Succeed())
	return v1alpha1.StorageIdentity(fs)
}

func removeShare(ctx context.Context, uid, name string) {
	GinkgoHelper()
	in := request{"vol_name": filesystem, "group_name": ceph.Group(uid), "sub_name": ceph.Subvolume(uid, name)}
	withUser := request{"auth_id": ceph.ShareUser(uid, name)}
	for key, value := range in {
		withUser[key] = value
	}
	admin.ask(ctx, toMgr("fs subvolume deauthorize", withUser), toMgr("fs subvolume rm", in),
		toMgr("fs subvolumegroup rm", request{"vol_name": filesystem, "group_name": ceph.Group(uid)}))
}

// removeAfterwards removes the clients' pods, a share and what is in Ceph of it when the container ends: before the FileServer, whose removal is
// deferred first.
func removeAfterwards(fs *v1alpha1.FileServer, share string) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		output, err := c.Kubectl(ctx, "delete", "pods", "-l", cluster.ClientLabel, "--grace-period=1", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		output, err = c.Kubectl(ctx, "delete", "fileshare", share, "--ignore-not-found", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		removeShare(ctx, v1alpha1.StorageIdentity(fs), share)
	}, NodeTimeout(limit))
}

func storageOf(ctx context.Context, name string) metav1.Condition {
	fs := &v1alpha1.FileServer{}
	if err := c.Get(ctx, name, fs); err != nil {
		return metav1.Condition{Message: err.Error()}
	}
	return cluster.Condition(fs.Status.Conditions, v1alpha1.FileServerStorageAvailable)
}

func fileServerReady(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		fs := &v1alpha1.FileServer{}
		if err := c.Get(ctx, name, fs); err != nil {
			return err
		}
		return cluster.Expect(fs.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)
	}
}

// owners returns the directories of a share by the data server that owns them.
func owners(ctx context.Context, share string) map[string][]string {
	GinkgoHelper()
	list := &internalv1.ShareDirectoryList{}
	Expect(c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: share})).To(Succeed())
	found := map[string][]string{}
	for _, directory := range list.Items {
		if name := directory.Spec.DataServerRef.Name; name != "" {
			found[name] = append(found[name], directory.Spec.Path)
		}
	}
	return found
}

func sh(ctx context.Context, pod, script string, args ...any) string {
	GinkgoHelper()
	output, err := c.Shell(ctx, pod, fmt.Sprintf(script, args...))
	Expect(err).NotTo(HaveOccurred())
	return output
}

var _ = Describe("A FileServer with storage.ceph.external", Ordered, Label("ceph"), func() {
	const (
		name    = "training"
		share   = "unet3d"
		writer  = "ceph-writer"
		watcher = "ceph-reader"
	)
	var fs *v1alpha1.FileServer

	BeforeAll(func(ctx SpecContext) {
		// Other specs use the same name and may have run before.
		output, err := c.Kubectl(ctx, "delete", "secret", "ceph-shares", "--ignore-not-found")
		Expect(err).NotTo(HaveOccurred(), output)
		fs = newFileServer(ctx, name, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = servers })
		removeAfterwards(fs, share)
	}, NodeTimeout(limit))

	It("reports the missing Secret, and becomes ready once it exists", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) string {
			found := storageOf(ctx, name)
			return fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message)
		}).Should(And(HavePrefix("False CephUnusable 3 of 3 data servers"), ContainSubstring("there is no Secret ceph-shares")))
		fmt.Fprint(GinkgoWriter, cephShares(ctx, "secret", name, share))
		began := time.Now()
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		AddReportEntry("from the Secret to a FileServer that is ready", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		claims, err := c.Kubectl(ctx, "get", "pvc", "--output", "name")
		Expect(err).NotTo(HaveOccurred())
		Expect(claims).NotTo(ContainSubstring("persistentvolumeclaim"), "a FileServer in Ceph has a PersistentVolumeClaim")
		Expect(c.Get(ctx, name, fs)).To(Succeed())
		Expect(*fs.Status.Capacity.TotalBytes).To(BeNumerically(">", 0))
	}, SpecTimeout(limit))

	It("serves a share whose directories are spread over all data servers", func(ctx SpecContext) {
		began := time.Now()
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/unet3d", Directories: []string{"d{0..2}"}, Mode: "0777",
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		AddReportEntry("from the FileShare to one that is ready", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		for _, pod := range []string{writer, watcher} {
			Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		}
		for _, pod := range []string{writer, watcher} {
			Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
		}
		sh(ctx, writer, "set -e; for i in 3 4 5 6 7 8; do mkdir %s/d$i; echo data-$i >%s/d$i/file; done", mountPoint, mountPoint)
		Expect(sh(ctx, watcher, "cat %s/d[3-8]/file", mountPoint)).To(Equal("data-3\ndata-4\ndata-5\ndata-6\ndata-7\ndata-8\n"))
		found := owners(ctx, share)
		Expect(found).To(HaveLen(servers))
		for server, directories := range found {
			Expect(directories).To(HaveLen(9/servers), server)
		}
		// All data servers see the same directories: none reports directories of other owners as misplaced.
		object := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, share, object)).To(Succeed())
		Expect(cluster.Condition(object.Status.Conditions, v1alpha1.FileShareInventoried).Reason).To(Equal(v1alpha1.ReasonReady))
	}, SpecTimeout(limit))

	It("keeps what was written through a data server when its pod is deleted, also for an open file", func(ctx SpecContext) {
		for _, how := range [][]string{{"--wait=false"}, {"--grace-period=0", "--force", "--wait=false"}} {
			server := name + "-0"
			directory := owners(ctx, share)[server][0]
			file := mountPoint + "/" + directory + "/kept" + fmt.Sprint(len(how))
			done := make(chan error, 1)
			go func() {
				// Appends a line every tenth of a second to one open file and syncs it. Prints the longest time in milliseconds.
				_, err := c.Shell(ctx, writer, fmt.Sprintf(`exec 3>%[1]s || exit 1
					i=0; max=0; last=$(date +%%s%%N)
					while [ ! -e /tmp/stop ]; do
						echo "line $i" >&3 && sync -d %[1]s || exit 2
						now=$(date +%%s%%N); took=$(( (now-last)/1000000 )); [ $took -gt $max ] && max=$took
						last=$now; i=$((i+1)); sleep 0.1
					done
					exec 3>&-; rm -f /tmp/stop; echo $i $max >/tmp/result`, file))
				done <- err
			}()
			time.Sleep(3 * time.Second)
			output, err := c.Kubectl(ctx, append([]string{"delete", "pod", server}, how...)...)
			Expect(err).NotTo(HaveOccurred(), output)
			time.Sleep(5 * time.Second)
			Eventually(ctx, fileServerReady(name)).Should(Succeed())
			time.Sleep(10 * time.Second)
			sh(ctx, writer, "touch /tmp/stop")
			Expect(<-done).NotTo(HaveOccurred())
			var lines, longest int
			_, err = fmt.Sscan(sh(ctx, writer, "cat /tmp/result"), &lines, &longest)
			Expect(err).NotTo(HaveOccurred())
			AddReportEntry(fmt.Sprintf("longest pause of a client that writes and syncs, pod deleted (%s)", strings.Join(how, " ")), fmt.Sprintf("%d ms", longest), ReportEntryVisibilityAlways)
			Expect(sh(ctx, watcher, "tail -n1 %s", file)).To(Equal(fmt.Sprintf("line %d\n", lines-1)))
			Expect(strings.TrimSpace(sh(ctx, watcher, "wc -l <%s", file))).To(Equal(fmt.Sprint(lines)), "the number of lines in the file")
		}
		Expect(sh(ctx, watcher, "cat %s/d[3-8]/file", mountPoint)).To(Equal("data-3\ndata-4\ndata-5\ndata-6\ndata-7\ndata-8\n"))
	}, SpecTimeout(limit))

	It("serves a share again after Ceph has blocklisted its clients", func(ctx SpecContext) {
		uid := v1alpha1.StorageIdentity(fs)
		admin.must(ctx, toMgr("fs subvolume evict", request{
			"vol_name": filesystem, "group_name": ceph.Group(uid), "sub_name": ceph.Subvolume(uid, share), "auth_id": ceph.ShareUser(uid, share),
		}))
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return c.Shell(ctx, watcher, fmt.Sprintf("timeout 20 cat %s/d[3-8]/file && timeout 20 sh -c 'for i in 3 4 5 6 7 8; do echo more >%s/d$i/more || exit 1; done'", mountPoint, mountPoint))
		}).Should(Equal("data-3\ndata-4\ndata-5\ndata-6\ndata-7\ndata-8\n"))
		AddReportEntry("a share is used again after its clients of Ceph were evicted", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
	}, SpecTimeout(limit))

	It("reports a share without an entry, a wrong cluster, and monitors that don't answer", func(ctx SpecContext) {
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: "unlisted", Namespace: c.Namespace},
			Spec:       v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/unlisted"},
		})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			output, err := c.Kubectl(ctx, "delete", "fileshare", "unlisted", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
		}, NodeTimeout(limit))
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, "unlisted") }).
			Should(MatchError(ContainSubstring("no entry unlisted.json is in Secret ceph-shares")))
		Expect(c.ShareReady(ctx, share)).To(Succeed(), "the other share is affected")

		for other, change := range map[string]func(*v1alpha1.ExternalCeph){
			"has the fsid " + fsid + ", not 00000000-0000-4000-8000-000000000000": func(e *v1alpha1.ExternalCeph) { e.FSID = "00000000-0000-4000-8000-000000000000" },
			"no monitor answers at 10.255.255.1:3300":                             func(e *v1alpha1.ExternalCeph) { e.Monitors = []string{"10.255.255.1:3300"} },
			"has no file system other; it has: fs1":                               func(e *v1alpha1.ExternalCeph) { e.FileSystem = "other" },
			"has no pool other for recovery records":                              func(e *v1alpha1.ExternalCeph) { e.RecoveryPool = "other" },
		} {
			wrong := newFileServer(ctx, "wrong", func(fs *v1alpha1.FileServer) {
				fs.Spec.Replicas = 1
				external := &fs.Spec.Storage.Ceph.External
				external.SharesSecretRef.Name = "wrong"
				change(external)
			})
			cephShares(ctx, "secret", "wrong")
			Eventually(ctx, func(ctx context.Context) string { return storageOf(ctx, "wrong").Message }).Should(ContainSubstring(other))
			output, err := c.Kubectl(ctx, "delete", "fileserver/wrong", "secret/wrong", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			admin.ask(ctx, toMon("auth rm", request{"entity": "client." + wrong.Spec.Storage.Ceph.External.RecoveryUser}))
		}
	}, SpecTimeout(limit))
})
