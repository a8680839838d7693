package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// What the drill needs of the place where the cluster runs: hack/e2e.sh has it for the lab. The commands for a backup of all objects get a
// file's name at the end.
var (
	siteOff        = os.Getenv("HOWDAH_E2E_SITE_OFF")
	siteOn         = os.Getenv("HOWDAH_E2E_SITE_ON")
	backupObjects  = os.Getenv("HOWDAH_E2E_BACKUP")
	restoreObjects = os.Getenv("HOWDAH_E2E_RESTORE")
)

const (
	drill      = "drill"
	drillClaim = "drill-tree"
	// drillServers is how many data servers the drill has.
	drillServers = 2
	// drillWait is for everything to be served again: the nodes of a lab boot on two cores.
	drillWait = 3 * time.Minute
)

// drillClients are client pods that mount the tree of the drill's FileServer. The suite's own go for them: there is one on a node.
var drillClients = []string{"drill-a", "drill-b"}

func site(ctx context.Context, words ...string) {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, "sh", "-c", strings.Join(words, " ")).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%v: %s", words, output)
}

// drillObjects are what an administrator has in Git.
func drillObjects(ctx context.Context) (server *v1alpha1.FileServer, shares []*v1alpha1.FileShare) {
	GinkgoHelper()
	server = newFileServer(ctx, drill, drillServers)
	share := newShare(drill, "/drill", 1, "d{0..2}")
	share.Spec.FileServerRef.Name = drill
	return server, []*v1alpha1.FileShare{share}
}

func drillPaths() (paths []string) {
	for i := range 3 {
		paths = append(paths, fmt.Sprintf("%s/drill/d%d", treeMount, i))
	}
	return paths
}

func applyDrill(ctx context.Context) {
	GinkgoHelper()
	server, shares := drillObjects(ctx)
	Expect(c.Create(ctx, server)).To(Succeed())
	for _, share := range shares {
		Expect(c.Create(ctx, share)).To(Succeed())
	}
}

// drillReady gives nil if FileServer and share are Ready, with all data servers serving.
func drillReady(ctx context.Context) error {
	object := &v1alpha1.FileServer{}
	if err := c.Get(ctx, drill, object); err != nil {
		return err
	}
	if err := cluster.Expect(object.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue); err != nil {
		return err
	}
	return shareReady(ctx, drill)
}

// mountDrill starts the client pods, and waits until they see the declared directories.
func mountDrill(ctx context.Context) {
	GinkgoHelper()
	object := &v1alpha1.FileServer{}
	Eventually(ctx, func(ctx context.Context) (string, error) { return object.Status.Address, c.Get(ctx, drill, object) }).ShouldNot(BeEmpty())
	Expect(c.NFSClaim(ctx, drillClaim, object.Status.Address, "/", options...)).To(Succeed())
	for _, name := range drillClients {
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: name, Claims: map[string]string{treeMount: drillClaim}})).To(Succeed())
	}
	for _, name := range drillClients {
		Expect(c.WaitPodReady(ctx, name)).To(Succeed())
	}
	seeDrill(ctx)
}

// seeDrill waits until both clients can list every directory.
func seeDrill(ctx context.Context) {
	GinkgoHelper()
	for _, pod := range drillClients {
		Eventually(ctx, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := c.Shell(ctx, pod, "ls "+strings.Join(drillPaths(), " "))
			return err
		}).WithTimeout(bound(drillWait)).Should(Succeed())
	}
}

// unmountDrill removes the client pods and their volume.
func unmountDrill(ctx context.Context) {
	GinkgoHelper()
	for _, args := range [][]string{
		append([]string{"delete", "pod", "--ignore-not-found", "--grace-period=1", "--timeout=" + bound(time.Minute).String()}, drillClients...),
		{"delete", "pvc", drillClaim, "--ignore-not-found", "--timeout=" + bound(time.Minute).String()},
		{"delete", "pv", c.Namespace + "-" + drillClaim, "--ignore-not-found", "--timeout=" + bound(time.Minute).String()},
	} {
		output, err := c.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred(), output)
	}
}

// deleteDrill deletes every object that an administrator has made for the drill, and waits until they are gone.
func deleteDrill(ctx context.Context) {
	GinkgoHelper()
	list := &v1alpha1.FileShareList{}
	Expect(c.List(ctx, list, client.InNamespace(c.Namespace))).To(Succeed())
	for i := range list.Items {
		if share := &list.Items[i]; share.Spec.FileServerRef.Name == drill {
			Expect(client.IgnoreNotFound(c.Delete(ctx, share))).To(Succeed())
			Expect(c.WaitGone(ctx, share)).To(Succeed())
		}
	}
	server := &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: drill}}
	Expect(client.IgnoreNotFound(c.Delete(ctx, server))).To(Succeed())
	Expect(c.WaitGone(ctx, server)).To(Succeed())
}

// keptVolumes are PersistentVolumes by the names of their claims.
type keptVolumes map[string]string

// keepVolumes has the volumes of the drill stay when their claims go.
func keepVolumes(ctx context.Context) keptVolumes {
	GinkgoHelper()
	kept := keptVolumes{}
	claims := &corev1.PersistentVolumeClaimList{}
	Expect(c.List(ctx, claims, client.InNamespace(c.Namespace))).To(Succeed())
	for _, claim := range claims.Items {
		if strings.HasPrefix(claim.Name, naming.VolumeClaimTemplate(0)+"-"+drill+"-") {
			kept[claim.Name] = claim.Spec.VolumeName
		}
	}
	Expect(kept).To(HaveLen(drillServers))
	kept.reclaim(ctx, corev1.PersistentVolumeReclaimRetain)
	return kept
}

func (k keptVolumes) reclaim(ctx context.Context, policy corev1.PersistentVolumeReclaimPolicy) {
	GinkgoHelper()
	for _, volume := range k {
		output, err := c.Kubectl(ctx, "patch", "pv", volume, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy))
		Expect(err).NotTo(HaveOccurred(), output)
	}
}

// take deletes the claims of a first cluster, and makes the same claims of the same volumes in this one.
func (k keptVolumes) take(ctx context.Context, first *cluster.Cluster) {
	GinkgoHelper()
	for name, volume := range k {
		old := &corev1.PersistentVolumeClaim{}
		Expect(first.Get(ctx, name, old)).To(Succeed())
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: old.Spec.AccessModes, StorageClassName: old.Spec.StorageClassName, VolumeName: volume, Resources: old.Spec.Resources,
			},
		}
		Expect(first.Delete(ctx, old)).To(Succeed())
		Expect(first.WaitGone(ctx, old)).To(Succeed())
		output, err := c.Kubectl(ctx, "patch", "pv", volume, "--type=merge", "-p", `{"spec":{"claimRef":null}}`)
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(c.Create(ctx, claim)).To(Succeed())
	}
}

// loadDrill has each client load all directories under a name that no load had before.
func loadDrill(ctx context.Context, name string, flags ...string) []*cluster.Load {
	GinkgoHelper()
	loads := make([]*cluster.Load, 0, len(drillClients))
	for i, pod := range drillClients {
		rival := name + "-" + drillClients[1-i]
		load, err := c.StartLoad(ctx, pod, name+"-"+pod, drillPaths(), append([]string{
			"--do", "files,records,opens,lock,random", "--pause", "100ms", "--random-pause", "100ms", "--bytes", "16Mi", "--rival", rival,
		}, flags...)...)
		Expect(err).NotTo(HaveOccurred())
		loads = append(loads, load)
	}
	return loads
}

// auditDrill has each client compare the directories with what loads of both were promised. Their ledgers are in groups: both of a pair
// of loads at a time.
func auditDrill(ctx context.Context, ledgers []string) {
	GinkgoHelper()
	for _, pod := range drillClients {
		for pair := range slices.Chunk(ledgers, 2) {
			audited(ctx, pod, drillPaths(), pair)
		}
	}
}

// A drill is one story, in which each part goes on with the data of those before: what an administrator does after the worst, and what he has then.
var _ = Describe("A disaster", Ordered, Label("disaster"), func() {
	// ledgers have what all loads so far were promised.
	var ledgers []string

	BeforeAll(func(ctx SpecContext) {
		if siteOff == "" || siteOn == "" || backupObjects == "" || restoreObjects == "" {
			Skip("HOWDAH_E2E_SITE_OFF, HOWDAH_E2E_SITE_ON, HOWDAH_E2E_BACKUP and HOWDAH_E2E_RESTORE are not set: nothing here can take the power of this cluster or restore its objects")
		}
		output, err := c.Kubectl(ctx, "delete", "pods", "-l", cluster.ClientLabel, "--grace-period=1", "--timeout="+bound(time.Minute).String())
		Expect(err).NotTo(HaveOccurred(), output)
		applyDrill(ctx)
		DeferCleanup(func(ctx SpecContext) {
			unmountDrill(ctx)
			deleteDrill(ctx)
			runClients(ctx)
		}, NodeTimeout(bound(5*time.Minute)))
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())
		mountDrill(ctx)
	}, NodeTimeout(bound(5*time.Minute)))

	It("that takes the power of the whole cluster under load costs nothing that was acknowledged", func(ctx SpecContext) {
		loads := loadDrill(ctx, "power")
		time.Sleep(15 * time.Second)
		// The ledgers are lost with the nodes, so the loads stand still for the moment in which they are read. Nothing is flushed by that.
		for _, load := range loads {
			ledger, err := load.Freeze(ctx)
			Expect(err).NotTo(HaveOccurred())
			ledgers = append(ledgers, ledger)
		}
		site(ctx, siteOff)
		began := time.Now()
		site(ctx, siteOn)
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())
		for _, pod := range drillClients {
			Eventually(ctx, func(ctx context.Context) error { _, err := c.Shell(ctx, pod, "true"); return err }).WithTimeout(bound(drillWait)).Should(Succeed())
		}
		seeDrill(ctx)
		AddReportEntry("from power on to all directories listed by pods", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		auditDrill(ctx, ledgers)
	}, SpecTimeout(bound(8*time.Minute)))

	It("that takes the API back to an earlier state costs no data, and clients notice nothing", func(ctx SpecContext) {
		files := GinkgoT().TempDir()
		backup := filepath.Join(files, "objects.db")
		By("having a share whose deletion the backup does not know")
		gone := newShare("gone", "/gone", 1, "x")
		gone.Spec.FileServerRef.Name, gone.Spec.ReclaimPolicy = drill, v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, gone.DeepCopy())).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, "gone") }).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, drillClients[0], "echo doomed >/tree/gone/x/file && sync /tree/gone/x/file")
			return err
		}).Should(Succeed())
		site(ctx, backupObjects, backup)
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())

		By("making directories and a share, and deleting one, which the backup does not know")
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, drillClients[0], "cd /tree/drill && for i in 1 2 3 4; do mkdir -p later$i && echo later$i >later$i/file && sync later$i/file || exit 1; done")
			return err
		}).Should(Succeed())
		after := newShare("after", "/after", 1, "a")
		after.Spec.FileServerRef.Name = drill
		Expect(c.Create(ctx, after.DeepCopy())).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, "after") }).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, drillClients[0], "echo kept >/tree/after/a/file && sync /tree/after/a/file")
			return err
		}).Should(Succeed())
		Expect(c.Delete(ctx, gone.DeepCopy())).To(Succeed())
		Expect(c.WaitGone(ctx, gone.DeepCopy())).To(Succeed())

		By("restoring the backup under load, also in a directory that it does not know")
		loads := loadDrill(ctx, "restored")
		const newer = "/tree/drill/later1"
		inNewer, err := c.StartLoad(ctx, drillClients[0], "newer", []string{newer}, "--do", "files,records,opens,lock,random", "--pause", "100ms",
			"--random-pause", "100ms", "--bytes", "16Mi")
		Expect(err).NotTo(HaveOccurred())
		time.Sleep(5 * time.Second)
		site(ctx, restoreObjects, backup)
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) error {
			for i := 1; i <= 4; i++ {
				for _, pod := range drillClients {
					if output, err := c.Shell(ctx, pod, fmt.Sprintf("cat /tree/drill/later%d/file", i)); err != nil || output != fmt.Sprintf("later%d\n", i) {
						return fmt.Errorf("%s: %q: %w", pod, output, err)
					}
				}
			}
			return nil
		}).WithTimeout(bound(drillWait)).Should(Succeed(), "directories that are newer than the backup are found on the volumes")
		AddReportEntry("from the restored API to directories that are newer than it", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())
		for _, load := range loads {
			stopped(ctx, load)
			ledger, err := load.Ledger(ctx)
			Expect(err).NotTo(HaveOccurred())
			ledgers = append(ledgers, ledger)
		}
		auditDrill(ctx, ledgers)
		stopped(ctx, inNewer)
		ledger, err := inNewer.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audited(ctx, drillClients[1], []string{newer}, []string{ledger})

		By("seeing that the share whose data was deleted says so, and is not served empty")
		Eventually(ctx, func(ctx context.Context) error {
			object := &v1alpha1.FileShare{}
			if err := c.Get(ctx, "gone", object); err != nil {
				return err
			}
			return tells(object.Status.Conditions, v1alpha1.ReasonDirectoriesMissing, "x")
		}).WithTimeout(bound(drillWait)).Should(Succeed())
		output, err := c.Shell(ctx, drillClients[1], "timeout -s KILL 5 ls /tree/gone/x")
		Expect(err).To(HaveOccurred(), "the lost directory was listed: %q", output)

		By("making the share again that the backup does not know")
		Expect(c.Create(ctx, after.DeepCopy())).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return c.Shell(ctx, drillClients[1], "cat /tree/after/a/file")
		}).WithTimeout(bound(drillWait)).Should(Equal("kept\n"))
	}, SpecTimeout(bound(10*time.Minute)))

	// The drill of docs/kinds/fileshare.md: a directory moved, and then the API was restored from a backup of before.
	It("that takes the API back to before a move hides no data, and names where it is", Label(volumesHaveOwner), func(ctx SpecContext) {
		const name, declared, made = "traveled", "declared", "made"
		backup := filepath.Join(GinkgoT().TempDir(), "objects.db")
		editFileServer(ctx, drill, func(fs *v1alpha1.FileServer) { fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow })
		share := newShare(name, "/"+name, 1, declared)
		share.Spec.FileServerRef.Name, share.Spec.ReclaimPolicy = drill, v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, share)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, name) }).Should(Succeed())
		paths := []string{declared, made}
		write := fmt.Sprintf("cd /tree/%s && mkdir -p %s && for d in %s; do echo $d >$d/file && sync $d/file || exit 1; done", name, made, strings.Join(paths, " "))
		Eventually(ctx, func(ctx context.Context) error { _, err := c.Shell(ctx, drillClients[0], write); return err }).Should(Succeed())
		site(ctx, backupObjects, backup)
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())
		at := map[string]string{}
		for _, path := range paths {
			at[path] = askToMove(ctx, drill, name, path)
			moved(ctx, drill, name, path, at[path])
		}

		By("restoring the backup, and reading what the share says")
		site(ctx, restoreObjects, backup)
		began := time.Now()
		var objects, places []string
		for _, path := range paths {
			objects = append(objects, c.Namespace+"/"+naming.Directory(drill, name, path))
			places = append(places, fmt.Sprintf("found at %s:", at[path]))
		}
		Eventually(ctx, func(ctx context.Context) error {
			object := &v1alpha1.FileShare{}
			if err := c.Get(ctx, name, object); err != nil {
				return err
			}
			return tells(object.Status.Conditions, v1alpha1.ReasonDirectoriesElsewhere, append(objects, places...)...)
		}).WithTimeout(bound(drillWait)).Should(Succeed())
		AddReportEntry("from the restored API to the place of the moved directories", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		// It waits. To be led to the data itself, as in one run, is right, too; nothing empty is.
		output, err := c.Shell(ctx, drillClients[1], fmt.Sprintf("timeout -s KILL 5 ls /tree/%s/%s", name, made))
		Expect(err != nil || output == "file\n").To(BeTrue(), "an empty directory was listed: %q", output)

		By("deleting the ShareDirectories that it names, while a client makes directories of their names")
		for _, path := range paths {
			Expect(c.Delete(ctx, movingDirectory(ctx, drill, name, path))).To(Succeed())
		}
		began = time.Now()
		for _, path := range paths {
			_, err = c.Shell(ctx, drillClients[0], fmt.Sprintf("cd /tree/%s && timeout -s KILL 150 mkdir %s", name, path))
			Expect(err).To(HaveOccurred(), "the directory with the data was made again, empty")
			Expect(movingDirectory(ctx, drill, name, path).Spec.DataServerRef.Name).To(Equal(at[path]))
		}
		for _, pod := range drillClients {
			Eventually(ctx, func(ctx context.Context) (string, error) {
				return c.Shell(ctx, pod, fmt.Sprintf("cd /tree/%s && timeout -s KILL 30 cat %s/file %s/file", name, declared, made))
			}).WithTimeout(bound(drillWait)).Should(Equal(declared + "\n" + made + "\n"))
		}
		AddReportEntry("from the deleted ShareDirectories to their data", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, name) }).WithTimeout(bound(drillWait)).Should(Succeed())
		deleted(ctx, share)
	}, SpecTimeout(bound(10*time.Minute)))

	It("that deletes all objects costs no data when they are applied again", func(ctx SpecContext) {
		unmountDrill(ctx)
		deleteDrill(ctx)
		applyDrill(ctx)
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())
		mountDrill(ctx)
		auditDrill(ctx, ledgers)
		Expect(shell(ctx, drillClients[0], "cat /tree/drill/later?/file")).To(Equal("later1\nlater2\nlater3\nlater4\n"))
	}, SpecTimeout(bound(8*time.Minute)))

	It("that loses the cluster and not the volumes costs no data when another takes them over", Label(volumesHaveOwner), func(ctx SpecContext) {
		unmountDrill(ctx)
		volumes := keepVolumes(ctx)
		deleteDrill(ctx)
		// A Kubernetes namespace of another UID is what another cluster would have; volumes are all that it takes over.
		first := c
		var err error
		c, err = cluster.Connect(ctx, "howdah-e2e-other")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			unmountDrill(ctx)
			deleteDrill(ctx)
			volumes.reclaim(ctx, corev1.PersistentVolumeReclaimDelete)
			output, err := c.Kubectl(ctx, "delete", "namespace", c.Namespace, "--wait=false")
			Expect(err).NotTo(HaveOccurred(), output)
			c = first
		}, NodeTimeout(bound(5*time.Minute)))
		volumes.take(ctx, first)
		applyDrill(ctx)
		By("marking the claims, as the FileServer says")
		object := &v1alpha1.FileServer{}
		var command string
		Eventually(ctx, func(ctx context.Context) (found bool, err error) {
			if err := c.Get(ctx, drill, object); err != nil {
				return false, err
			}
			storage := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.FileServerStorageAvailable)
			if storage != nil {
				_, command, found = strings.Cut(storage.Message, "if they are the ones that it is to have: ")
			}
			return found && strings.Count(command, "data-0-") >= 2*drillServers, nil
		}).WithTimeout(bound(drillWait)).Should(BeTrue(), "the FileServer says how to mark claims that were made by hand")
		site(ctx, command)
		By("handing the volumes over, as the FileServer says: they are of another Kubernetes namespace")
		Eventually(ctx, func(ctx context.Context) error {
			if err := c.Get(ctx, drill, object); err != nil {
				return err
			}
			return tells(object.Status.Conditions, v1alpha1.ReasonVolumeRefused, "remove /volumes/0/.howdah/volume.json to hand the data over")
		}).WithTimeout(bound(drillWait)).Should(Succeed())
		for ordinal := range int32(drillServers) {
			Eventually(ctx, func(ctx context.Context) error {
				_, err := c.Kubectl(ctx, "exec", naming.DataServer(drill, ordinal), "--", "rm", "/volumes/0/.howdah/volume.json")
				return err
			}).WithTimeout(bound(time.Minute)).Should(Succeed())
		}
		Eventually(ctx, drillReady).WithTimeout(bound(drillWait)).Should(Succeed())
		mountDrill(ctx)
		auditDrill(ctx, ledgers)
	}, SpecTimeout(bound(10*time.Minute)))
})
