package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	rolling = "rolling"
	// calm is how long the load runs before an event and after the last one.
	calm = 20 * time.Second
	// badImage can't be pulled.
	badImage = "registry.invalid/howdah/server:bad"
)

// dataPods are the pods of the FileServer's data servers, by their names.
func dataPods(ctx context.Context) (map[string]corev1.Pod, error) {
	list, pods := &corev1.PodList{}, map[string]corev1.Pod{}
	err := c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods, err
}

func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// updated is the condition ServersUpdated of a FileServer, as of its newest specification.
func updated(ctx context.Context, name string) (metav1.Condition, error) {
	object := &v1alpha1.FileServer{}
	if err := c.Get(ctx, name, object); err != nil {
		return metav1.Condition{}, err
	}
	found := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.FileServerServersUpdated)
	if found == nil || found.ObservedGeneration != object.Generation {
		return metav1.Condition{}, fmt.Errorf("FileServer %s has no %s of generation %d yet", name, v1alpha1.FileServerServersUpdated, object.Generation)
	}
	return *found, nil
}

// serversUpdated waits until the pods of all data servers are as the operator wants them, and ready.
func serversUpdated(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		set := &appsv1.StatefulSet{}
		if err := c.Get(ctx, naming.DataServers(name), set); err != nil {
			return err
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.UpdatedReplicas != *set.Spec.Replicas || s.ReadyReplicas != s.UpdatedReplicas || s.Replicas != s.UpdatedReplicas {
			return fmt.Errorf("of %d data servers %d are updated, %d are ready", *set.Spec.Replicas, s.UpdatedReplicas, s.ReadyReplicas)
		}
		condition, err := updated(ctx, name)
		if err == nil && condition.Status != metav1.ConditionTrue {
			err = fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		}
		return err
	}).WithTimeout(bound(8 * time.Minute)).Should(Succeed())
}

// rollWatch looks at the pods of the data servers all the time: it marks in the load each that begins to end, and notes how many are being
// replaced at the same time: from the end of a pod until the next one is ready. A pod that was ready and is not for a moment, because a busy
// machine answers its probe late, is not one of them.
type rollWatch struct {
	load *cluster.Load

	mutex    sync.Mutex
	ended    []types.UID
	mostDown int
	times    []string
	failed   error
}

func (w *rollWatch) run(ctx context.Context) {
	began, states, served := time.Now(), map[string]string{}, map[types.UID]bool{}
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		pods, err := dataPods(ctx)
		if err != nil {
			continue
		}
		down := serverCount - len(pods)
		w.mutex.Lock()
		for name, pod := range pods {
			state := string(pod.Status.Phase)
			switch {
			case pod.DeletionTimestamp != nil:
				state = "ends"
				if !slices.Contains(w.ended, pod.UID) {
					w.ended = append(w.ended, pod.UID)
					if err := w.load.Mark(ctx); err != nil && ctx.Err() == nil {
						w.failed = err
					}
				}
			case isReady(pod):
				state, served[pod.UID] = "ready", true
			}
			if pod.DeletionTimestamp != nil || !served[pod.UID] {
				down++
			}
			if known := states[name]; known != state {
				states[name] = state
				if known != "" {
					w.times = append(w.times, fmt.Sprintf("%.1f s: %s %s", time.Since(began).Seconds(), name, state))
				}
			}
		}
		for name := range states {
			if _, is := pods[name]; !is && states[name] != "gone" {
				states[name] = "gone"
				w.times = append(w.times, fmt.Sprintf("%.1f s: %s has no pod", time.Since(began).Seconds(), name))
			}
		}
		w.mostDown = max(w.mostDown, down)
		w.mutex.Unlock()
	}
}

// underRandomLoad has a client load a directory of each data server, while do changes something. Nothing may fail or be wrong, and as many
// data servers are down at once as are expected: never more than one.
func underRandomLoad(ctx context.Context, what string, directories []string, down int, do func()) {
	GinkgoHelper()
	name := strings.ReplaceAll(what, " ", "-")
	running, err := c.StartLoad(ctx, clientA, name, directories,
		// The lab's nodes have a processor each: the load must leave servers and kubelets enough of it.
		"--do", "random,records,opens,lock", "--pause", "200ms", "--random-pause", "20ms", "--bytes", "16Mi")
	Expect(err).NotTo(HaveOccurred())
	watch := &rollWatch{load: running}
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { watch.run(watching) })
	time.Sleep(calm)
	do()
	time.Sleep(calm)
	stop()
	watcher.Wait()
	result, err := running.Stop(ctx)
	Expect(err).NotTo(HaveOccurred())
	AddReportEntry(what, result.Text(), ReportEntryVisibilityAlways)
	AddReportEntry(what+": pods", strings.Join(watch.times, "; "), ReportEntryVisibilityAlways)
	Expect(result.Verdict(0)).To(Succeed())
	Expect(watch.failed).NotTo(HaveOccurred())
	Expect(watch.mostDown).To(Equal(down), "data servers that are down at once: %v", watch.times)
	ledger, err := running.Ledger(ctx)
	Expect(err).NotTo(HaveOccurred())
	audited(ctx, clientB, directories, []string{ledger})
}

// setServerImage gives the operator another image for data servers; "" is the one before. It waits for the operator that has it.
func setServerImage(ctx context.Context, image string) (before string) {
	GinkgoHelper()
	before, err := c.Kubectl(ctx, "get", "deployment", "howdah", "-n", operator, "-o",
		`jsonpath={.spec.template.spec.containers[0].env[?(@.name=="HOWDAH_SERVER_IMAGE")].value}`)
	Expect(err).NotTo(HaveOccurred())
	for _, args := range [][]string{
		{"set", "env", "deployment/howdah", "HOWDAH_SERVER_IMAGE=" + image, "-n", operator},
		{"rollout", "status", "deployment/howdah", "-n", operator, "--timeout=" + bound(3*time.Minute).String()},
	} {
		_, err := c.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred())
	}
	return strings.TrimSpace(before)
}

func changeFileServer(ctx context.Context, mutate func(*v1alpha1.FileServer)) {
	GinkgoHelper()
	object := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, fileServer, object)).To(Succeed())
	after := object.DeepCopy()
	mutate(after)
	Expect(c.Patch(ctx, after, client.MergeFrom(object))).To(Succeed())
}

// directoryOfEach makes a share in which each data server has a directory, and returns the paths at which clients have them.
func directoryOfEach(ctx context.Context, name string) (directories []string) {
	GinkgoHelper()
	object := newShare(name, "/"+name, 1, fmt.Sprintf("d{0..%d}", serverCount-1))
	object.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	Expect(c.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleted(ctx, object) }, NodeTimeout(bound(2*time.Minute)))
	Eventually(ctx, func() error { return shareReady(ctx, name) }).Should(Succeed())
	found, err := owners(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	owning := map[string]bool{}
	for directory, server := range found {
		owning[server] = true
		directories = append(directories, treeMount+"/"+name+"/"+directory)
	}
	slices.Sort(directories)
	Expect(owning).To(HaveLen(serverCount), "each data server has a directory")
	for _, pod := range []string{clientA, clientB} {
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, pod, "ls "+strings.Join(directories, " "))
			return err
		}).Should(Succeed())
	}
	return directories
}

var _ = Describe("Data servers that are replaced under load", Label("rollout"), Ordered, Serial, func() {
	var directories []string

	BeforeAll(func(ctx SpecContext) { directories = directoryOfEach(ctx, rolling) }, NodeTimeout(bound(4*time.Minute)))

	It("by a setting, are so one after the other, and no setting that ganesha reads itself replaces one", func(ctx SpecContext) {
		before, err := dataPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		changeFileServer(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.AdditionalNodeNetworks = []string{"10.200.0.0/24"} })
		underRandomLoad(ctx, "a setting", directories, 1, func() {
			now, err := dataPods(ctx)
			Expect(err).NotTo(HaveOccurred())
			for name, pod := range now {
				Expect(pod.UID).To(Equal(before[name].UID), "a reload is enough")
			}
			changeFileServer(ctx, func(fs *v1alpha1.FileServer) {
				fs.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("11m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				}}
			})
			serversUpdated(ctx, fileServer)
			now, err = dataPods(ctx)
			Expect(err).NotTo(HaveOccurred())
			for name, pod := range now {
				Expect(pod.UID).NotTo(Equal(before[name].UID), "pod %s was replaced", name)
			}
		})
	}, SpecTimeout(bound(12*time.Minute)))

	DescribeTable("by an image with which none serves, are so at the first at most, and go on with the earlier image by themselves",
		func(ctx SpecContext, what string, reached []string, image func(ctx context.Context) string) {
			var earlier string
			DeferCleanup(func(ctx SpecContext) {
				if earlier != "" {
					setServerImage(ctx, earlier)
				}
			}, NodeTimeout(bound(4*time.Minute)))
			underRandomLoad(ctx, what, directories, len(reached), func() {
				bad := image(ctx)
				earlier = setServerImage(ctx, bad)
				var condition metav1.Condition
				Eventually(ctx, func(ctx context.Context) (reason string, err error) {
					condition, err = updated(ctx, fileServer)
					return condition.Reason, err
				}).WithTimeout(bound(4 * time.Minute)).Should(Equal(v1alpha1.ReasonRolloutStopped))
				AddReportEntry("the condition", condition.Message, ReportEntryVisibilityAlways)
				Expect(condition.Message).To(And(ContainSubstring("data server "+fileServer+"-2"), ContainSubstring(bad), ContainSubstring(earlier)))
				time.Sleep(calm)
				pods, err := dataPods(ctx)
				Expect(err).NotTo(HaveOccurred())
				var given []string
				for name, pod := range pods {
					if pod.Spec.Containers[0].Image == bad {
						given = append(given, name)
					}
				}
				Expect(given).To(ConsistOf(reached), "the others keep their image")
				expectStewardHas(ctx, earlier)
				setServerImage(ctx, earlier)
				earlier = ""
				serversUpdated(ctx, fileServer)
			})
		},
		// No data server is stopped for it.
		Entry("it can't be pulled", SpecTimeout(bound(12*time.Minute)), "a bad image", []string{}, func(context.Context) string { return badImage }),
		// The operator's has the supervisor, and no ganesha.
		Entry("it has no ganesha", SpecTimeout(bound(15*time.Minute)), "an image without ganesha", []string{fileServer + "-2"}, func(ctx context.Context) string {
			image, err := c.Kubectl(ctx, "get", "deployment", "howdah", "-n", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(image)
		}))

	It("by a setting, stay on a cordoned node that has their volume, and a killed operator goes on where it was", Label(volumesHaveOwner), func(ctx SpecContext) {
		last := fileServer + "-2"
		before, err := dataPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		node := before[last].Spec.NodeName
		claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		Expect(c.Get(ctx, naming.VolumeClaim(fileServer, 2, 0), claim)).To(Succeed())
		Expect(c.Client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)).To(Succeed())
		if volume.Spec.NodeAffinity == nil {
			Skip("the volumes of this cluster can be used on every node")
		}
		DeferCleanup(func(ctx SpecContext) {
			_, err := c.Kubectl(ctx, "uncordon", node)
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(bound(time.Minute)))
		underRandomLoad(ctx, "a cordoned node", directories, 1, func() {
			_, err := c.Kubectl(ctx, "cordon", node)
			Expect(err).NotTo(HaveOccurred())
			changeFileServer(ctx, func(fs *v1alpha1.FileServer) {
				fs.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("12m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				}}
			})
			Eventually(ctx, func(ctx context.Context) error {
				pods, err := dataPods(ctx)
				if err == nil && pods[fileServer+"-1"].DeletionTimestamp == nil {
					err = errors.New("no pod is being replaced")
				}
				return err
			}).WithTimeout(bound(time.Minute)).WithPolling(100 * time.Millisecond).Should(Succeed())
			_, err = c.Kubectl(ctx, "delete", "pods", "-n", operator, "-l", "app.kubernetes.io/component=operator", "--grace-period=0", "--force")
			Expect(err).NotTo(HaveOccurred())
			var condition metav1.Condition
			Eventually(ctx, func(ctx context.Context) (reason string, err error) {
				condition, err = updated(ctx, fileServer)
				return condition.Reason, err
			}).WithTimeout(bound(4 * time.Minute)).Should(Equal(v1alpha1.ReasonRolloutWaiting))
			AddReportEntry("the condition", condition.Message, ReportEntryVisibilityAlways)
			Expect(condition.Message).To(ContainSubstring(last + " (its volume is on node " + node + " only"))
			pods, err := dataPods(ctx)
			Expect(err).NotTo(HaveOccurred())
			var kept []string
			for name, pod := range pods {
				if pod.UID == before[name].UID {
					kept = append(kept, name)
				}
			}
			Expect(kept).To(Equal([]string{last}), "the others were replaced")
			_, err = c.Kubectl(ctx, "uncordon", node)
			Expect(err).NotTo(HaveOccurred())
			serversUpdated(ctx, fileServer)
		})
	}, SpecTimeout(bound(12*time.Minute)))

	It("by a drain of a node, are so one at a time, and their directories wait", func(ctx SpecContext) {
		pods, err := dataPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		used := map[string]bool{}
		for _, name := range []string{clientA, clientB} {
			pod := &corev1.Pod{}
			Expect(c.Get(ctx, name, pod)).To(Succeed())
			used[pod.Spec.NodeName] = true
		}
		node, drained, other := "", "", ""
		for name, pod := range pods {
			switch {
			case !used[pod.Spec.NodeName]:
				node, drained = pod.Spec.NodeName, name
			default:
				other = name
			}
		}
		if node == "" || other == "" {
			Skip("a node with a data server and without clients is needed, and another data server")
		}
		DeferCleanup(func(ctx SpecContext) {
			_, err := c.Kubectl(ctx, "uncordon", node)
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(bound(time.Minute)))
		underRandomLoad(ctx, "a drain", directories, 1, func() {
			_, err := c.Kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout="+bound(3*time.Minute).String())
			Expect(err).NotTo(HaveOccurred())
			Eventually(ctx, func(ctx context.Context) error { // Until the budget knows.
				eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: other}}
				limited, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				err := c.Client.SubResource("eviction").Create(limited, pod, eviction)
				switch {
				case apierrors.IsTooManyRequests(err) || limited.Err() != nil:
					return nil // The client tries for long what the budget refuses.
				case err == nil:
					return fmt.Errorf("%s may be evicted while %s does not serve", other, drained)
				}
				return err
			}).Should(Succeed())
			time.Sleep(calm)
			_, err = c.Kubectl(ctx, "uncordon", node)
			Expect(err).NotTo(HaveOccurred())
			serversUpdated(ctx, fileServer)
		})
	}, SpecTimeout(bound(12*time.Minute)))
})
