package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/sameobject"
	"github.com/howdah/howdah/test/builders"
	"github.com/howdah/howdah/test/tokens"
)

// asPod is a client with the token of a pod of an account.
func asPod(namespace, account, pod string) client.Client {
	GinkgoHelper()
	return clientOf(tokens.Pod(ctx, admin, config, namespace, account, pod))
}

func clientOf(config *rest.Config, err error) client.Client {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// patchStatus is a merge patch of an object's status.
func patchStatus(as client.Client, object client.Object, status string) error {
	return as.Status().Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
}

// beRefused matches what the API server says no to, by role or by policy, in these words.
func beRefused(words string) OmegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(words)))
}

// byRole is what the API server says where no role gives the right.
const byRole = "cannot "

var _ = Describe("The pods of servers", Ordered, func() {
	var (
		namespace string
		// The operator plays no part after these are made: it would put right what a test breaks.
		own, other, foreign         *internalv1.DataServer
		ownExport, otherExport      *internalv1.ShareExport
		foreignExport               *internalv1.ShareExport
		dataServer, namespaceServer client.Client
	)
	const door = "training-namespace-5d8f-x7"

	BeforeAll(func() {
		namespace = newNamespace()
		servingFileServer(namespace, "training", 2)
		servingFileServer(namespace, "archive", 1)
		for _, name := range []string{"training", "archive"} {
			create(builders.FileShare(namespace, name+"-share", name).Build())
			readyShare(namespace, name+"-share")
		}
		for name, into := range map[string]**internalv1.DataServer{"training-0": &own, "training-1": &other, "archive-0": &foreign} {
			*into = exists(&internalv1.DataServer{}, namespace, name)
		}
		for name, into := range map[string]**internalv1.ShareExport{
			naming.ShareExport("training-share", "training-0"): &ownExport, naming.ShareExport("training-share", "training-1"): &otherExport,
			naming.ShareExport("archive-share", "archive-0"): &foreignExport,
		} {
			*into = exists(&internalv1.ShareExport{}, namespace, name)
		}
		// While the share is Ready: a benchmark waits for that, and the share may not be for long without the pod.
		for _, job := range []string{"run-a", "run-b"} {
			create(mlperfJob(namespace, job, "training-share"))
			exists(&corev1.ConfigMap{}, namespace, naming.BenchmarkResult(job))
		}
		// The played pod has no account that a token could be made for.
		Expect(admin.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training-0"}}, client.GracePeriodSeconds(0))).To(Succeed())
		dataServer = asPod(namespace, naming.DataServerAccount("training"), "training-0")
		namespaceServer = asPod(namespace, naming.NamespaceServers("training"), door)
	})

	It("refuse in words that name pod and object, and a data server reports for itself only", func() {
		full := `{"nodeName":"node-c"}`
		Expect(patchStatus(dataServer, own, full)).To(Succeed())
		Expect(patchStatus(dataServer, other, full)).To(beRefused("data server training-0 writes the status of its own DataServer, not of training-1"))
		Expect(patchStatus(dataServer, foreign, full)).To(beRefused(byRole))
		Expect(patchStatus(dataServer, own, `{"unreachable":{"sinceTime":"2026-11-22T00:00:00Z","seenBy":"`+door+`"}}`)).
			To(beRefused("status.unreachable, status.fenced is not for data servers to write"))
		Expect(dataServer.Patch(ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"address":"10.0.0.66"}}`)))).To(beRefused(byRole))
		Expect(dataServer.Delete(ctx, own.DeepCopy())).To(beRefused(byRole))

		served := `{"exportIDs":[7]}`
		Expect(patchStatus(dataServer, ownExport, served)).To(Succeed())
		Expect(patchStatus(dataServer, otherExport, served)).To(beRefused("data server training-0 writes the status of its own ShareExports, not of those of training-1"))
		Expect(patchStatus(dataServer, foreignExport, served)).To(beRefused("data servers of FileServer training write its objects only"))
		Expect(dataServer.Patch(ctx, ownExport.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dataPolicy":"Delete"}}`)))).To(beRefused(byRole))
		Expect(dataServer.Delete(ctx, ownExport.DeepCopy())).To(beRefused(byRole))
		Expect(dataServer.Create(ctx, builders.ShareDirectory(namespace, "training", "training-share", "d", "training-0"))).To(beRefused(byRole))
		Expect(dataServer.Create(ctx, lease(namespace, "training-namespace"))).To(beRefused(byRole))
	})

	It("have tokens of their own: an account's without a pod writes nothing", func() {
		unbound := clientOf(tokens.Account(ctx, admin, config, namespace, naming.DataServerAccount("training")))
		Expect(patchStatus(unbound, own, `{"nodeName":"node-b"}`)).To(beRefused("token must have been made for its pod"))
		unbound = clientOf(tokens.Account(ctx, admin, config, namespace, naming.NamespaceServers("training")))
		Expect(unbound.Create(ctx, made("training", "training-share", "unbound", door, namespace))).To(beRefused("token must have been made for its pod"))
		Expect(unbound.Create(ctx, lease(namespace, "training-namespace"))).To(beRefused("token must have been made for its pod"))
	})

	It("of namespace servers say of a DataServer only that it does not answer, and in their own name", func() {
		seen := func(by string) string {
			return `{"unreachable":{"sinceTime":"2026-11-22T00:00:00Z","seenBy":"` + by + `"}}`
		}
		Expect(patchStatus(namespaceServer, own, seen("training-namespace-5d8f-y8"))).To(beRefused("status.unreachable.seenBy must be the pod that says so: " + door))
		Expect(patchStatus(namespaceServer, own, seen(door))).To(Succeed())
		Expect(patchStatus(dataServer, own, `{"unreachable":null}`)).To(beRefused("status.unreachable, status.fenced is not for data servers to write"))
		Expect(patchStatus(dataServer, own, `{"nodeName":"node-a"}`)).To(Succeed(), "it reports while it counts as unreachable")
		another := asPod(namespace, naming.NamespaceServers("training"), "training-namespace-5d8f-z9")
		Expect(sameobject.PatchStatus(ctx, another, own.DeepCopy(), own.UID, map[string]any{"unreachable": nil})).To(Succeed(), "the next leader takes it back")
		Expect(patchStatus(namespaceServer, foreign, seen(door))).To(beRefused(byRole))
		for _, status := range []string{`{"nodeName":"node-x"}`, `{"conditions":[]}`, `{"nodeName":null}`, `{"observedGeneration":99}`, `{"volumes":[]}`} {
			Expect(patchStatus(namespaceServer, own, status)).To(beRefused("a namespace server writes the field unreachable only"), status)
		}
		Expect(patchStatus(namespaceServer, ownExport, `{"exportIDs":[9]}`)).To(beRefused("a namespace server writes the field inventory only"))
		Expect(namespaceServer.Patch(ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"address":"10.0.0.66"}}`)))).To(beRefused(byRole))
	})

	It("of namespace servers keep the ShareDirectories of their own FileServer", func() {
		directory := made("training", "training-share", "mine", door, namespace)
		Expect(namespaceServer.Create(ctx, directory)).To(Succeed())
		directory.Spec.Mode = "0700"
		Expect(namespaceServer.Update(ctx, directory)).To(Succeed())
		directory.Status.State = internalv1.DirectoryReady
		Expect(namespaceServer.Status().Update(ctx, directory)).To(Succeed())
		Expect(patchStatus(namespaceServer, directory, `{"changedTime":"2026-11-22T00:00:00.000000Z"}`)).To(Succeed())

		By("not those of another")
		theirs := made("archive", "archive-share", "theirs", "archive-namespace-1", namespace)
		create(theirs)
		own := "namespace servers of FileServer training write its objects only"
		Expect(namespaceServer.Create(ctx, made("archive", "archive-share", "new", door, namespace))).To(beRefused(own))
		changed := theirs.DeepCopy()
		changed.Spec.Mode = "0777"
		Expect(namespaceServer.Update(ctx, changed)).To(beRefused(own))
		changed = theirs.DeepCopy()
		changed.Status.State = internalv1.DirectoryRemoving
		Expect(namespaceServer.Status().Update(ctx, changed)).To(beRefused(own))
		Expect(patchStatus(namespaceServer, theirs, `{"state":"Ready"}`)).To(beRefused(own))
		Expect(namespaceServer.Delete(ctx, theirs.DeepCopy())).To(beRefused(own))
		Expect(namespaceServer.DeleteAllOf(ctx, &internalv1.ShareDirectory{}, client.InNamespace(namespace))).To(beRefused(byRole))

		By("not by another's name, label, data server or maker")
		for what, edit := range map[string]func(*internalv1.ShareDirectory){
			"begins with training.training-share-": func(d *internalv1.ShareDirectory) {
				d.Name = naming.Directory("archive", "archive-share", "new")
			},
			"the labels of a ShareDirectory name": func(d *internalv1.ShareDirectory) { d.Labels[v1alpha1.FileServerLabel] = "archive" },
			"archive-0 is no data server of FileServer training": func(d *internalv1.ShareDirectory) {
				d.Spec.DataServerRef.Name, d.Labels[v1alpha1.DataServerLabel] = "archive-0", "archive-0"
			},
			"howdah.io/made-by must name the pod": func(d *internalv1.ShareDirectory) {
				d.Annotations[tree.MadeByAnnotation] = "training-namespace-5d8f-y8"
			},
		} {
			d := made("training", "training-share", "other", door, namespace)
			edit(d)
			Expect(namespaceServer.Create(ctx, d)).To(beRefused(what))
		}
		noLabels := made("training", "training-share", "other", door, namespace)
		noLabels.Labels = nil
		Expect(namespaceServer.Create(ctx, noLabels)).To(beRefused("the labels of a ShareDirectory name"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(directory), directory)).To(Succeed())
		moved := directory.DeepCopy()
		moved.Labels[v1alpha1.FileShareLabel] = "archive-share"
		Expect(namespaceServer.Update(ctx, moved)).To(beRefused("the labels of a ShareDirectory name"))
		elsewhere := directory.DeepCopy()
		elsewhere.Spec.DataServerRef.Name, elsewhere.Labels[v1alpha1.DataServerLabel] = "training-namespace-0", "training-namespace-0"
		Expect(namespaceServer.Update(ctx, elsewhere)).To(beRefused("is no data server of FileServer training"))

		By("an operator's directory, which no pod made")
		declared := made("training", "training-share", "declared", "", namespace)
		declared.Annotations = nil
		create(declared)
		declared.Spec.Mode = "0711"
		Expect(namespaceServer.Update(ctx, declared)).To(Succeed())

		Expect(admin.Get(ctx, client.ObjectKeyFromObject(directory), directory)).To(Succeed())
		directory.Spec.Mode = "0750"
		Expect(namespaceServer.Update(ctx, directory)).To(Succeed(), "of one that has a status")
		Expect(namespaceServer.Delete(ctx, directory)).To(Succeed())
	})

	It("of namespace servers hold one Lease, by its name", func() {
		Expect(namespaceServer.Create(ctx, lease(namespace, "archive-namespace"))).To(beRefused("hold the Lease training-namespace only"))
		Expect(namespaceServer.Create(ctx, lease(namespace, "howdah-operator"))).To(beRefused("hold the Lease training-namespace only"))
		held := lease(namespace, "training-namespace")
		Expect(namespaceServer.Create(ctx, held)).To(Succeed())
		held.Spec.HolderIdentity = ptr.To(door)
		Expect(namespaceServer.Update(ctx, held)).To(Succeed())
		theirs := lease(namespace, "archive-namespace")
		create(theirs)
		Expect(namespaceServer.Update(ctx, theirs)).To(beRefused(byRole))
		Expect(namespaceServer.Delete(ctx, held)).To(beRefused(byRole))
	})

	It("touch nothing that is the users'", func() {
		share := exists(&v1alpha1.FileShare{}, namespace, "training-share")
		for who, as := range map[string]client.Client{"data server": dataServer, "namespace server": namespaceServer} {
			Expect(patchStatus(as, share, `{"observedGeneration":9}`)).To(beRefused(byRole), who)
			Expect(as.Delete(ctx, share.DeepCopy())).To(beRefused(byRole), who)
			Expect(as.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "any"}, &corev1.Secret{})).To(beRefused(byRole), who)
			Expect(as.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "any"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "registry.invalid/none"}},
			}})).To(beRefused(byRole), who)
		}
	})

	It("of benchmarks write the result of their own run", func() {
		var as client.Client
		Eventually(func() error {
			config, err := tokens.Account(ctx, admin, config, namespace, naming.Benchmark("run-a"))
			if err == nil {
				as = clientOf(config, nil)
				err = as.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.BenchmarkResult("run-a")}, &corev1.ConfigMap{})
			}
			return err
		}, timeout, "100ms").Should(Succeed())
		write := func(job string) error {
			return as.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.BenchmarkResult(job)}},
				client.RawPatch(types.MergePatchType, []byte(`{"data":{"client-0":"x"}}`)))
		}
		Expect(write("run-a")).To(Succeed())
		Expect(write("run-b")).To(beRefused(byRole))
		Expect(patchStatus(as, own, `{"nodeName":"node-b"}`)).To(beRefused(byRole))
	})
})

// made is a ShareDirectory as a namespace server makes it.
func made(fileServer, share, path, by, namespace string) *internalv1.ShareDirectory {
	directory := builders.ShareDirectory(namespace, fileServer, share, path, fileServer+"-0")
	directory.Status = internalv1.ShareDirectoryStatus{}
	directory.Annotations = map[string]string{tree.MadeByAnnotation: by}
	return directory
}

func lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// policiesWork waits until the API server enforces the admission policies, which it learns by a watch.
func policiesWork() {
	GinkgoHelper()
	const namespace = metav1.NamespaceDefault
	for _, account := range []string{"none-data", "none-namespace"} {
		Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})).To(Succeed())
		impersonated := rest.CopyConfig(config)
		impersonated.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account), Groups: []string{"system:masters"}}
		as := clientOf(impersonated, nil)
		Eventually(func() error {
			return as.Create(ctx, made("none", "none", "none", "", namespace), client.DryRunAll)
		}, time.Minute, "100ms").Should(beRefused("token must have been made for its pod"))
	}
}
