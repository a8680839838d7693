package namespace

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A share without access rules is for the cluster's nodes: to any other address it does not exist, with root's port or without.
// Nodes that come are let in as soon as a DataServer says so.
func TestAShareWithoutRulesIsForNodesAlone(t *testing.T) {
	w := newWorld(t, 2)
	w.share("data", 1)
	w.nodes(0, "127.0.0.7/32")
	w.nodes(1, "127.0.0.7/32")
	server := w.serve("a")
	from := func(address string) *nfs.Client {
		c, err := nfs.Dial(t.Context(), server.address, nfs.Options{ClientOwner: t.Name() + address, Dial: func(ctx context.Context, to string) (net.Conn, error) {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
			return dialer.DialContext(ctx, "tcp", to)
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	node, outsider := from("127.0.0.7"), from("127.0.0.8")
	if _, err := node.Stat(t.Context(), user, "/data"); err != nil {
		t.Errorf("a node: %v", err)
	}
	if err := node.Mkdir(t.Context(), user, "/data/made", nfs.MkdirOptions{Mode: 0o755}); err != nil {
		t.Errorf("mkdir of a node: %v", err)
	}
	if _, err := outsider.Stat(t.Context(), user, "/data"); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("another address: %v", err)
	}
	if _, err := outsider.Stat(t.Context(), nfs.Credentials{}, "/data/made"); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("another address with uid 0: %v", err)
	}
	if err := outsider.Mkdir(t.Context(), user, "/data/mine", nfs.MkdirOptions{Mode: 0o755}); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("mkdir of another address: %v", err)
	}
	if entries, err := outsider.ReadDir(t.Context(), user, "/"); err != nil || len(entries) != 0 {
		t.Errorf("another address sees %v, %v", entries, err)
	}
	kernel, err := nfs.Dial(t.Context(), server.address, nfs.Options{ClientOwner: t.Name() + "reserved", Dial: fromReservedPort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kernel.Close(context.Background()) })
	if _, err := kernel.Stat(t.Context(), user, "/data"); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("another address from a reserved port: %v", err)
	}
	// The handle of a directory that a node got is no way in.
	handle, err := node.Handle(t.Context(), user, "/data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outsider.StatHandle(t.Context(), user, handle); !nfs.IsStatus(err, nfsv4.NFS4ERR_STALE) {
		t.Errorf("another address with a node's handle: %v", err)
	}
	if metric := scrape(t, server, "howdah_namespace_refused_lookups_total"); metric == "0" {
		t.Error("the refusals are not counted")
	}

	w.nodes(1, "127.0.0.7/32", "127.0.0.8/32")
	w.eventually("a new node is let in", func() bool {
		_, err := outsider.Stat(t.Context(), user, "/data")
		return err == nil
	})
	w.nodes(0, "127.0.0.8/32")
	w.nodes(1, "127.0.0.8/32")
	w.eventually("a node that is gone is refused", func() bool {
		_, err := node.Stat(t.Context(), user, "/data")
		return nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT)
	})
}

// nodes has the operator tell a data server of the cluster's nodes.
func (w *world) nodes(i int, networks ...string) {
	w.t.Helper()
	o := &internalv1.DataServer{}
	key := client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, int32(i))}
	if err := w.api.Get(w.t.Context(), key, o); err != nil {
		w.t.Fatal(err)
	}
	o.Spec.NodeNetworks = networks
	if err := w.api.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// scrape is the value of a metric of which there is one series.
func scrape(t *testing.T, server *serverUnderTest, name string) string {
	t.Helper()
	res, err := http.Get("http://" + server.manager + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if fields := strings.Fields(line); len(fields) == 2 && (fields[0] == name || strings.HasPrefix(fields[0], name+"{")) {
			return fields[1]
		}
	}
	t.Fatalf("no metric %s", name)
	return ""
}

func TestRefusalsOfClientsAreLoggedWithALimit(t *testing.T) {
	var log bytes.Buffer
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	counted := 0
	r := &refusals{log: slog.New(slog.NewTextHandler(&log, nil)), clock: clock, count: func() { counted++ }, logged: map[refusal]time.Time{}}
	lines := func() int { return strings.Count(log.String(), "\n") }
	client := netip.MustParseAddrPort("10.244.3.5:40000")
	for range 1000 {
		r.note("data", client)
	}
	if got := lines(); got != 1 || !strings.Contains(log.String(), "client=10.244.3.5") || !strings.Contains(log.String(), "share=data") ||
		!strings.Contains(log.String(), "spec.access") || !strings.Contains(log.String(), "spec.additionalNodeNetworks") {
		t.Errorf("%d lines:\n%s", got, log.String())
	}
	r.note("other", client)
	clock.Step(logRefusalEvery)
	r.note("data", client)
	if got := lines(); got != 3 {
		t.Errorf("%d lines after another share and another time", got)
	}
	for i := range 5 * maxRefusalsLogged {
		r.note(fmt.Sprint("share-", i), client)
	}
	if got := lines(); got > 3+maxRefusalsLogged || len(r.logged) > maxRefusalsLogged {
		t.Errorf("%d lines, %d remembered", got, len(r.logged))
	}
	if want := 1002 + 5*maxRefusalsLogged; counted != want {
		t.Errorf("%d are counted, not %d", counted, want)
	}
}
