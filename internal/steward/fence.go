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
	// stayConnected is how often the fencer's connection is looked at while nobody asks, so that there is one when somebody does.
	stayConnected = 30 * time.Second
)

// fencer shuts out of Ceph what is left of data servers that ended. It has a connection of its own: making a share can take seconds.
type fencer struct {
	api       *api
	connector *connector
	log       *slog.Logger
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
		case <-timer.C:
		}
		f.pass(ctx)
		timer.Reset(stayConnected)
	}
}

func (f *fencer) pass(ctx context.Context) {
	w, err := f.api.read(ctx)
	if err != nil || w.steward == nil {
		return
	}
	connection, unconnected := f.connector.connected(ctx, &w.steward.Spec.Ceph)
	for _, server := range w.servers {
		if !isAsking(server) {
			continue
		}
		fault := unconnected
		if fault == nil {
			limited, cancel := context.WithTimeout(ctx, fencePatience)
			fault = f.fence(limited, connection, w.steward, server)
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
		}
	}
}

// isAsking: the data server asks for something that it has no answer to.
func isAsking(server *internalv1.DataServer) bool {
	return server.Status.Fence.ID != "" && server.Status.Fence.ID != server.Status.Fenced.ID
}

// fence shuts out those of the addresses that watch the data server's own recovery records. The records are read as its own recovery user:
// the account that provisions has no right to them.
func (f *fencer) fence(ctx context.Context, connection *client.Client, steward *internalv1.Steward, server *internalv1.DataServer) error {
	ordinal, ours := naming.DataServerOrdinal(steward.Spec.FileServerRef.Name, server.Name)
	if !ours {
		return fmt.Errorf("%s is no data server of FileServer %s", server.Name, steward.Spec.FileServerRef.Name)
	}
	uid, as := steward.Spec.FileServerUID, f.connector.as.user
	user := ceph.RecoveryUser(uid, ordinal)
	answer, err := connection.Command(ctx, ceph.GetUser(user))
	if err != nil {
		return refused(err, "asking for the key of client."+user, as)
	}
	key, err := ceph.ParseKey(answer, user)
	if err != nil {
		return err
	}
	own, err := f.connector.connect(ctx, &steward.Spec.Ceph, credential{user, key})
	if err != nil {
		return fmt.Errorf("connecting to Ceph as client.%s: %w", user, err)
	}
	defer own.Close()
	watchers, err := own.Watchers(ctx, client.Place{Pool: steward.Spec.Ceph.RecoveryPool, Namespace: ceph.Node(uid, ordinal)}, ceph.GraceObject)
	if err != nil {
		return refused(err, "looking who watches the recovery records", user)
	}
	began := time.Now()
	addresses := fenceable(server.Status.Fence.Addresses, watchers)
	for _, address := range addresses {
		if _, err := connection.Command(ctx, ceph.Blocklist(address, fenceFor)); err != nil {
			return refused(err, "shutting out "+address, as)
		}
	}
	f.log.Info("shut out what was left of a data server", "server", server.Name, "addresses", addresses, "took", time.Since(began).String())
	return nil
}

// fenceable are those that were asked for and do watch. Who may write a request could else have anybody shut out, and one that is answered late
// would have the ganesha shut out that has started meanwhile.
func fenceable(asked []string, watchers []ceph.Watcher) []string {
	return slices.DeleteFunc(ceph.Dead(watchers), func(address string) bool { return !slices.Contains(asked, address) })
}
