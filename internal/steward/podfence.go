package steward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
)

const (
	// podFenceFor is how long the clients of a lost pod stay in Ceph's blocklist: the pod may be frozen for long with data that it has
	// not written. No other client gets the same address, because it has a unique nonce. Ceph does not prolong an entry that exists.
	podFenceFor = 30 * 24 * time.Hour
	// lookAtPodFence is how often the blocklist is looked at while the request exists. The metadata servers block the clients that had
	// the shares, while the next pod mounts these, but for an hour only. They are blocked again when that ends.
	lookAtPodFence = 10 * time.Minute
	// firstLook is when it is looked at first: the next pod has mounted most shares by then.
	firstLook = time.Minute
	// retryLook is the wait after a look that failed.
	retryLook = 30 * time.Second
	// maxAdded limits the entries that are made at once. Each takes up to a second, and others wait meanwhile.
	maxAdded = 16
	// maxPodClients is the schema's limit of a pod's clients.
	maxPodClients = 8192
	// maxReported is how many clients of all fenced pods a status has. The API server takes no object of more than 1.5 MB, and a status that it does not
	// take would keep the answer to the next request from the operator.
	maxReported = 12_000
	// retryPodFence is the wait after a failure. Clients wait meanwhile.
	retryPodFence = time.Second
)

// reportable are the answers as the status has them: the newest first, with all of their clients as long as there is room, and else with one. The steward
// itself keeps all, and another one finds the others by the host of the one.
func reportable(answers map[string]internalv1.PodFenceAnswer) []internalv1.PodFenceAnswer {
	reported := slices.SortedFunc(maps.Values(answers), func(a, b internalv1.PodFenceAnswer) int {
		return cmp.Or(timeOf(b.RequestTime).Compare(timeOf(a.RequestTime)), strings.Compare(a.PodUID, b.PodUID))
	})
	left := maxReported
	for i := range reported {
		addresses := reported[i].Addresses
		reported[i].Addresses = addresses[:min(len(addresses), max(left, 1))]
		left -= len(reported[i].Addresses)
	}
	slices.SortFunc(reported, func(a, b internalv1.PodFenceAnswer) int { return strings.Compare(a.PodUID, b.PodUID) })
	return reported
}

func timeOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

// hasPodFences reports whether the operator has a request that is due.
func (f *fencer) hasPodFences(steward *internalv1.Steward, now time.Time) bool {
	due, _ := f.duePodFences(steward, now)
	return len(due) > 0 || len(f.podAnswers(steward)) != len(steward.Status.Fences)
}

// duePodFences returns the requests that have no answer, failed, or must be renewed, and when the next one is due; 0: none is.
func (f *fencer) duePodFences(steward *internalv1.Steward, now time.Time) (due []internalv1.PodFence, next time.Duration) {
	answers := f.podAnswers(steward)
	for i := range steward.Spec.Fences {
		request := steward.Spec.Fences[i]
		answer, answered := answers[request.PodUID]
		wait := time.Duration(0)
		if answered && answer.Time != nil && answer.Fault == "" {
			wait = f.lookAt[request.PodUID].Sub(now)
		} else if tried, failed := f.tried[request.PodUID]; failed {
			wait = retryPodFence - now.Sub(tried)
			if answer.Time != nil {
				wait += retryLook - retryPodFence
			}
		}
		if wait <= 0 {
			due = append(due, request)
		} else if next == 0 || wait < next {
			next = wait
		}
	}
	return due, next
}

// podAnswers returns the answers to existing requests by pod. Its own are newer than those in the cache.
func (f *fencer) podAnswers(steward *internalv1.Steward) map[string]internalv1.PodFenceAnswer {
	answers := map[string]internalv1.PodFenceAnswer{}
	for i := range steward.Spec.Fences {
		asked := &steward.Spec.Fences[i]
		// An earlier request for the same pod may have met other clients: its ganesha may have been restarted since.
		answersIt := func(a internalv1.PodFenceAnswer) bool {
			return a.PodUID == asked.PodUID && a.RequestTime.Equal(asked.RequestTime)
		}
		if own := f.podFences[asked.PodUID]; answersIt(own) {
			answers[asked.PodUID] = own
		} else if at := slices.IndexFunc(steward.Status.Fences, answersIt); at >= 0 {
			answers[asked.PodUID] = steward.Status.Fences[at]
		}
	}
	return answers
}

// fencePods carries out the requests that are due, and writes the answers. It returns when to call it again; 0: at the next request.
func (f *fencer) fencePods(ctx context.Context, connection *client.Client, w request, unconnected error) time.Duration {
	maps.DeleteFunc(f.podFences, func(uid string, _ internalv1.PodFenceAnswer) bool {
		return !slices.ContainsFunc(w.steward.Spec.Fences, func(asked internalv1.PodFence) bool { return asked.PodUID == uid })
	})
	for _, times := range []map[string]time.Time{f.tried, f.lookAt} {
		maps.DeleteFunc(times, func(uid string, _ time.Time) bool { _, known := f.podFences[uid]; return !known })
	}
	due, _ := f.duePodFences(w.steward, f.now())
	for i := range due {
		f.fencePod(ctx, connection, w, &due[i], unconnected)
	}
	if err := f.api.reportPodFences(ctx, w.steward, f.podAnswers(w.steward)); err != nil {
		f.log.Warn("can't write the answers to requests to fence pods", "err", err)
		return retryPodFence
	}
	_, next := f.duePodFences(w.steward, f.now())
	return next
}

// fencePod carries out one request, and stores the answer.
func (f *fencer) fencePod(ctx context.Context, connection *client.Client, w request, asked *internalv1.PodFence, fault error) {
	began, answer := f.now(), f.podAnswers(w.steward)[asked.PodUID]
	answer.PodUID, answer.RequestTime = asked.PodUID, asked.RequestTime
	f.tried[asked.PodUID] = began
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	isNew := answer.Time == nil
	switch {
	case fault != nil:
	case isNew:
		answer, fault = f.blockPod(ctx, connection, w, asked, answer)
		f.lookAt[asked.PodUID] = began.Add(firstLook)
	default:
		answer, fault = f.keepBlocked(ctx, connection, asked, answer)
	}
	if isDenied(fault) {
		f.connector.expired = true
	}
	if answer.Fault = ""; fault != nil {
		answer.Fault = truncate(fault.Error(), maxFault)
		f.log.Warn("can't blocklist the Ceph clients of a lost pod; trying again", "server", asked.DataServerName, "node", asked.NodeName, "err", fault)
	} else if isNew {
		f.log.Info("blocklisted the Ceph clients of a lost pod", "server", asked.DataServerName, "node", asked.NodeName, "pod", asked.PodUID,
			"addresses", answer.Addresses, "took", f.now().Sub(began).String())
	}
	f.podFences[asked.PodUID] = answer
}

// blockPod blocklists the clients of a pod.
func (f *fencer) blockPod(ctx context.Context, connection *client.Client, w request, asked *internalv1.PodFence,
	answer internalv1.PodFenceAnswer,
) (internalv1.PodFenceAnswer, error) {
	addresses, err := f.clientsOf(ctx, connection, w, asked)
	if err != nil {
		return answer, err
	}
	answer.Addresses = addresses
	for _, address := range answer.Addresses {
		if _, err := connection.Command(ctx, ceph.Blocklist(address, podFenceFor)); err != nil {
			return answer, refused(err, "adding to Ceph's blocklist "+address, f.connector.as.user)
		}
	}
	answer.Time = &metav1.Time{Time: f.now()}
	delete(f.seen, asked.DataServerName) // Read those of the next pod soon.
	return answer, nil
}

// keepBlocked keeps the clients of a fenced pod in the blocklist, and those that the metadata servers have put there: the pod's clients that
// had shares, which the next pod has mounted. The latter are found by the pod's host. Clients that watch the data server's records now are the
// next pod's.
func (f *fencer) keepBlocked(ctx context.Context, connection *client.Client, asked *internalv1.PodFence,
	answer internalv1.PodFenceAnswer,
) (internalv1.PodFenceAnswer, error) {
	now := f.now()
	listed, err := connection.Command(ctx, ceph.Blocklisted())
	if err != nil {
		return answer, refused(err, "reading Ceph's blocklist", f.connector.as.user)
	}
	until, err := ceph.ParseBlocklist(listed)
	if err != nil {
		return answer, err
	}
	var missing []string
	var next time.Duration
	answer.Addresses, missing, next = judgeBlocklist(answer.Addresses, until, now)
	f.lookAt[asked.PodUID] = now.Add(next)
	for _, address := range missing {
		if _, err := connection.Command(ctx, ceph.Blocklist(address, podFenceFor)); err != nil {
			return answer, refused(err, "adding to Ceph's blocklist "+address, f.connector.as.user)
		}
	}
	return answer, nil
}

// judgeBlocklist returns all clients of a pod that must stay blocked: those that were, and others in the blocklist with the same host. missing
// are those of them to be blocked again now, next is when to look again.
func judgeBlocklist(fenced []string, until map[string]time.Time, now time.Time) (all, missing []string, next time.Duration) {
	hosts, known := map[string]bool{}, map[string]bool{}
	for _, address := range fenced {
		hosts[ceph.Host(address)], known[address] = true, true
	}
	var others []string
	for address := range until {
		if hosts[ceph.Host(address)] && ceph.IsOneClient(address) && !known[address] {
			others = append(others, address)
		}
	}
	slices.Sort(others)
	all = slices.Concat(fenced, others)
	all = all[:min(len(all), maxPodClients)]
	slices.Sort(all)
	next = lookAtPodFence
	for _, address := range all {
		if end, listed := until[address]; listed {
			next = min(next, end.Sub(now)) // Ceph takes it out some seconds later.
		} else {
			missing = append(missing, address)
		}
	}
	if len(missing) > maxAdded {
		missing, next = missing[:maxAdded], 0
	}
	return all, missing, max(next, retryPodFence)
}

// clientsOf returns the Ceph clients of a lost pod: those that watch the data server's recovery records now, or did when they were
// last read. Ceph ends a watch 30 s after its client is lost.
func (f *fencer) clientsOf(ctx context.Context, connection *client.Client, w request, asked *internalv1.PodFence) ([]string, error) {
	at := slices.IndexFunc(w.servers, func(s *internalv1.DataServer) bool { return s.Name == asked.DataServerName })
	if at < 0 {
		return nil, fmt.Errorf("there is no data server %s", asked.DataServerName)
	}
	server := w.servers[at]
	if server.Status.Unreachable.SeenBy == "" {
		// Also if the operator knows it a moment earlier: it is tried again.
		return nil, fmt.Errorf("data server %s answers, so its Ceph clients may be those of another pod, or of one that is well again", server.Name)
	}
	if node := server.Status.NodeName; node != asked.NodeName {
		return nil, fmt.Errorf("data server %s reports that it runs on node %s and not on %s, so its Ceph clients may be those of another pod", server.Name, node, asked.NodeName)
	}
	watchers, err := f.watchers(ctx, connection, w.steward, server)
	if err != nil {
		return nil, err
	}
	addresses := append(ceph.Dead(watchers), f.seen[server.Name].addresses...)
	for i := range w.steward.Status.Clients {
		if known := &w.steward.Status.Clients[i]; known.DataServerName == server.Name {
			addresses = append(addresses, known.Addresses...)
		}
	}
	slices.Sort(addresses)
	if addresses = slices.Compact(addresses); len(addresses) == 0 {
		return nil, errors.New("no Ceph client of it is known: none watches its recovery records, and none was seen before")
	}
	return addresses, nil
}

// seenClients are the clients of data servers for the status: those seen by this steward, or else by the one before it.
func seenClients(servers []*internalv1.DataServer, seen map[string]sighting, before []internalv1.DataServerClients) []internalv1.DataServerClients {
	var clients []internalv1.DataServerClients
	for _, server := range servers {
		addresses := seen[server.Name].addresses
		if len(addresses) == 0 {
			at := slices.IndexFunc(before, func(c internalv1.DataServerClients) bool { return c.DataServerName == server.Name })
			if at < 0 {
				continue
			}
			addresses = before[at].Addresses
		}
		clients = append(clients, internalv1.DataServerClients{DataServerName: server.Name, Addresses: addresses[:min(len(addresses), maxSeenClients)]})
	}
	return clients
}

// maxSeenClients is the schema's limit of a data server's clients.
const maxSeenClients = 64
