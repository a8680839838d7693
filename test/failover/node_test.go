package failover

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

const (
	// leaseSeconds and renewEvery are those of a kubelet (nodeLeaseDurationSeconds, and a quarter of it).
	leaseSeconds = 40
	renewEvery   = 10 * time.Second
	// statusEvery is how often a kubelet looks at its node; it writes an unchanged status every 5 min (nodeStatusReportFrequency).
	statusEvery = 5 * time.Minute
)

// node stands in for a machine with a kubelet.
type node struct {
	w     *world
	index int
	name  string
	bg    sync.WaitGroup

	mu     sync.Mutex
	works  bool // The kubelet does.
	bootID string
	ctx    context.Context
	stop   context.CancelFunc
	pods   map[types.UID]*pod
	given  int // Addresses, so far.
}

// newNode starts a machine: its kube-proxy, and what stands in for its kubelet.
func (w *world) newNode(i int) *node {
	w.t.Helper()
	n := &node{w: w, index: i, name: nodeName(i), pods: map[types.UID]*pod{}, given: 1}
	w.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{PodCIDR: podsOfNode(i), PodCIDRs: []string{podsOfNode(i)}},
	})
	proxy := []string{
		filepath.Join(w.assets, "kube-proxy"), "--kubeconfig=" + w.file("kubeconfig"), "--hostname-override=" + n.name, "--proxy-mode=iptables",
		"--cluster-cidr=" + allPods, "--iptables-min-sync-period=100ms",
		"--conntrack-max-per-core=0", "--v=1",
	}
	w.program("kube-proxy-"+n.name, nil, append([]string{"ip", "netns", "exec", n.name}, proxy...)...)
	w.t.Cleanup(n.end)
	n.boot()
	return n
}

// boot starts the kubelet of a machine that has just booted.
func (n *node) boot() {
	n.mu.Lock()
	n.works, n.bootID = true, string(uuid.NewUUID())
	n.ctx, n.stop = context.WithCancel(context.Background())
	ctx := n.ctx
	n.mu.Unlock()
	n.w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { return n.report(ctx, true) }))
	n.bg.Go(func() { n.renew(ctx) })
	list := cache.NewListWatchFromClient(n.w.kube.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", n.name))
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: list, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { n.sync(ctx, o.(*corev1.Pod)) },
			UpdateFunc: func(_, o any) { n.sync(ctx, o.(*corev1.Pod)) },
			DeleteFunc: func(o any) {
				if gone, is := o.(cache.DeletedFinalStateUnknown); is {
					o = gone.Obj
				}
				n.gone(o.(*corev1.Pod))
			},
		},
	})
	n.bg.Go(func() { controller.RunWithContext(ctx) })
}

// report writes the Node's status as a kubelet does.
func (n *node) report(ctx context.Context, booted bool) error {
	object, err := n.w.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	since := now
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && !booted {
			since = condition.LastTransitionTime
		}
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	object.Status.Capacity, object.Status.Allocatable = room, room
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress(n.index)}, {Type: corev1.NodeHostName, Address: n.name}}
	object.Status.NodeInfo.BootID, object.Status.NodeInfo.KubeletVersion = n.bootID, "v1.36.3"
	object.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "stood in for", LastHeartbeatTime: now, LastTransitionTime: since,
	}}
	_, err = n.w.kube.CoreV1().Nodes().UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

// renew renews the node's Lease until the node is lost.
func (n *node) renew(ctx context.Context) {
	leases := n.w.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	reported := time.Now()
	for ctx.Err() == nil {
		now := metav1.NowMicro()
		lease, err := leases.Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			_, err = leases.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: corev1.NamespaceNodeLease},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](leaseSeconds), RenewTime: &now},
			}, metav1.CreateOptions{})
		} else {
			lease.Spec.RenewTime = &now
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		if err == nil && time.Since(reported) > statusEvery {
			reported = time.Now()
			err = n.report(ctx, false)
		}
		wait := renewEvery
		if err != nil {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// lose cuts a node off from all at once: no packet comes in or goes out, its kubelet does nothing any more, and its processes stop where they are.
func (n *node) lose() error {
	err := command("ip link set %s down", n.name)
	n.mu.Lock()
	n.works = false
	n.stop()
	running := n.running()
	n.mu.Unlock()
	for _, p := range running {
		p.signalAll(syscall.SIGSTOP)
	}
	return err
}

// thaw has the processes of a lost node go on, with their network. Its kubelet does not: it would end those that are not in the API any more.
func (n *node) thaw() error {
	err := command("ip link set %s up", n.name)
	n.mu.Lock()
	running := n.running()
	n.mu.Unlock()
	for _, p := range running {
		p.signalAll(syscall.SIGCONT)
	}
	return err
}

// reboot ends all processes of a lost node and starts its kubelet, with another boot ID.
func (n *node) reboot() error {
	n.mu.Lock()
	running := n.running()
	n.pods = map[types.UID]*pod{}
	n.mu.Unlock()
	for _, p := range running {
		p.kill()
	}
	n.bg.Wait()
	if err := command("ip link set %s up", n.name); err != nil {
		return err
	}
	n.boot()
	return nil
}

// end is for the end of the test.
func (n *node) end() {
	n.mu.Lock()
	if n.stop != nil {
		n.stop()
	}
	running := n.running()
	n.works = false
	n.mu.Unlock()
	for _, p := range running {
		p.kill()
		n.w.showLog(p.log)
	}
	n.bg.Wait()
}

// running are the pods that have been started. The caller holds mu.
func (n *node) running() (all []*pod) {
	for _, p := range n.pods {
		all = append(all, p)
	}
	return all
}

// sync acts on a pod of the API as a kubelet does.
func (n *node) sync(ctx context.Context, object *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	p, known := n.pods[object.UID]
	if !known {
		n.given++
		p = &pod{
			node: n, object: object.DeepCopy(), address: podAddress(n.index, n.given), network: fmt.Sprintf("pod%d-%d", n.index, n.given),
			ended: make(chan struct{}),
		}
		n.pods[object.UID] = p
		if object.DeletionTimestamp == nil {
			n.bg.Go(func() { p.run(ctx) })
			return
		}
		close(p.ended) // It ended with the machine.
	}
	if object.DeletionTimestamp != nil && !p.ending {
		p.ending = true
		n.bg.Go(func() { p.terminate(ctx, object) })
	}
}

// gone ends a pod that is no more in the API.
func (n *node) gone(object *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, known := n.pods[object.UID]; known {
		delete(n.pods, object.UID)
		n.bg.Go(p.kill)
	}
}
