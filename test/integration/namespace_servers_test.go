package integration

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/builders"
)

// answerConnections plays a namespace server that is asked for its connections.
func answerConnections(address string, limit int32) *atomic.Int32 {
	GinkgoHelper()
	used := &atomic.Int32{}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(v1alpha1.ManagerPort)))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(serverpod.Connections{Used: used.Load(), Limit: limit})
	})}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return used
}

var _ = Describe("The connections of namespace servers", func() {
	It("are in the FileServer's status, and 80 % of them are a warning", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "training").Replicas(1).Build())
		deployment := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("training"))
		first, second := answerConnections("127.88.1.1", 100), answerConnections("127.88.1.2", 100)
		first.Store(10)
		connections := func() string {
			text, err := json.Marshal(exists(&v1alpha1.FileServer{}, namespace, "training").Status.NamespaceServers)
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}

		By("a namespace server being ready")
		runPod(namespace, deployment.Name+"-0", deployment.Spec.Template, nil, "node-a", "127.88.1.1")
		Eventually(connections, timeout, "50ms").Should(MatchJSON(`{"connections":{"used":10,"limit":100}}`))

		By("another one being ready, which is asked together with the first")
		first.Store(85)
		second.Store(5)
		runPod(namespace, deployment.Name+"-1", deployment.Spec.Template, nil, "node-b", "127.88.1.2")
		runEverything(namespace, "training")
		Expect(expectCondition(namespace, "training", v1alpha1.FileServerNamespaceServersAvailable, metav1.ConditionTrue, v1alpha1.ReasonConnectionsNearLimit)).
			To(ContainSubstring("used of training-namespace-0 (100): raise the memory limit in spec.namespaceServers.resources"))
		Expect(connections()).To(MatchJSON(`{"connections":{"used":90,"limit":200}}`))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnectionsNearLimit)
	})
})

var _ = Describe("A namespace server that does not answer", func() {
	It("is evicted while another one answers, and an event of the FileServer says so", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "training").Replicas(1).Build())
		deployment := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("training"))
		answerConnections("127.88.2.1", 100)
		silent, err := net.Listen("tcp", net.JoinHostPort("127.88.2.2", strconv.Itoa(v1alpha1.ManagerPort))) // Nothing reads what comes in.
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		const first, second = "training-namespace-0", "training-namespace-1"
		runPod(namespace, first, deployment.Spec.Template, nil, "node-a", "127.88.2.1")
		runPod(namespace, second, deployment.Spec.Template, nil, "node-b", "127.88.2.2")
		// The disruption controller does not run here.
		budget := exists(&policyv1.PodDisruptionBudget{}, namespace, deployment.Name)
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
		Expect(admin.Status().Update(ctx, budget)).To(Succeed())
		Eventually(func() bool {
			pod := &corev1.Pod{}
			err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: second}, pod)
			return apierrors.IsNotFound(err) || err == nil && pod.DeletionTimestamp != nil
		}, timeout, "100ms").Should(BeTrue(), "no eviction of "+second)
		Eventually(func() []string { return eventsOf(namespace, "NamespaceServerEvicted") }, timeout).Should(ConsistOf(And(ContainSubstring(second), ContainSubstring("node-b"))))
		Expect(exists(&corev1.Pod{}, namespace, first).DeletionTimestamp).To(BeNil())
	})
})
