package fileserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/podhttp"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// askEvery is how often namespace servers are asked for their connections, as old as the figures in a status may be.
	askEvery = time.Minute
	// askTimeout is for one of them, askAtOnce how many are asked at a time.
	askTimeout = 2 * time.Second
	askAtOnce  = 16
	// maxAnswer bounds an answer: whatever listens there, the operator's memory is its own.
	maxAnswer = 1 << 10
)

// namespaceServers knows the number of connections of the namespace servers. They may write no object of their own, so
// the operator asks them over HTTP. A FileServer gets a pass only if there is something new to report.
type namespaceServers struct {
	// pods lists the namespace servers of all FileServers.
	pods  func(ctx context.Context) ([]corev1.Pod, error)
	ask   func(ctx context.Context, pod *corev1.Pod) (serverpod.Connections, error)
	clock clock.WithTicker
	// changed gets the FileServers whose figures changed.
	changed chan event.GenericEvent
	// unasked is a request not to wait for the next round: there is a namespace server that was not asked yet.
	unasked chan struct{}

	mu sync.Mutex
	// seen is the last answer of each pod; nil for a pod that was asked and has not answered yet. It is asked again in
	// the next round. lastReported is what each FileServer was last asked to report.
	seen         map[types.UID]*serverpod.Connections
	lastReported map[types.NamespacedName]connectionUse
}

// connectionUse is the number of connections of all namespace servers of a FileServer together.
type connectionUse struct {
	used, limit int32
	// full are the servers near their limit, with the limit. The number of connections is left out, because the message
	// would change all the time.
	full []string
}

func newNamespaceServers(pods client.Reader, c clock.WithTicker) *namespaceServers {
	return &namespaceServers{
		pods: func(ctx context.Context) ([]corev1.Pod, error) {
			var list corev1.PodList
			err := pods.List(ctx, &list, client.MatchingLabels{v1alpha1.ComponentLabel: naming.ComponentNamespaceServer}, client.UnsafeDisableDeepCopy)
			return list.Items, err
		},
		ask: askConnections, clock: c, changed: make(chan event.GenericEvent, 1), unasked: make(chan struct{}, 1),
		seen: map[types.UID]*serverpod.Connections{}, lastReported: map[types.NamespacedName]connectionUse{},
	}
}

// of returns the connections of a FileServer's ready namespace servers; known is false if none has answered yet.
func (f *namespaceServers) of(pods []corev1.Pod) (use connectionUse, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range pods {
		pod := &pods[i]
		if !podhttp.IsEndpoint(pod) {
			continue
		}
		answer, ok := f.seen[pod.UID]
		if !ok {
			select {
			case f.unasked <- struct{}{}:
			default: // It is asked for already.
			}
			continue
		}
		if answer == nil {
			continue
		}
		known = true
		use.used += answer.Used
		use.limit += answer.Limit
		if v1alpha1.ManyConnections(answer.Used, answer.Limit) {
			use.full = append(use.full, fmt.Sprintf("%s (%d)", pod.Name, answer.Limit))
		}
	}
	return use, known
}

// Start asks until the context ends.
func (f *namespaceServers) Start(ctx context.Context) error {
	ticker := f.clock.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		if err := f.round(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "asking namespace servers for their connections")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-f.unasked:
		}
	}
}

// round asks every namespace server once.
func (f *namespaceServers) round(ctx context.Context) error {
	pods, err := f.pods(ctx)
	if err != nil {
		return err
	}
	answers := make([]*serverpod.Connections, len(pods))
	var asking errgroup.Group
	asking.SetLimit(askAtOnce)
	for i := range pods {
		if !podhttp.IsEndpoint(&pods[i]) {
			continue
		}
		asking.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			// If a server does not answer, its last answer still counts. Its readiness shows whether it works.
			if answer, err := f.ask(ctx, &pods[i]); err == nil {
				answers[i] = &answer
			}
			return nil
		})
	}
	_ = asking.Wait()
	for _, name := range f.take(pods, answers) {
		change := event.GenericEvent{Object: &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}}
		select {
		case f.changed <- change:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// take stores the answers, forgets pods that are gone, and returns the FileServers with something new to report.
func (f *namespaceServers) take(pods []corev1.Pod, answers []*serverpod.Connections) (changed []types.NamespacedName) {
	servers := map[types.NamespacedName][]corev1.Pod{}
	f.mu.Lock()
	seen := make(map[types.UID]*serverpod.Connections, len(pods))
	for i := range pods {
		pod := &pods[i]
		switch {
		case answers[i] != nil:
			seen[pod.UID] = answers[i]
		case podhttp.IsEndpoint(pod) || f.seen[pod.UID] != nil:
			seen[pod.UID] = f.seen[pod.UID]
		}
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.FileServerLabel]}
		servers[name] = append(servers[name], *pod)
	}
	f.seen = seen
	f.mu.Unlock()
	lastReported := make(map[types.NamespacedName]connectionUse, len(servers))
	for name, pods := range servers {
		use, known := f.of(pods)
		if !known {
			continue
		}
		before, was := f.lastReported[name]
		if before.limit == use.limit {
			use.used = v1alpha1.CoarseConnections(before.used, use.used, use.limit)
		}
		lastReported[name] = use
		if !was || before.used != use.used || before.limit != use.limit || len(before.full) != len(use.full) {
			changed = append(changed, name)
		}
	}
	f.lastReported = lastReported
	return changed
}

func askConnections(ctx context.Context, pod *corev1.Pod) (answer serverpod.Connections, err error) {
	response, err := podhttp.Get(ctx, pod, serverpod.ConnectionsPath)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s: %s", response.Request.URL, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("%s: %w", response.Request.URL, err)
	}
	if answer.Used < 0 || answer.Limit < 1 {
		return answer, fmt.Errorf("%s: %d of %d connections", response.Request.URL, answer.Used, answer.Limit)
	}
	return answer, nil
}
