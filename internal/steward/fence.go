package steward

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// fenceFor is how long an address stays in Ceph's blocklist. Its sessions end within seconds, and no other client gets
	// the same address, because it has a unique nonce.
	fenceFor = 2 * time.Minute
	// fenceTimeout limits one request to fence; the data server waits as long.
	fenceTimeout = 10 * time.Second
	// stayConnected is how often an idle fencer checks its connection, so that there is one for the next request, and the
	// watchers of one data server's recovery records.
	stayConnected = 30 * time.Second
	// lookAfter is used instead while the watchers of a data server are not known: a fenced data server watches its records
	// again by then, and a new one does soon.
	lookAfter = 10 * time.Second
)

// fencer blocklists the Ceph clients of data servers that have ended. It has its own connection, because making a share can
// take seconds.
type fencer struct {
	api       *api
	connector *connector
	log       *slog.Logger
	// seen has the watchers of data servers' recovery records, by the data servers' names. They are read in advance: NFS
	// clients wait during a request, and reading takes a process, a key and a connection while ganesha needs the node's CPUs.
	seen map[string]sighting
	// answered has the IDs of the last answered requests by data server, because the cache may be older than the last write.
	answered map[string]string
	// podFences has the answers to the operator's requests by pod, tried when each was last tried, and lookAt when the blocklist is to be looked at.
	podFences     map[string]internalv1.PodFenceAnswer
	tried, lookAt map[string]time.Time
	now           func() time.Time
}

// sighting has the addresses that watched at a time.
type sighting struct {
	addresses []string
	at        time.Time
}

// run works until the context ends.
func (f *fencer) run(ctx context.Context) error {
	defer f.connector.close()
	timer := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.api.asked:
			if answered, next := f.pass(ctx, false); answered {
				timer.Reset(min(next, lookAfter))
			}
		case <-timer.C:
			_, next := f.pass(ctx, true)
			timer.Reset(next)
		}
	}
}

// pass answers all open requests, and returns whether there was one and when to call it again. If idle is set, it also reads
// the watchers of one data server, so that a new request waits for one such read at most.
func (f *fencer) pass(ctx context.Context, idle bool) (answered bool, next time.Duration) {
	w, err := f.api.read(ctx)
	if err != nil || w.steward == nil || !idle && !slices.ContainsFunc(w.servers, f.isAsked) && !f.hasPodFences(w.steward, f.now()) {
		return false, stayConnected
	}
	connection, unconnected := f.connector.connected(ctx, &w.steward.Spec.Ceph)
	again := stayConnected
	if f.hasPodFences(w.steward, f.now()) {
		answered = true
		if after := f.fencePods(ctx, connection, w, unconnected); after > 0 {
			again = after
		}
	}
	for _, server := range w.servers {
		if f.isAsked(server) {
			answered = true
			f.answer(ctx, connection, w.steward, server, unconnected)
		}
	}
	if server := stalest(w.servers, f.seen); idle && unconnected == nil && server != nil {
		f.look(ctx, connection, w.steward, server)
		if err := f.api.reportClients(ctx, w.steward, seenClients(w.servers, f.seen, w.steward.Status.Clients)); err != nil {
			f.log.Debug("can't write the Ceph clients of data servers", "err", err)
		}
	}
	return answered, min(again, untilNext(w.servers, f.seen))
}

// untilNext is the time until the watchers of the next data server are read.
func untilNext(servers []*internalv1.DataServer, seen map[string]sighting) time.Duration {
	if slices.ContainsFunc(servers, func(server *internalv1.DataServer) bool { return len(seen[server.Name].addresses) == 0 }) {
		return lookAfter
	}
	return stayConnected
}

// look stores the watchers of the data server's recovery records, or none if they can't be read.
func (f *fencer) look(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer) {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	watchers, err := f.watchers(ctx, connection, steward, server)
	if err != nil {
		f.log.Debug("can't read the watchers of a data server's recovery records", "server", server.Name, "err", err)
	}
	f.seen[server.Name] = sighting{ceph.Dead(watchers), time.Now()}
}

// stalest returns the data server whose watchers were read the longest time ago, or nil if there is no data server.
func stalest(servers []*internalv1.DataServer, seen map[string]sighting) *internalv1.DataServer {
	if len(servers) == 0 {
		return nil
	}
	return slices.MinFunc(servers, func(x, y *internalv1.DataServer) int { return seen[x.Name].at.Compare(seen[y.Name].at) })
}

// answer fences for a data server, if there is a connection, and writes the result to the data server's status.
func (f *fencer) answer(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer, fault error) {
	if fault == nil {
		limited, cancel := context.WithTimeout(ctx, fenceTimeout)
		fault = f.fence(limited, connection, steward, server)
		cancel()
	}
	if isDenied(fault) {
		f.connector.expired = true
	}
	answer := internalv1.FenceAnswer{ID: server.Status.Fence.ID}
	if fault != nil {
		answer.Fault = truncate(fault.Error(), maxFault)
		f.log.Warn("can't blocklist the Ceph clients of a data server", "server", server.Name, "err", fault)
	}
	if err := f.api.reportFenced(ctx, server, answer); err != nil {
		f.log.Warn("can't write the answer to a data server", "err", err)
		return
	}
	f.answered[server.Name] = answer.ID
}

// isAsked reports whether the data server has a request without an answer.
func (f *fencer) isAsked(server *internalv1.DataServer) bool {
	id := server.Status.Fence.ID
	return id != "" && id != server.Status.Fenced.ID && id != f.answered[server.Name]
}

// fence blocklists those of the requested addresses that watch the data server's own recovery records, or did when the
// watchers were last read. An address has a unique nonce, so it still means the same client.
func (f *fencer) fence(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer) error {
	began := time.Now()
	asked, watching := server.Status.Fence.Addresses, f.seen[server.Name].addresses
	if len(fenceable(asked, watching)) < len(asked) {
		watchers, err := f.watchers(ctx, connection, steward, server)
		if err != nil {
			return err
		}
		watching = ceph.Dead(watchers)
	}
	looked := time.Now()
	addresses := fenceable(asked, watching)
	for _, address := range addresses {
		if _, err := connection.Command(ctx, ceph.Blocklist(address, fenceFor)); err != nil {
			return refused(err, "adding to Ceph's blocklist "+address, f.connector.as.user)
		}
	}
	delete(f.seen, server.Name) // The next ganesha is another Ceph client: read its watchers next.
	f.log.Info("blocklisted the Ceph clients of a data server", "server", server.Name, "addresses", addresses,
		"took", time.Since(began).String(), "ofWhichLooking", looked.Sub(began).String())
	return nil
}

// watchers returns the watchers of the data server's recovery records. It reads them as the data server's recovery user,
// because the provisioning account has no permission.
func (f *fencer) watchers(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer) ([]ceph.Watcher, error) {
	ordinal, ours := naming.DataServerOrdinal(steward.Spec.FileServerRef.Name, server.Name)
	if !ours {
		return nil, fmt.Errorf("data server %s does not belong to FileServer %s", server.Name, steward.Spec.FileServerRef.Name)
	}
	uid := steward.Spec.FileServerUID
	user := ceph.RecoveryUser(uid, ordinal)
	answer, err := connection.Command(ctx, ceph.GetUser(user))
	if err != nil {
		return nil, refused(err, "asking for the key of client."+user, f.connector.as.user)
	}
	key, err := ceph.ParseKey(answer, user)
	if err != nil {
		return nil, err
	}
	own, err := f.connector.connect(ctx, &steward.Spec.Ceph, credential{user, key})
	if err != nil {
		return nil, fmt.Errorf("connecting to Ceph as client.%s: %w", user, err)
	}
	defer own.Close()
	watchers, err := own.Watchers(ctx, client.Place{Pool: steward.Spec.Ceph.RecoveryPool, Namespace: ceph.Node(uid, ordinal)}, ceph.GraceObject)
	if err != nil {
		return nil, refused(err, "reading the watchers of the recovery records", user)
	}
	return watchers, nil
}

// fenceable returns the addresses that were requested and do watch. Otherwise, anyone who may write a request could
// blocklist any client, and a late answer could blocklist the ganesha that has started meanwhile.
func fenceable(asked, watching []string) []string {
	return slices.DeleteFunc(slices.Clone(watching), func(address string) bool { return !slices.Contains(asked, address) })
}
