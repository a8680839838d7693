package steward

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

const ended, alien = "10.0.0.1:0/5", "10.0.0.9:0/1"

// Otherwise, anyone who may write a request could blocklist any client, and a late answer could hit the new ganesha.
func TestOnlyRequestedWatchersAreBlocklisted(t *testing.T) {
	watching := []string{ended, "10.0.0.1:0/6"}
	got := fenceable([]string{ended, alien}, watching)
	if len(got) != 1 || got[0] != ended || watching[1] != "10.0.0.1:0/6" {
		t.Errorf("%v of %v", got, watching)
	}
	if got := fenceable([]string{alien}, watching); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestTheDataServerLookedAtLongestAgoIsNext(t *testing.T) {
	now := time.Now()
	servers := []*internalv1.DataServer{serverNamed("training-0"), serverNamed("training-1"), serverNamed("training-2")}
	seen := map[string]sighting{"training-0": {at: now.Add(-time.Minute)}, "training-1": {at: now.Add(-2 * time.Minute)}, "gone": {}}
	for _, want := range []string{"training-2", "training-1", "training-0"} {
		if got := stalest(servers, seen); got.Name != want {
			t.Errorf("%s, want %s", got.Name, want)
		}
		seen[want] = sighting{at: now}
		now = now.Add(time.Second)
	}
	if stalest(nil, seen) != nil {
		t.Error("there is none")
	}
	if got := untilNext(servers, seen); got != lookAfter {
		t.Errorf("%s while no watchers are known", got)
	}
	for _, server := range servers {
		seen[server.Name] = sighting{addresses: []string{ended}, at: now}
	}
	if got := untilNext(servers, seen); got != stayConnected {
		t.Errorf("%s when all watchers are known", got)
	}
}

// The steward may be notified of its own answer before its cache has it.
func TestARequestIsAnsweredOnce(t *testing.T) {
	f, server := &fencer{answered: map[string]string{}}, serverNamed("training-0")
	for _, step := range []struct {
		what, asks, read, answered string
		want                       bool
	}{
		{"no request", "", "", "", false},
		{"it asks", "a", "", "", true},
		{"its answer was read", "a", "a", "", false},
		{"its answer was written, and an older one read", "b", "a", "b", false},
		{"it asks again", "c", "b", "b", true},
		{"another steward has answered", "c", "c", "b", false},
	} {
		server.Status.Fence.ID, server.Status.Fenced.ID, f.answered[server.Name] = step.asks, step.read, step.answered
		if got := f.isAsked(server); got != step.want {
			t.Errorf("%s: %v", step.what, got)
		}
	}
}

// While clients wait, the steward does not connect to Ceph to read known watchers. It does if the watchers are not known, or
// if the request names other addresses.
func TestAKnownWatcherIsBlocklistedWithoutReadingTheWatchers(t *testing.T) {
	w := newWorld(t)
	user, blind := ceph.RecoveryUser(uid, 0), refusing(-5, "no permission to read now")
	w.answers["mon auth get client."+user] = out(`[{"entity":"client.` + user + `","key":"AQ=="}]`)
	w.answers["watchers"] = `{"code":0,"result":[{"address":"` + ended + `","client":4,"cookie":1}]}`
	w.answers["mon osd blocklist"] = refusing(-22, "this is where it shuts out")
	w.pass() // Writes the answers.
	f := &fencer{
		connector: &connector{helper: os.Args[0], credential: w.steward.connector.credential, directory: t.TempDir()},
		log:       slog.New(slog.DiscardHandler), seen: map[string]sighting{},
	}
	t.Cleanup(f.connector.close)
	steward := &internalv1.Steward{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "training"}, steward); err != nil {
		t.Fatal(err)
	}
	connection, err := f.connector.connected(t.Context(), &steward.Spec.Ceph)
	if err != nil {
		t.Fatal(err)
	}
	fence := func(addresses ...string) string {
		t.Helper()
		server := serverNamed("training-0")
		server.Status.Fence.Addresses = addresses
		if err := f.fence(t.Context(), connection, steward, server); err != nil {
			return err.Error()
		}
		return ""
	}
	shutsOut := func(what, want string, addresses ...string) {
		t.Helper()
		if got := fence(addresses...); got == "" && want != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}

	shutsOut("one who watches and was never seen", "adding to Ceph's blocklist "+ended, ended)
	f.look(t.Context(), connection, steward, serverNamed("training-0"))
	w.answers["watchers"] = blind
	w.pass()
	shutsOut("one who was seen", "adding to Ceph's blocklist "+ended, ended)
	shutsOut("another beside it", "reading the watchers", ended, alien)
	delete(w.answers, "mon osd blocklist")
	w.pass()
	shutsOut("one who was seen, by a Ceph that does it", "", ended)
	shutsOut("the same again: the next ganesha was not seen yet", "reading the watchers", ended)
	f.look(t.Context(), connection, steward, serverNamed("training-0"))
	shutsOut("a data server whose watchers could not be read", "reading the watchers", ended)
}

func serverNamed(name string) *internalv1.DataServer {
	return &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
}
