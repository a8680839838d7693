package fileserver

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
)

// What a failover is decided on is read past the cache, which may be minutes behind: a data server may have answered for long by then, with
// another pod. Nothing is read while all data servers answer.

// exact is how exact times in the API are. Clocks that differ by less count as equal.
const exact = 2 * time.Second

// readLost reads the data servers that do not answer and their pods again, and who reports that they do not.
func (o *observed) readLost(ctx context.Context, live client.Reader) error {
	if !o.mayFailOver || !asksForFailover(o.fileServer) {
		return nil
	}
	if !o.isSomeSilent() {
		return nil
	}
	if err := o.readAgain(ctx, live); err != nil || !o.isSomeSilent() {
		return err
	}
	lease, err := readLease(ctx, live, client.ObjectKey{Namespace: o.fileServer.Namespace, Name: naming.NamespaceServers(o.fileServer.Name)})
	if err != nil || lease == nil {
		return err
	}
	o.leader = &leader{}
	if lease.Spec.HolderIdentity != nil {
		o.leader.name = *lease.Spec.HolderIdentity
	}
	o.leader.renewed, o.leader.ahead = renewalOf(lease)
	return nil
}

func (o *observed) isSomeSilent() bool {
	for name := range o.dataServers {
		if o.dataServers[name].Status.Unreachable.SeenBy != "" {
			return true
		}
	}
	return false
}

// readAgain reads all of them at once: after an outage of the storage there may be many.
func (o *observed) readAgain(ctx context.Context, live client.Reader) error {
	in, of := client.InNamespace(o.fileServer.Namespace), client.MatchingLabels{v1alpha1.FileServerLabel: o.fileServer.Name}
	var servers internalv1.DataServerList
	if err := live.List(ctx, &servers, in, of); err != nil {
		return fmt.Errorf("the DataServers: %w", err)
	}
	now := byName(servers.Items, func(s *internalv1.DataServer) string { return s.Name })
	var list corev1.PodList
	if err := live.List(ctx, &list, in, client.MatchingLabels(naming.SelectDataServers(o.fileServer.Name))); err != nil {
		return fmt.Errorf("the pods: %w", err)
	}
	pods := byName(o.ofThis(list.Items), func(p *corev1.Pod) string { return p.Name })
	for name, known := range o.dataServers {
		if known.Status.Unreachable.SeenBy == "" {
			continue
		}
		known.Status = now[name].Status
		o.dataServers[name] = known
		if pod, exists := pods[name]; exists {
			o.pods[name] = pod
		} else {
			delete(o.pods, name)
		}
	}
	return nil
}

// leader is the namespace server that reports which data servers do not answer.
type leader struct {
	name    string
	renewed time.Time
	// ahead is how far its clock is ahead of the API server's; below 0, how far it is behind.
	ahead time.Duration
}

// reports is nil if it is not known who reports.
func (l *leader) reports() *failover.Leader {
	if l == nil {
		return nil
	}
	return &failover.Leader{Name: l.name, Renewed: l.renewed}
}

// corrected is since when a data server does not answer, by the API server's clock. The report has the time of its reporter's.
func (l *leader) corrected(unreachable internalv1.Unreachable) time.Time {
	since := unreachable.SinceTime.Time
	if l == nil || l.name != unreachable.SeenBy || l.ahead.Abs() <= exact {
		return since
	}
	return since.Add(-l.ahead)
}

// readLeases reads when kubelets last renewed their Leases, of the nodes with a data server that does not answer, and of lost nodes.
func (o *observed) readLeases(ctx context.Context, live client.Reader) error {
	o.renewed, o.clocksAhead = map[string]time.Time{}, map[string]time.Duration{}
	if !o.mayFailOver || failsOverByPower(o.fileServer) {
		return nil // Nor may it read them; and where the machine must be off, a Lease is no evidence.
	}
	nodes := map[string]bool{}
	if asksForFailover(o.fileServer) {
		for name := range o.dataServers {
			if pod := o.podOf(name); pod != nil && pod.Spec.NodeName != "" && o.dataServers[name].Status.Unreachable.SeenBy != "" {
				nodes[pod.Spec.NodeName] = true
			}
		}
	}
	if o.steward != nil {
		for i := range o.steward.Spec.Fences {
			nodes[o.steward.Spec.Fences[i].NodeName] = true
		}
	}
	for node := range nodes {
		lease, err := readLease(ctx, live, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node})
		if err != nil {
			return err
		}
		if lease != nil {
			o.renewed[node], o.clocksAhead[node] = renewalOf(lease)
		}
	}
	return nil
}

// readLease is nil if there is none.
func readLease(ctx context.Context, live client.Reader, key client.ObjectKey) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	err := live.Get(ctx, key, &lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the Lease %s: %w", key, err)
	}
	return &lease, nil
}

// renewalOf is when a Lease was renewed last by the API server's clock, and how far that of its holder is ahead. The API server writes down when
// the field was changed. The holder's own time is more exact, and counts if the two agree.
func renewalOf(lease *coordinationv1.Lease) (renewed time.Time, ahead time.Duration) {
	if lease.Spec.RenewTime == nil {
		return time.Time{}, 0
	}
	own := lease.Spec.RenewTime.Time
	var written time.Time
	for _, entry := range lease.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.FieldsV1 != nil && entry.Time.After(written) &&
			bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:renewTime"`)) {
			written = entry.Time.Time
		}
	}
	if written.IsZero() {
		return own, 0
	}
	ahead = own.Sub(written)
	if ahead.Abs() <= exact {
		return own, ahead
	}
	return written, ahead
}

// maxLostAddresses is the schema's limit.
const maxLostAddresses = 64

// lostNodeAddresses are, by data server, the addresses of the node from which a failover took it, until clients have had a grace period since. They are
// known from the pass on that deletes the lost pod: the next pod's ganesha takes them when it starts.
func (o *observed) lostNodeAddresses() map[string][]netip.Addr {
	lost := map[string][]netip.Addr{}
	for name := range o.dataServers {
		record := o.lastFailover(name)
		isOver := !o.isFenced(&record) || record.StoppedTime != nil || !o.areClientsLost(&record) ||
			record.ServingTime != nil && !conditions.IsFalse(o.dataServers[name].Status.Conditions, internalv1.GraceEnded)
		at := slices.IndexFunc(o.nodes, func(node corev1.Node) bool { return node.Name == record.NodeName })
		if isOver || at < 0 {
			continue
		}
		addresses := desired.NodeAddresses(o.nodes[at : at+1])
		for _, text := range record.NetworkAddresses {
			if address, err := netip.ParseAddr(text); err == nil && !slices.Contains(addresses, address) {
				addresses = append(addresses, address)
			}
		}
		lost[name] = addresses[:min(len(addresses), maxLostAddresses)]
	}
	return lost
}

// isFenced tells whether the data server of a failover can't write any more. The steward's answer is in the status only after the pass that deletes the pod.
func (o *observed) isFenced(record *v1alpha1.ServerFailover) bool {
	return record.FencedTime != nil || o.steward != nil && record.PodUID != "" && slices.ContainsFunc(fencesOf(o.steward), func(fence failover.Fence) bool {
		return fence.PodUID == record.PodUID && !fence.Fenced.IsZero()
	})
}

// areClientsLost tells whether clients on the node from which a failover took a data server are lost with it. A node whose kubelet works, or that
// only the storage refuses, may have clients that wait for the data server.
func (o *observed) areClientsLost(record *v1alpha1.ServerFailover) bool {
	switch {
	case record.Evidence == v1alpha1.FailoverEvidenceNetworkFence:
		return false
	case failsOverByPower(o.fileServer):
		return true
	case o.steward == nil:
		return false
	}
	isFenced := slices.ContainsFunc(o.steward.Spec.Fences, func(f internalv1.PodFence) bool { return f.PodUID == record.PodUID })
	return isFenced && record.SinceTime != nil && o.renewed[record.NodeName].Sub(record.SinceTime.Time) <= exact
}
