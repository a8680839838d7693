package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// pod stands in for a pod on a node: one container.
type pod struct {
	node             *node
	object           *corev1.Pod
	address, network string
	log              string
	ending           bool          // Of node.mu.
	ended            chan struct{} // Closed once no process is left for good.

	mu       sync.Mutex
	process  *exec.Cmd
	started  time.Time // The container's last start.
	stopped  bool      // No container is started any more.
	ready    bool
	restarts int32
}

// run starts the pod's container, again when it ends, and reports what a kubelet reports.
func (p *pod) run(ctx context.Context) {
	defer close(p.ended)
	folder := filepath.Join(p.node.w.scratch, p.network)
	p.log = folder + ".log"
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = layPod(p.node.index, p.network, p.address)
	}
	if err == nil {
		err = p.prepare(ctx, folder)
	}
	if err != nil && !p.isStopped() && ctx.Err() == nil {
		p.node.w.t.Errorf("pod %s on %s does not start: %v", p.object.Name, p.node.name, err)
	}
	if err != nil {
		return
	}
	probing, stop := context.WithCancel(ctx)
	defer stop()
	p.node.bg.Go(func() { p.probe(probing) })
	p.node.bg.Go(func() { p.refresh(probing, folder) })
	for {
		process, err := p.start(folder)
		if err != nil || process == nil {
			return
		}
		p.report(ctx)
		_ = process.Wait()
		if p.isStopped() || ctx.Err() != nil {
			return
		}
		p.node.w.t.Logf("%s: the container of pod %s on %s ended: %s", time.Now().Format(time.TimeOnly), p.object.Name, p.node.name, process.ProcessState)
		// A kubelet starts it again at once, and later with pauses.
		p.mu.Lock()
		p.ready = false
		p.restarts++
		wait := time.Duration(min(p.restarts-1, 10)) * time.Second
		p.mu.Unlock()
		p.report(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// start starts the container's process; none if the pod ends.
func (p *pod) start(folder string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command("ip", "netns", "exec", p.network, self)
	process.Env = append(os.Environ(), envContainer+"="+folder)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC, Setpgid: true,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, nil
	}
	p.started = time.Now()
	p.process = process
	return process, process.Start()
}

func (p *pod) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// terminate ends the pod in order, and tells the API that it has ended.
func (p *pod) terminate(ctx context.Context, object *corev1.Pod) {
	p.signal(syscall.SIGTERM, true)
	select {
	case <-p.ended:
	case <-time.After(time.Duration(ptr.Deref(object.DeletionGracePeriodSeconds, 30)) * time.Second):
	case <-ctx.Done():
		return
	}
	p.kill()
	if ctx.Err() == nil {
		_ = p.node.w.kube.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(object.UID)),
		})
	}
}

// signal sends a signal to the container's first process.
func (p *pod) signal(signal syscall.Signal, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = p.stopped || last
	if p.process != nil && p.process.Process != nil {
		_ = p.process.Process.Signal(signal)
	}
}

// kill ends all processes of the pod, with its first one.
func (p *pod) kill() {
	p.signal(syscall.SIGKILL, true)
	p.mu.Lock()
	is := p.process != nil
	p.mu.Unlock()
	if is {
		<-p.ended
	}
	_ = command("ip netns delete %s", p.network)
}

// signalAll sends a signal to all processes of the pod: those of its namespace of processes.
func (p *pod) signalAll(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || p.process.Process == nil {
		return
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.process.Process.Pid))
	if err != nil {
		return
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if of, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", id)); err == nil && of == own {
			_ = syscall.Kill(id, signal)
		}
	}
}

// report writes the pod's status as a kubelet does.
func (p *pod) report(ctx context.Context) {
	p.mu.Lock()
	is := func(yes bool) corev1.ConditionStatus {
		if yes {
			return corev1.ConditionTrue
		}
		return corev1.ConditionFalse
	}
	now := metav1.Now()
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: is(p.ready), LastTransitionTime: now},
		{Type: corev1.PodReady, Status: is(p.ready), LastTransitionTime: now},
	}
	spec := &p.object.Spec.Containers[0]
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: conditions, StartTime: ptr.To(metav1.NewTime(p.started)),
		HostIP: nodeAddress(p.node.index), HostIPs: []corev1.HostIP{{IP: nodeAddress(p.node.index)}},
		PodIP: p.address, PodIPs: []corev1.PodIP{{IP: p.address}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: spec.Name, Image: spec.Image, ImageID: spec.Image, ContainerID: "stand-in://" + p.network, Ready: p.ready, RestartCount: p.restarts,
			Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)}},
		}},
	}
	p.mu.Unlock()
	patch, err := statusPatch(p.object.UID, &status)
	if err == nil {
		_, _ = p.node.w.kube.CoreV1().Pods(p.object.Namespace).Patch(ctx, p.object.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
}

// statusPatch is a strategic merge patch. Addresses would be added to those that a pod had before its node booted, where clients would be led to.
func statusPatch(uid types.UID, status *corev1.PodStatus) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	for _, list := range []string{"podIPs", "hostIPs"} {
		fields[list] = append([]any{map[string]any{"$patch": "replace"}}, fields[list].([]any)...)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
}

// probe asks the pod whether it is ready, from its node, as its specification wants it.
func (p *pod) probe(ctx context.Context) {
	spec := p.object.Spec.Containers[0].ReadinessProbe
	if spec == nil { // Ready once it runs.
		p.mu.Lock()
		p.ready = true
		p.mu.Unlock()
		return
	}
	port := spec.HTTPGet.Port.IntValue()
	for _, named := range p.object.Spec.Containers[0].Ports {
		if named.Name == spec.HTTPGet.Port.StrVal {
			port = int(named.ContainerPort)
		}
	}
	url := "http://" + net.JoinHostPort(p.address, strconv.Itoa(port)) + spec.HTTPGet.Path
	client := &http.Client{Timeout: time.Duration(spec.TimeoutSeconds) * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dialFrom(ctx, p.node.index, address)
		},
	}}
	failures := int32(0)
	for ticks := time.NewTicker(time.Duration(spec.PeriodSeconds) * time.Second); ctx.Err() == nil; {
		good := false
		if response, err := client.Get(url); err == nil {
			_ = response.Body.Close()
			good = response.StatusCode < http.StatusBadRequest
		}
		if good {
			failures = 0
		} else {
			failures++
		}
		p.mu.Lock()
		before := p.ready
		p.ready = p.process != nil && (good || before && failures < max(spec.FailureThreshold, 1))
		changed := p.ready != before
		p.mu.Unlock()
		if changed && ctx.Err() == nil {
			p.report(ctx)
		}
		select {
		case <-ctx.Done():
			ticks.Stop()
		case <-ticks.C:
		}
	}
}
