package integration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
)

// timeout is how long a story waits for the operator at most: milliseconds on an idle machine, and no test of
// speed on one that has other things to do.
const timeout = 3 * time.Minute

// writesIn is how much the operator has written in a Kubernetes namespace, and in none. Other stories leave FileServers behind
// that it may have something to do for.
func writesIn(namespace string) int64 {
	written := int64(0)
	for _, in := range []string{namespace, ""} {
		if count, ok := operatorWrites.Load(in); ok {
			written += count.(*atomic.Int64).Load()
		}
	}
	return written
}

// awaitQuiet waits until the operator has written nothing in a Kubernetes namespace for a while and returns how much it has written so far.
func awaitQuiet(namespace string) int64 {
	GinkgoHelper()
	var before int64
	Eventually(func() int64 {
		before = writesIn(namespace)
		time.Sleep(1500 * time.Millisecond)
		return writesIn(namespace) - before
	}, timeout).Should(BeZero(), describeWrites)
	return before
}

// newNamespace makes a Kubernetes namespace for a story.
func newNamespace() string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

func create(object client.Object) {
	GinkgoHelper()
	Expect(admin.Create(ctx, object)).To(Succeed())
}

// createDirectory makes a ready directory, as a namespace server leaves it after a client's mkdir.
func createDirectory(directory *internalv1.ShareDirectory) {
	GinkgoHelper()
	status := directory.Status
	create(directory)
	// A patch: the operator may have written to it already.
	before := directory.DeepCopy()
	directory.Status = status
	Expect(admin.Status().Patch(ctx, directory, client.MergeFrom(before))).To(Succeed())
}

// createNode makes a node that is ready: the API server's admission taints every new one as not.
func createNode(node *corev1.Node) *corev1.Node {
	GinkgoHelper()
	create(node)
	change(node, func(n *corev1.Node) { n.Spec.Taints = nil })
	return node
}

// change reads an object again and patches what the function changes.
func change[T client.Object](object T, mutate func(T)) {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	mutate(object)
	Expect(admin.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// exists gets an object that must be there soon.
func exists[T client.Object](object T, namespace, name string) T {
	GinkgoHelper()
	Eventually(func() error {
		return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	}, timeout, "50ms").Should(Succeed(), "%T %s/%s", object, namespace, name)
	return object
}

// isGone waits until an object is deleted or being deleted.
func isGone(object client.Object, namespace, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		return apierrors.IsNotFound(err) || err == nil && object.GetDeletionTimestamp() != nil
	}, timeout, "50ms").Should(BeTrue(), "%T %s/%s must go", object, namespace, name)
}

// fileServerCondition reads a condition; Status is "" if there is none yet.
func fileServerCondition(namespace, name, conditionType string) metav1.Condition {
	var fs v1alpha1.FileServer
	if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &fs); err != nil {
		return metav1.Condition{Message: err.Error()}
	}
	if c := meta.FindStatusCondition(fs.Status.Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// expectCondition waits for a condition of a FileServer and returns its message.
func expectCondition(namespace, name, conditionType string, status metav1.ConditionStatus, reason string) string {
	GinkgoHelper()
	var got metav1.Condition
	Eventually(func() string {
		got = fileServerCondition(namespace, name, conditionType)
		return fmt.Sprintf("%s %s", got.Status, got.Reason)
	}, timeout, "50ms").Should(Equal(fmt.Sprintf("%s %s", status, reason)), func() string { return got.Message })
	return got.Message
}

// runDataServers plays the StatefulSet controller, the kubelet and the instance
// managers: the claims are bound, the pods run, and every server has loaded what its DataServer says.
func runDataServers(namespace, fileServer string) {
	GinkgoHelper()
	startDataServers(namespace, fileServer)
	loadConfigurations(namespace, fileServer)
}

// startDataServers is runDataServers without the supervisors.
func startDataServers(namespace, fileServer string) {
	GinkgoHelper()
	set := exists(&appsv1.StatefulSet{}, namespace, naming.DataServers(fileServer))
	nodes := []string{"node-a", "node-b", "node-c"}
	for ordinal := range *set.Spec.Replicas {
		name := naming.DataServer(fileServer, ordinal)
		for _, template := range set.Spec.VolumeClaimTemplates {
			bindClaim(namespace, template.Name+"-"+name, set, template)
		}
		runPod(namespace, name, withClaims(set, name), map[string]string{
			appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(int(ordinal)),
		}, nodes[int(ordinal)%len(nodes)], fmt.Sprintf("10.1.0.%d", ordinal+1))
	}
}

// withClaims is the pod template of a data server with its volumes, as the StatefulSet controller makes it.
func withClaims(set *appsv1.StatefulSet, pod string) corev1.PodTemplateSpec {
	template := *set.Spec.Template.DeepCopy()
	for _, claim := range set.Spec.VolumeClaimTemplates {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod},
		}})
	}
	return template
}

// runNamespaceServers plays the Deployment controller and the kubelet.
func runNamespaceServers(namespace, fileServer string) {
	GinkgoHelper()
	deployment := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers(fileServer))
	for i := range *deployment.Spec.Replicas {
		runPod(namespace, fmt.Sprintf("%s-%d", deployment.Name, i), deployment.Spec.Template, nil,
			[]string{"node-a", "node-b", "node-c"}[i%3], fmt.Sprintf("10.2.0.%d", i+1))
	}
}

// runEverything makes a FileServer Ready.
func runEverything(namespace, fileServer string) {
	GinkgoHelper()
	runNamespaceServers(namespace, fileServer)
	runDataServers(namespace, fileServer)
	Eventually(func() metav1.ConditionStatus {
		loadConfigurations(namespace, fileServer)
		return fileServerCondition(namespace, fileServer, v1alpha1.ConditionReady).Status
	}, timeout, "100ms").Should(Equal(metav1.ConditionTrue),
		func() string { return fileServerCondition(namespace, fileServer, v1alpha1.ConditionReady).Message })
}

// loadConfigurations plays the supervisors of all servers that have a pod.
func loadConfigurations(namespace, fileServer string) {
	GinkgoHelper()
	var list internalv1.DataServerList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))).To(Succeed())
	for i := range list.Items {
		loadConfiguration(&list.Items[i])
		serveExports(namespace, list.Items[i].Name)
	}
}

// exportsOf are the exports of a data server, by share.
func exportsOf(namespace, server string) map[string]*internalv1.ShareExport {
	GinkgoHelper()
	var list internalv1.ShareExportList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.DataServerLabel: server})).To(Succeed())
	exports := map[string]*internalv1.ShareExport{}
	for i := range list.Items {
		exports[list.Items[i].Spec.FileShareRef.Name] = &list.Items[i]
	}
	return exports
}

// serveExports plays the supervisor of a data server: it serves what is asked for, and is done with what is being deleted. It
// says beforehand which shares it has.
func serveExports(namespace, server string) {
	GinkgoHelper()
	letClaimsGo()
	exports := exportsOf(namespace, server)
	reportShares(namespace, server, slices.Sorted(maps.Keys(exports)))
	for _, export := range exports {
		done := internalv1.ExportServing
		if export.DeletionTimestamp != nil {
			done = internalv1.ExportRemoved
		}
		if observed := export.Status.ObservedGeneration; observed != nil && *observed == export.Generation &&
			conditions.IsTrue(export.Status.Conditions, done) {
			continue
		}
		before := export.DeepCopy()
		export.Status.ObservedGeneration, export.Status.ExportIDs = &export.Generation, []int32{1}
		conditions.Set(&export.Status.Conditions, export.Generation, time.Now(), conditions.True(done, v1alpha1.ReasonReady, "done"))
		Expect(client.IgnoreNotFound(admin.Status().Patch(ctx, export, client.MergeFrom(before)))).To(Succeed())
	}
}

// filled has a DataServer report how full its volume is.
func filled(namespace, name string, percent int64, fill v1alpha1.VolumeFill) {
	GinkgoHelper()
	server := exists(&internalv1.DataServer{}, namespace, name)
	before := server.DeepCopy()
	index, total, used, free := int32(0), int64(1<<30), int64(1<<30)*percent/100, int64(1<<30)*(100-percent)/100
	server.Status.Volumes = []internalv1.VolumeUsage{{Index: &index, TotalBytes: &total, UsedBytes: &used, FreeBytes: &free, Fill: fill}}
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

// reportShares has a DataServer say which shares its volumes have, beside those that it reported before.
func reportShares(namespace, name string, shares []string) {
	GinkgoHelper()
	server := &internalv1.DataServer{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, server); err != nil {
		return // It was made without one.
	}
	held, _ := sharesHeld.LoadOrStore(server.UID, &sync.Map{})
	var names []string
	for _, share := range shares {
		held.(*sync.Map).Store(naming.ShareDirectoryName(share), true)
	}
	held.(*sync.Map).Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	digest, _ := naming.DigestNames(names)
	if server.Status.Shares != nil && *server.Status.Shares == digest {
		return
	}
	before := server.DeepCopy()
	server.Status.Shares = &digest
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

// sharesHeld has the names of shares on the volumes of data servers, by the UID of the DataServer.
var sharesHeld sync.Map

func loadConfiguration(server *internalv1.DataServer) {
	GinkgoHelper()
	if got := server.Status.ObservedGeneration; got != nil && *got == server.Generation {
		return
	}
	before := server.DeepCopy()
	generation, index, total, used := server.Generation, int32(0), int64(1<<30), int64(1<<20)
	server.Status.ObservedGeneration = &generation
	server.Status.Volumes = []internalv1.VolumeUsage{{Index: &index, TotalBytes: &total, UsedBytes: &used}}
	conditions.Set(&server.Status.Conditions, generation, time.Now(),
		conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "ganesha answers"))
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

func bindClaim(namespace, name string, set *appsv1.StatefulSet, template corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
	maps.Copy(claim.Labels, template.Labels)
	maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, claim))).To(Succeed())
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	if claim.Status.Phase == corev1.ClaimBound {
		return
	}
	before := claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = claim.Spec.Resources.Requests
	Expect(admin.Status().Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
}

func runPod(namespace, name string, template corev1.PodTemplateSpec, extra map[string]string, node, ip string) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}, Spec: template.Spec}
	maps.Copy(pod.Labels, template.Labels)
	maps.Copy(pod.Labels, extra)
	pod.Spec.NodeName = node
	err := admin.Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = ip
	pod.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	Expect(admin.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// describeWrites is for the message of a failing test.
func describeWrites() string {
	if recent := lastWrites.Load(); recent != nil {
		return "the newest writes of the operator:\n" + strings.Join(*recent, "\n")
	}
	return "no writes"
}
