package integration

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/gitops"
)

// judgeEverything has Argo CD and Flux judge every object of a user's kind in every state that it has while the suite
// runs. In the end the two must have been of one opinion.
func judgeEverything() {
	GinkgoHelper()
	scripts, err := gitops.ReadScripts(filepath.Join("..", "..", "config", "argocd", "customizations"))
	Expect(err).NotTo(HaveOccurred())
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	var mutex sync.Mutex
	verdicts, problems := map[string]int{}, map[string]bool{}
	for _, kind := range []string{"FileServer", "FileShare", "FileShareSnapshot", "FileShareSnapshotSchedule", "MLPerfStorageJob"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		events, err := watcher.Watch(ctx, list)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(events.Stop)
		go func() {
			for event := range events.ResultChan() {
				object, ok := event.Object.(*unstructured.Unstructured)
				if !ok || event.Type == watch.Deleted {
					continue
				}
				verdict, problem := judge(scripts, object)
				mutex.Lock()
				verdicts[object.GetKind()+" "+verdict]++
				if problem != "" && len(problems) < 10 {
					problems[problem] = true
				}
				mutex.Unlock()
			}
		}()
	}
	DeferCleanup(func() {
		mutex.Lock()
		defer mutex.Unlock()
		for _, verdict := range slices.Sorted(maps.Keys(verdicts)) {
			fmt.Fprintf(GinkgoWriter, "%s: %d\n", verdict, verdicts[verdict])
		}
		Expect(slices.Sorted(maps.Keys(problems))).To(BeEmpty(), "what Argo CD and kstatus make of an object")
	})
}

// judge tells what both say of an object, and what is wrong with that.
func judge(scripts gitops.Scripts, object *unstructured.Unstructured) (verdict, problem string) {
	health, err := scripts.Judge(object)
	if err != nil {
		return "", fmt.Sprintf("%v: %v", object.Object, err)
	}
	result, err := status.Compute(object)
	if err != nil {
		return "", fmt.Sprintf("%v: %v", object.Object, err)
	}
	verdict = health.Status + ", " + result.Status.String()
	agreed := map[string]bool{
		gitops.Healthy + ", " + status.CurrentStatus.String():        true,
		gitops.Progressing + ", " + status.InProgressStatus.String(): true,
		gitops.Degraded + ", " + status.FailedStatus.String():        true,
	}
	switch {
	case object.GetDeletionTimestamp() != nil:
		agreed = map[string]bool{gitops.Progressing + ", " + status.TerminatingStatus.String(): true}
	case health.Status == gitops.Suspended && strings.Contains(health.Message, v1alpha1.PausedAnnotation):
		// kstatus knows no pause: it says what was there before.
		return verdict, ""
	case object.GetKind() == "MLPerfStorageJob":
		agreed[gitops.Suspended+", "+status.CurrentStatus.String()] = true
	}
	if !agreed[verdict] {
		problem = fmt.Sprintf("%s %s/%s is %s: %v", object.GetKind(), object.GetNamespace(), object.GetName(), verdict, object.Object["status"])
	}
	return verdict, problem
}
