package failover

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/spare"
)

const (
	// servedElsewhereGoal is how long the directories of a lost data server may wait, from the cut, and othersGoal those of the others: Ceph
	// is not lost, so nothing keeps them.
	servedElsewhereGoal = 20 * time.Second
	othersGoal          = time.Second
	// before is how long clients work before a node is lost.
	before = 5 * time.Second
	// served bounds a failover that does not come to its end.
	served = 3 * time.Minute
	// coolDown is the least time between two failovers of one data server, for the first and for the second.
	coolDown = 5*time.Minute + 10*time.Second
)

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// In each round a node is lost with its data server, and no one does anything. In every other round it had a client, too, with a file open there: the
// enemy, which goes on with the lost pod. Ganesha waits for it in grace as long as for any client.
func TestALostNodesDataServerIsServedElsewhere(t *testing.T) {
	rounds := 5
	if text := os.Getenv("HOWDAH_FAILOVER_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("HOWDAH_FAILOVER_ROUNDS=%q: want the number of rounds, at least 1", text)
		}
	}
	t.Log("FIGURE pods start without pulling an image and without a sandbox: a kubelet adds its seconds to each figure")
	w := newWorld(t)
	began := time.Now()
	w.makeFileServer()
	t.Logf("all is Ready after %s", seconds(time.Since(began)))
	last := map[string]time.Time{}
	for n := range rounds {
		w.round(n, last)
	}
}

// next chooses the data server that was lost longest ago, or never, and is alone on its node.
func (w *world) next(last map[string]time.Time) *corev1.Pod {
	t := w.t
	t.Helper()
	for {
		list := &corev1.PodList{}
		w.must(w.api.List(t.Context(), list))
		var all []*corev1.Pod
		for i := range list.Items {
			if list.Items[i].Labels[v1alpha1.ComponentLabel] == naming.ComponentDataServer {
				all = append(all, &list.Items[i])
			}
		}
		all = slices.DeleteFunc(slices.Clone(all), func(p *corev1.Pod) bool {
			return slices.ContainsFunc(all, func(other *corev1.Pod) bool { return other != p && other.Spec.NodeName == p.Spec.NodeName })
		})
		if len(all) == 0 {
			t.Fatal("no data server is alone on its node")
		}
		chosen := slices.MinFunc(all, func(a, b *corev1.Pod) int { return last[a.Name].Compare(last[b.Name]) })
		if wait := time.Until(last[chosen.Name].Add(coolDown)); wait > 0 {
			t.Logf("%s was lost a short time ago: waiting %s", chosen.Name, wait.Round(time.Second))
			time.Sleep(wait)
			continue
		}
		return chosen
	}
}

// round loses a node and judges what its clients waited.
func (w *world) round(n int, last map[string]time.Time) {
	t := w.t
	pod := w.next(last)
	lost := w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == pod.Spec.NodeName })]
	others := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n == lost })
	besides := w.besides(lost.name, pod.Name)
	addresses, loads := map[string]string{}, map[string]*load{}
	owned := w.owned()
	for i := range dataServers {
		server := &internalv1.DataServer{}
		name := naming.DataServer(fileServer, int32(i))
		w.get(server, name)
		addresses[name] = net.JoinHostPort(server.Spec.Address, strconv.Itoa(int(v1alpha1.NFSPort)))
		loads[name] = startLoad(fmt.Sprintf("%s %d", name, n), others[i%len(others)].index, addresses[name], pathOf(owned[name][n%len(owned[name])]))
	}
	e := &enemy{w: w, server: loads[pod.Name], next: newClient("client beside the enemy", others[0].index, addresses[pod.Name])}
	if n%2 == 1 {
		besides += ", a client"
		e.come(pod, lost)
	}
	time.Sleep(before)
	share, err := spare.Share(time.Second)
	w.must(err)
	usage, err := spare.Now()
	w.must(err)

	watching, stop := context.WithCancel(t.Context())
	defer stop()
	steps := w.watchSteps(watching, pod.Name, pod.UID)
	e.writeLate()
	cut := time.Now()
	w.must(lost.lose())
	last[pod.Name] = cut
	w.eventually("its data server serves elsewhere, and all clients work", served, func(context.Context) string {
		now := time.Now()
		if !loads[pod.Name].worked(steps.when(graceEnd)) {
			return "after " + seconds(now.Sub(cut)) + ": " + steps.times(cut)
		}
		return ""
	})
	now, err := spare.Now()
	w.must(err)
	use := now.Since(usage)
	steps.mark(started, w.startOf(steps.next))
	t.Logf("FIGURE round %d: %s on %s with %s. From the cut: %s; idle %.0f %%, stolen %.0f %%", n+1, pod.Name, lost.name, besides, steps.times(cut), 100*use.Idle, 100*use.Stolen)

	e.strike(lost)
	for name, l := range loads {
		faults := l.end()
		for _, try := range l.writer.tries {
			t.Logf("connections of the writer of %s that failed, with the cut at %s: %s", name, cut.Format(clock), try)
		}
		faults = append(faults, l.check(t.Context(), others[0].index, addresses[name])...)
		for _, fault := range faults {
			t.Errorf("clients of %s: %s", name, fault)
		}
		goal, what := othersGoal, "others: "+name
		if name == pod.Name {
			goal, what = servedElsewhereGoal, "its directory"
		}
		for _, kind := range []string{writes, opens} {
			verdict, failed := spare.Judge(l.longest[kind], goal, 1, spare.Room{Share: share, Stolen: use.Stolen})
			t.Logf("FIGURE round %d, %s, longest %s: %s; %d done, %d faults", n+1, what, kind, verdict, l.count, len(faults))
			if failed {
				t.Errorf("longest %s, %s: %s", kind, what, verdict)
			}
		}
	}
	w.must(lost.reboot())
	back := time.Now()
	w.settle()
	t.Logf("all is Ready again %s after the node is back", seconds(time.Since(back)))
}

// startOf is when the container of a pod was started.
func (w *world) startOf(uid any) time.Time {
	for _, n := range w.nodes {
		n.mu.Lock()
		for _, p := range n.pods {
			if any(p.object.UID) == uid {
				p.mu.Lock()
				at := p.started
				p.mu.Unlock()
				n.mu.Unlock()
				return at
			}
		}
		n.mu.Unlock()
	}
	return time.Time{}
}

func (s *steps) mark(step string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.IsZero() {
		s.at[step] = at
	}
}
