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
	// fenceFor is how long an address is shut out. Its sessions end within seconds, and nobody has it again: it has a number of its own.
	fenceFor = 2 * time.Minute
	// fencePatience is how long one request may take; the data server waits as long.
	fencePatience = 10 * time.Second
	// stayConnected is how often the fencer's connection is looked at while nobody asks, so that there is one when somebody does, and how often
	// one of the data servers' recovery records is.
	stayConnected = 30 * time.Second
	// lookAfter is that while there is a data server of whom nothing is known: one that was fenced for watches its records anew by then, and
	// one that is new does soon.
	lookAfter = 10 * time.Second
)

// fencer shuts out of Ceph what is left of data servers that ended. It has a connection of its own: making a share can take seconds.
type fencer struct {
	api       *api
	connector *connector
	log       *slog.Logger
	// seen are who watched the recovery records of data servers, by their names, when that was looked at. Who asks waits while clients do, and
	// to look then takes a program, a key and a connection, while ganesha needs the node's processors.
	seen map[string]sighting
	// answered are the last requests that have an answer, by the names of the data servers: what is read may be older than what was written.
	answered map[string]string
}

// sighting is who watched at a time.
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
			if answered, _ := f.pass(ctx, false); answered {
				timer.Reset(lookAfter)
			}
		case <-timer.C:
			_, next := f.pass(ctx, true)
			timer.Reset(next)
		}
	}
}

// pass answers who asks, and tells whether anybody did. If it is idle it looks at the records of one data server, and tells when to look at the
// next: who asks meanwhile waits for one look at most.
func (f *fencer) pass(ctx context.Context, idle bool) (answered bool, next time.Duration) {
	w, err := f.api.read(ctx)
	if err != nil || w.steward == nil || !idle && !slices.ContainsFunc(w.servers, f.isAsked) {
		return false, stayConnected
	}
	connection, unconnected := f.connector.connected(ctx, &w.steward.Spec.Ceph)
	for _, server := range w.servers {
		if f.isAsked(server) {
			answered = true
			f.answer(ctx, connection, w.steward, server, unconnected)
		}
	}
	if server := stalest(w.servers, f.seen); idle && unconnected == nil && server != nil {
		f.look(ctx, connection, w.steward, server)
	}
	return answered, untilNext(w.servers, f.seen)
}

// untilNext is how long nobody is looked at.
func untilNext(servers []*internalv1.DataServer, seen map[string]sighting) time.Duration {
	if slices.ContainsFunc(servers, func(server *internalv1.DataServer) bool { return len(seen[server.Name].addresses) == 0 }) {
		return lookAfter
	}
	return stayConnected
}

// look keeps who watches the data server's recovery records; nobody, if it can't be known.
func (f *fencer) look(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer) {
	ctx, cancel := context.WithTimeout(ctx, fencePatience)
	defer cancel()
	watchers, err := f.watchers(ctx, connection, steward, server)
	if err != nil {
		f.log.Debug("who watches a data server's recovery records is not known", "server", server.Name, "err", err)
	}
	f.seen[server.Name] = sighting{ceph.Dead(watchers), time.Now()}
}

// stalest is the data server whose records were not looked at for longest; nil if there is none.
func stalest(servers []*internalv1.DataServer, seen map[string]sighting) *internalv1.DataServer {
	if len(servers) == 0 {
		return nil
	}
	return slices.MinFunc(servers, func(x, y *internalv1.DataServer) int { return seen[x.Name].at.Compare(seen[y.Name].at) })
}

// answer fences for a data server, if there is a connection, and tells it what came of it.
func (f *fencer) answer(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer, fault error) {
	if fault == nil {
		limited, cancel := context.WithTimeout(ctx, fencePatience)
		fault = f.fence(limited, connection, steward, server)
		cancel()
	}
	if isDenied(fault) {
		f.connector.expired = true
	}
	answer := internalv1.FenceAnswer{ID: server.Status.Fence.ID}
	if fault != nil {
		answer.Fault = truncate(fault.Error(), maxFault)
		f.log.Warn("what is left of a data server was not shut out", "server", server.Name, "err", fault)
	}
	if err := f.api.reportFenced(ctx, server, answer); err != nil {
		f.log.Warn("a data server was not answered", "err", err)
		return
	}
	f.answered[server.Name] = answer.ID
}

// isAsked: the data server asks for something that it has no answer to.
func (f *fencer) isAsked(server *internalv1.DataServer) bool {
	id := server.Status.Fence.ID
	return id != "" && id != server.Status.Fenced.ID && id != f.answered[server.Name]
}

// fence shuts out those of the addresses that watch the data server's own recovery records, or did when they were last looked at: an address
// has a number that nobody has again, so it is the client that was seen, alive or not.
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
			return refused(err, "shutting out "+address, f.connector.as.user)
		}
	}
	delete(f.seen, server.Name) // The next ganesha is another client: its records are the next to be looked at.
	f.log.Info("shut out what was left of a data server", "server", server.Name, "addresses", addresses,
		"took", time.Since(began).String(), "ofWhichLooking", looked.Sub(began).String())
	return nil
}

// watchers are who watches the data server's recovery records. They are read as its own recovery user: the account that provisions has no
// right to them.
func (f *fencer) watchers(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer) ([]ceph.Watcher, error) {
	ordinal, ours := naming.DataServerOrdinal(steward.Spec.FileServerRef.Name, server.Name)
	if !ours {
		return nil, fmt.Errorf("%s is no data server of FileServer %s", server.Name, steward.Spec.FileServerRef.Name)
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
		return nil, refused(err, "looking who watches the recovery records", user)
	}
	return watchers, nil
}

// fenceable are those that were asked for and do watch. Who may write a request could else have anybody shut out, and one that is answered late
// would have the ganesha shut out that has started meanwhile.
func fenceable(asked, watching []string) []string {
	return slices.DeleteFunc(slices.Clone(watching), func(address string) bool { return !slices.Contains(asked, address) })
}
