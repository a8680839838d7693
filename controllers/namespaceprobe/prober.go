package namespaceprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/podhttp"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// FieldManager is the name of the prober where events and logs name their source.
const FieldManager = "howdah-namespaceprobe"

const (
	// probeEvery is the time between two rounds, probeTimeout is for one answer, atOnce how many pods are asked at a time.
	probeEvery   = 2 * time.Second
	probeTimeout = 1500 * time.Millisecond
	atOnce       = 32
	// evictTimeout ends the client's own retries, which take minutes while a PodDisruptionBudget refuses. The next round tries again.
	evictTimeout = 3 * time.Second
)

// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create

// Prober asks the namespace servers of all FileServers whether they answer, and evicts those that do not. Evictions respect the
// PodDisruptionBudget. It holds no lock: Start is its only goroutine. All fields but Ask are required.
type Prober struct {
	Client client.Client
	Events events.EventRecorder
	Clock  clock.WithTicker
	// Ask reports whether a pod answers; nil means Answers.
	Ask func(ctx context.Context, pod *corev1.Pod) bool

	silent  map[types.UID]time.Time
	evicted map[types.NamespacedName]history
}

// Start probes until the context ends. Only the elected operator runs it.
func (p *Prober) Start(ctx context.Context) error {
	if p.Ask == nil {
		p.Ask = Answers
	}
	p.silent, p.evicted = map[types.UID]time.Time{}, map[types.NamespacedName]history{}
	ticker := p.Clock.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		if err := p.round(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "probing namespace servers")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// round asks each namespace server once, and evicts at most one of each FileServer.
func (p *Prober) round(ctx context.Context) error {
	var list corev1.PodList
	if err := p.Client.List(ctx, &list, client.MatchingLabels{v1alpha1.ComponentLabel: naming.ComponentNamespaceServer}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	pods := slices.DeleteFunc(slices.Clone(list.Items), func(pod corev1.Pod) bool { return !podhttp.IsEndpoint(&pod) })
	p.note(pods, p.ask(ctx, pods))
	byFileServer := map[types.NamespacedName][]corev1.Pod{}
	for i := range pods {
		key := types.NamespacedName{Namespace: pods[i].Namespace, Name: pods[i].Labels[v1alpha1.FileServerLabel]}
		byFileServer[key] = append(byFileServer[key], pods[i])
	}
	for key, before := range p.evicted {
		if byFileServer[key] == nil && p.Clock.Since(before.last) >= forgetAfter {
			delete(p.evicted, key)
		}
	}
	for key, pods := range byFileServer {
		servers := make([]server, len(pods))
		for i := range pods {
			servers[i] = server{pods[i].Name, p.silent[pods[i].UID]}
		}
		name, found := choose(p.Clock.Now(), servers, p.evicted[key])
		if !found {
			continue
		}
		at := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name })
		if err := p.evict(ctx, key, &pods[at]); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "evicting a namespace server that does not answer", "pod", name, "fileServer", key)
		}
	}
	return nil
}

// ask reports for each pod whether it answers.
func (p *Prober) ask(ctx context.Context, pods []corev1.Pod) []bool {
	answered := make([]bool, len(pods))
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	for i := range pods {
		asking.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			answered[i] = p.Ask(ctx, &pods[i])
			return nil
		})
	}
	_ = asking.Wait() // It never fails.
	return answered
}

// note keeps since when each pod does not answer, and forgets pods that are gone.
func (p *Prober) note(pods []corev1.Pod, answered []bool) {
	silent := map[types.UID]time.Time{}
	for i := range pods {
		if answered[i] {
			continue
		}
		since, known := p.silent[pods[i].UID]
		if !known {
			since = p.Clock.Now()
		}
		silent[pods[i].UID] = since
	}
	p.silent = silent
}

func (p *Prober) evict(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) error {
	var fileServer v1alpha1.FileServer
	if err := p.Client.Get(ctx, key, &fileServer); err != nil {
		return client.IgnoreNotFound(err)
	}
	if conditions.IsPaused(&fileServer) {
		return nil
	}
	silence := p.Clock.Since(p.silent[pod.UID]).Round(time.Second)
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	err := p.Client.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, eviction)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // It is gone, or another pod has its name.
	case err != nil:
		return fmt.Errorf("pod %s on node %s: %w", pod.Name, pod.Spec.NodeName, err)
	}
	p.evicted[key] = p.evicted[key].with(p.Clock.Now())
	p.Events.Eventf(&fileServer, nil, corev1.EventTypeWarning, "NamespaceServerEvicted", "Evict",
		"namespace server %s on node %s has not answered for %s, and others answer: it is evicted, so that clients are sent to another one", pod.Name, pod.Spec.NodeName, silence)
	return nil
}

// Answers reports whether anything came back from the pod's address: also a refused connection shows that its node works.
func Answers(ctx context.Context, pod *corev1.Pod) bool {
	response, err := podhttp.Get(ctx, pod, serverpod.HealthPath)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = response.Body.Close()
	return true
}
