package exporter

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

// revoking are volumes of which some shares can't be exported, as those of Ceph whose users lost their rights.
type revoking struct {
	looking
	revoked map[string]bool
	// silent are those about which there is no answer.
	silent map[string]bool
	asked  int
	asking func() // What happens while it is asked.
}

func (r *revoking) Diagnose(_ context.Context, share string) error {
	r.asked++
	if r.asking != nil {
		r.asking()
	}
	if r.revoked[share] {
		return errors.New("the user of " + share + " has no rights")
	}
	if r.silent[share] {
		return fmt.Errorf("looking at %s: %w", share, context.DeadlineExceeded)
	}
	return nil
}

// newRevoking is a manager with the shares a and b, whose pass tells what fails.
func newRevoking(t *testing.T) (*Exporter, *losing, *revoking, *time.Time, func() string) {
	t.Helper()
	run := t.TempDir()
	key := filepath.Join(run, "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
	supervised, stop := context.WithCancel(t.Context())
	now := time.Unix(1e9, 0)
	daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
	storage := &revoking{looking: looking{volumes.New(dataservertest.EmptyVolume(t), quiet), lookEvery}, revoked: map[string]bool{}}
	m := &Exporter{
		Config: Config{
			ConfigFile: daemon.configFile,
			Keys:       supervisor.HandleKeys{Current: key},
			Own:        netip.MustParseAddr("127.1.2.3"),
			Ganesha:    daemon,
			Prober:     daemon,
			Log:        quiet,
			Reporter:   &dataservertest.Statuses{},
			Metrics:    server.NewMetrics("default", "training-0"),
			Expected:   &server.Expectation{},
			Nodes:      server.NewNodes(nil),
		},
		storage:    storage,
		dataServer: dataservertest.DataServer(1),
		exports:    []*internalv1.ShareExport{dataservertest.NewExport(dataservertest.ShareSpec("a")), dataservertest.NewExport(dataservertest.ShareSpec("b"))},
		now:        func() time.Time { return now },
	}
	t.Cleanup(func() {
		stop()
		m.group.Wait()
	})
	return m, daemon, storage, &now, func() string {
		t.Helper()
		if failure := m.apply(t.Context(), supervised); failure != nil {
			return failure.Error()
		}
		var failing []string
		for share, fault := range m.failing {
			failing = append(failing, share+": "+fault.Error())
		}
		slices.Sort(failing)
		return strings.Join(failing, "; ")
	}
}

// Ganesha would wait for such a share without end, and every reload with it.
func TestALostShareComesBackWhenItCanBeUsed(t *testing.T) {
	_, daemon, storage, now, pass := newRevoking(t)
	for range 3 {
		pass()
	}
	daemon.shutOut["/a/0"], storage.revoked["a"] = true, true
	*now = now.Add(lookEvery)
	for range 3 {
		pass()
	}
	asked, reloads := storage.asked, daemon.reloads
	for range 5 {
		if got := pass(); got != "a: the user of a has no rights" {
			t.Errorf("it says %q", got)
		}
	}
	if _, back := daemon.exports["/a/0"]; back || daemon.reloads != reloads || storage.asked != asked {
		t.Errorf("%v is exported; %d reloads more; asked %d times more", daemon.exports, daemon.reloads-reloads, storage.asked-asked)
	}
	delete(storage.revoked, "a")
	*now = now.Add(lookEvery)
	for range 4 {
		pass()
	}
	if _, back := daemon.exports["/a/0"]; !back || pass() != "" {
		t.Errorf("%v is exported; %q", daemon.exports, pass())
	}
}

func TestAGaneshaThatHangsInOneShareStartsWithout(t *testing.T) {
	m, daemon, storage, now, pass := newRevoking(t)
	daemon.hangsOn, daemon.since, storage.revoked["a"] = "/a/0", *now, true
	if got := pass(); got != "ganesha is starting" || storage.asked > 0 {
		t.Errorf("at first: %q, asked %d times", got, storage.asked)
	}
	*now = now.Add(startTimeout)
	pass()
	pass()
	if daemon.kills != 1 {
		t.Fatalf("killed %d times", daemon.kills)
	}
	for range 3 {
		pass()
	}
	if _, served := m.serving["/b/0"]; !served || pass() != "a: the user of a has no rights" || daemon.kills != 1 {
		t.Errorf("%v serves; %q; killed %d times", m.serving, pass(), daemon.kills)
	}
}

// A storage that is slow for a share for a while has no answer, as one has none for a user without rights. Who left such a share out took their locks and
// open files from its clients.
func TestAShareWithoutAnAnswerIsAskedAboutTwice(t *testing.T) {
	for name, slow := range map[string]bool{"slow for a while": true, "never an answer": false} {
		m, daemon, storage, now, pass := newRevoking(t)
		daemon.hangsOn, daemon.since, storage.silent = "/a/0", *now, map[string]bool{"a": true}
		pass()
		*now = now.Add(startTimeout)
		for range 3 {
			pass()
		}
		if daemon.kills > 0 || len(m.lost) > 0 {
			t.Errorf("%s: after the first question killed %d times, left out: %v", name, daemon.kills, m.lost)
		}
		if slow {
			daemon.hangsOn, storage.silent = "", nil
		}
		*now = now.Add(startTimeout)
		for range 6 {
			pass()
		}
		_, a := m.serving["/a/0"]
		_, b := m.serving["/b/0"]
		if kills := daemon.kills; a != slow || !b || (kills > 0) == slow {
			t.Errorf("%s: a serves: %t, b serves: %t, killed %d times, left out: %v", name, a, b, kills, m.lost)
		}
	}
}

func TestAReloadThatHangsAsksTwiceAboutAShareWithoutAnAnswer(t *testing.T) {
	m, daemon, storage, _, pass := newRevoking(t)
	both := m.exports
	m.exports = both[1:]
	for range 3 {
		pass()
	}
	daemon.isUp = true
	m.exports, daemon.hangsOn, storage.silent = both, "/a/0", map[string]bool{"a": true}
	pass()
	if storage.asked == 0 || daemon.kills > 0 || len(m.lost) > 0 {
		t.Fatalf("asked %d times, killed %d times, left out: %v", storage.asked, daemon.kills, m.lost)
	}
	for range 6 {
		pass()
	}
	if _, served := m.serving["/b/0"]; !served || daemon.kills != 1 || m.lost["a"] == nil {
		t.Errorf("%v serves, killed %d times, left out: %v", m.serving, daemon.kills, m.lost)
	}
}

// Ganesha may be as slow as the storage that is asked. A kill then costs its clients their state.
func TestAGaneshaThatStartsWhileTheStorageIsAskedIsLeftAlone(t *testing.T) {
	m, daemon, storage, now, pass := newRevoking(t)
	daemon.hangsOn, daemon.since, storage.revoked["a"] = "/a/0", *now, true
	pass()
	*now = now.Add(startTimeout)
	storage.asking = func() { daemon.hangsOn = "" }
	pass()
	for range 3 {
		pass()
	}
	if len(m.serving) != 2 || daemon.kills > 0 || len(m.lost) > 0 {
		t.Errorf("%v serves, killed %d times, left out: %v", m.serving, daemon.kills, m.lost)
	}
}

// Who can be served without the shares that hang? If none can, the start goes on, so that clients can still reclaim what they had.
func TestAGaneshaIsNotStartedWithoutAnyShare(t *testing.T) {
	m, daemon, storage, now, pass := newRevoking(t)
	daemon.hangsOn, daemon.since, storage.revoked["a"], storage.revoked["b"] = "/a/0", *now, true, true
	pass()
	*now = now.Add(startTimeout)
	got := pass()
	if !strings.HasPrefix(got, "ganesha is starting, and no share can be exported: share ") || !strings.HasSuffix(got, "has no rights") || storage.asked != 2 {
		t.Errorf("%q, asked %d times", got, storage.asked)
	}
	if again := pass(); again != got || storage.asked != 2 || daemon.kills > 0 || len(m.lost) > 0 {
		t.Errorf("%q, asked %d times, killed %d times, left out: %v", again, storage.asked, daemon.kills, m.lost)
	}
	delete(storage.revoked, "b")
	*now = now.Add(startTimeout)
	for range 3 {
		pass()
	}
	if _, served := m.serving["/b/0"]; !served || pass() != "a: the user of a has no rights" || daemon.kills != 1 {
		t.Errorf("with one that can: %v serves; %q; killed %d times", m.serving, pass(), daemon.kills)
	}
}

// An administrator may have many shares without rights: the question ends.
func TestTheStorageIsAskedAboutSomeSharesOnly(t *testing.T) {
	m, daemon, storage, now, pass := newRevoking(t)
	for i := range 20 {
		name := fmt.Sprint("c", i)
		m.exports = append(m.exports, dataservertest.NewExport(dataservertest.ShareSpec(name)))
		storage.revoked[name] = true
	}
	storage.revoked["a"], storage.revoked["b"] = true, true
	daemon.hangsOn, daemon.since = "/a/0", *now
	pass()
	*now = now.Add(startTimeout)
	pass()
	if storage.asked != 2*maxDiagnosed || daemon.kills > 0 {
		t.Errorf("asked %d times, killed %d times", storage.asked, daemon.kills)
	}
}

// In a pod that has just started, the storage may not answer for a share yet: what the pod before left there is shut out by the start alone.
func TestAGaneshaThatWasNotStartedYetHangsInNothing(t *testing.T) {
	m, daemon, storage, _, pass := newRevoking(t)
	daemon.isHeld, storage.revoked["a"] = true, true
	for range 3 {
		if got := pass(); got != "ganesha is starting" || storage.asked > 0 {
			t.Errorf("%q, asked %d times", got, storage.asked)
		}
	}
	daemon.isHeld = false
	delete(storage.revoked, "a")
	if got := pass(); got != "" || daemon.kills > 0 || len(m.serving) != 2 {
		t.Errorf("%q, killed %d times, %v serves", got, daemon.kills, m.serving)
	}
}

func TestAGaneshaThatHangsInAReloadIsEndedAndTheShareLeftOut(t *testing.T) {
	m, daemon, storage, _, pass := newRevoking(t)
	all := m.exports
	m.exports = all[1:]
	for range 3 {
		pass()
	}
	daemon.isUp, daemon.hangsOn = true, "/a/0"
	m.exports = all
	if got := pass(); !strings.Contains(got, "did not report in time") || daemon.kills > 0 {
		t.Errorf("it may only take long: %q, killed %d times", got, daemon.kills)
	}
	storage.revoked["a"] = true
	pass()
	pass()
	if daemon.kills != 1 {
		t.Fatalf("killed %d times", daemon.kills)
	}
	for range 4 {
		pass()
	}
	if _, served := m.serving["/b/0"]; !served || pass() != "a: the user of a has no rights" || daemon.kills != 1 {
		t.Errorf("%v serves; %q; killed %d times", m.serving, pass(), daemon.kills)
	}
}
