package exporter

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// losing is a ganesha that has the exports of its last configuration. Each has a client of Ceph that may be shut out, until the export is
// removed.
type losing struct {
	t          *testing.T
	configFile string
	text       string
	exports    map[string]server.FileSystem
	shutOut    map[string]bool
	reloads    int
	restarts   int
	kills      int
	hangsOn    string // An export with which it neither starts nor reloads.
	since      time.Time
	isUp       bool // It was up before that export was there.
	isHeld     bool // It was never started: what comes before takes long.
	started    int  // Starts after the first.
	inGrace    bool
	looks      int
	noRecordAt time.Time
}

func (l *losing) load() {
	text, err := os.ReadFile(l.configFile)
	mustWork(l.t, "read the configuration", err)
	config, err := ganeshatest.Parse(string(text))
	mustWork(l.t, "parse the configuration", err)
	before := l.exports
	l.text, l.exports = string(text), map[string]server.FileSystem{}
	for _, export := range config.Served() {
		l.exports[export.Pseudo] = server.FileSystem{Major: ganesha.FilesystemMajor, Minor: uint64(export.ID)}
	}
	for path := range before {
		if _, stays := l.exports[path]; !stays {
			delete(l.shutOut, path)
		}
	}
}

func (l *losing) Hold() {}

func (l *losing) Run(ctx context.Context) { <-ctx.Done() }

func (l *losing) State() supervisor.State {
	if l.exports == nil {
		l.load()
	}
	if l.isHeld {
		return supervisor.State{}
	}
	_, hangs := l.exports[l.hangsOn]
	return supervisor.State{Starts: 1 + l.started, PID: os.Getpid(), Initialized: !hangs || l.isUp, InGrace: l.inGrace, Config: l.text, Since: l.since, NoRecordAt: l.noRecordAt}
}

func (l *losing) Reload(context.Context) error {
	l.reloads++
	l.load()
	if _, hangs := l.exports[l.hangsOn]; hangs {
		return supervisor.ErrNoAnswer
	}
	return nil
}

func (l *losing) Restart() { l.restarts++ }

func (l *losing) Kill() {
	l.kills++
	l.started++
	l.isUp = false
	l.load()
}

func (l *losing) SetRounds([]byte) error { return nil }

func (l *losing) Null(context.Context) error { return nil }

func (l *losing) Identity(context.Context) (string, string, error) {
	dataServer := dataservertest.DataServer(1)
	owner, err := serverOwner(dataServer)
	return owner, dataServer.Spec.ServerScope, err
}

func (l *losing) Look(_ context.Context, paths []string) (sights []server.Sight, err error) {
	l.looks++
	for _, path := range paths {
		fsid, exported := l.exports[path]
		switch {
		case !exported:
			sights = append(sights, server.Sight{Err: server.ErrNotThere})
		case l.shutOut[path]:
			sights = append(sights, server.Sight{Err: &client.StatusError{Op: "GETATTR", Status: nfsv4.NFS4ERR_SERVERFAULT}})
		default:
			sights = append(sights, server.Sight{Fsid: fsid})
		}
	}
	return sights, nil
}

func (l *losing) Forge(context.Context, string) error { return nil }

// knowing are volumes that know why an export is not shown, as those of Ceph do.
type knowing struct {
	*volumes.Backend
	asked int
}

func (k *knowing) Diagnose(_ context.Context, share string) error {
	k.asked++
	return errors.New("the user of " + share + " was removed")
}

func TestWhatGaneshaDoesNotShowIsReportedInWordsOfTheStorage(t *testing.T) {
	storage := &knowing{Backend: volumes.New("/none", quiet)}
	look := &seen{owner: "o", scope: "s"}
	m := &Exporter{
		Config: Config{
			Log:      quiet,
			Prober:   look,
			Expected: &server.Expectation{},
			Nodes:    server.NewNodes(nil),
		},
		storage:    storage,
		dataServer: dataservertest.DataServer(1),
		now:        time.Now,
		loaded:     "some",
		failing:    map[string]*kubeapi.Fault{},
		memory:     &exportids.Table{Parts: []map[string]exportids.Entry{{}}},
	}
	config := ganesha.Config{ServerOwner: "o", ServerScope: "s"}
	const shares = maxDiagnosed + 2
	for i := range shares {
		config.Exports = append(config.Exports, ganesha.Export{ID: uint16(i + 1), Pseudo: "/" + string(rune('a'+i)) + "/0"})
	}
	if failure := m.verify(t.Context(), config); failure != nil {
		t.Fatal(failure)
	}
	if len(m.failing) != shares || !strings.Contains(m.failing["a"].Error(), "the user of a was removed") {
		t.Errorf("%v", m.failing)
	}
	// When the storage is away it is away for all, and each look into it can take long.
	if storage.asked != maxDiagnosed || !strings.Contains(m.failing["e"].Error(), "no such path") {
		t.Errorf("looked into %d of %d: %v", storage.asked, shares, m.failing)
	}
}

// looking are volumes whose exports are looked at, as those of Ceph are.
type looking struct {
	*volumes.Backend
	every time.Duration
}

func (l looking) LookEvery() time.Duration { return l.every }

func TestALostShareIsExportedAgainAndNoOther(t *testing.T) {
	run := t.TempDir()
	key := filepath.Join(run, "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
	supervised, stop := context.WithCancel(t.Context())
	now := time.Unix(1e9, 0)
	daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
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
		storage:    looking{volumes.New(dataservertest.EmptyVolume(t), quiet), lookEvery},
		dataServer: dataservertest.DataServer(1),
		exports:    []*internalv1.ShareExport{dataservertest.NewExport(dataservertest.ShareSpec("a")), dataservertest.NewExport(dataservertest.ShareSpec("b"))},
		now:        func() time.Time { return now },
	}
	defer m.group.Wait()
	defer stop()
	pass := func() []string {
		t.Helper()
		if failure := m.apply(t.Context(), supervised); failure != nil {
			t.Fatal(failure)
		}
		var failing []string
		for share := range m.failing {
			failing = append(failing, share)
		}
		slices.Sort(failing)
		return failing
	}
	settle := func() (reloads int) {
		t.Helper()
		before := daemon.reloads
		for range 10 {
			if len(pass()) == 0 && m.loaded != "" && m.verified == m.loaded {
				return daemon.reloads - before
			}
		}
		t.Fatalf("it does not come to rest: %v", m.failing)
		return 0
	}
	settle()
	if len(daemon.exports) != 2 {
		t.Fatalf("exported: %v", daemon.exports)
	}

	daemon.shutOut["/a/0"] = true
	looks := daemon.looks
	if failing := pass(); len(failing) > 0 || daemon.looks != looks {
		t.Errorf("looked at before it is time: %v", failing)
	}
	now = now.Add(lookEvery)
	if failing := pass(); !slices.Equal(failing, []string{"a"}) {
		t.Fatalf("what fails is %v", failing)
	}
	if failing := pass(); !slices.Equal(failing, []string{"a"}) || len(daemon.exports) != 1 {
		t.Errorf("%v fails and %v is exported, while a is taken away", failing, daemon.exports)
	}
	if _, served := m.serving["/b/0"]; !served {
		t.Error("b suffers from it")
	}
	if reloads := settle(); reloads != 1 || len(daemon.exports) != 2 || len(daemon.shutOut) > 0 {
		t.Errorf("after %d reloads %v is exported", reloads, daemon.exports)
	}

	// It is lost unnoticed, and found by the check after a load.
	daemon.shutOut["/b/0"] = true
	m.loaded = ""
	if failing := pass(); !slices.Equal(failing, []string{"b"}) {
		t.Fatalf("what fails is %v", failing)
	}
	settle()
	if len(daemon.exports) != 2 || len(daemon.shutOut) > 0 {
		t.Errorf("%v is exported", daemon.exports)
	}

	// A share that goes while it is lost is not brought back.
	daemon.shutOut["/a/0"] = true
	now = now.Add(lookEvery)
	pass()
	m.exports = m.exports[1:]
	settle()
	if _, back := daemon.exports["/a/0"]; back || len(m.lost) > 0 {
		t.Errorf("%v is exported, and %v are lost", daemon.exports, m.lost)
	}

	// When the storage is back after it was away, clients may have been shut out: the check does not wait for its next turn.
	wake := make(chan struct{}, 1)
	m.wakeup = wake
	m.noteHealth(backend.Health{Failing: "no monitor answers"})
	m.noteHealth(backend.Health{Failing: "one of three answers"})
	now = now.Add(time.Second)
	daemon.shutOut["/b/0"] = true
	if failing := pass(); len(failing) > 0 || len(wake) > 0 {
		t.Errorf("looked at while the storage is away: %v", failing)
	}
	m.noteHealth(backend.Health{Degraded: "an OSD is down"})
	now = now.Add(lookSoon)
	if failing := pass(); !slices.Equal(failing, []string{"b"}) || len(wake) != 1 || m.rest() != lookSoon {
		t.Errorf("what fails is %v, woken %d times, rests %s", failing, len(wake), m.rest())
	}
	settle()
	now = now.Add(watchful)
	if m.rest() != lookEvery {
		t.Errorf("rests %s for good", m.rest())
	}

	// Exports on volumes are not checked.
	m.noteHealth(backend.Health{Failing: "away"})
	m.noteHealth(backend.Health{})
	m.storage = looking{m.storage.(looking).Backend, 0}
	looks = daemon.looks
	now = now.Add(time.Hour)
	if settle(); daemon.looks != looks {
		t.Error("exports of volumes are looked at again and again")
	}
}

// lookEvery is that of the storage in the test.
const lookEvery = 30 * time.Second

// aging are volumes that were replaced below ganesha, as keys of Ceph are.
type aging struct {
	*volumes.Backend
	why string
}

func (a *aging) Outdated(context.Context) string { return a.why }

func TestGaneshaIsRestartedOnceWhenItIsOutdated(t *testing.T) {
	run := t.TempDir()
	key := filepath.Join(run, "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
	supervised, stop := context.WithCancel(t.Context())
	daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
	storage := &aging{Backend: volumes.New(dataservertest.EmptyVolume(t), quiet)}
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
		exports:    []*internalv1.ShareExport{dataservertest.NewExport(dataservertest.ShareSpec("a"))},
		now:        time.Now,
	}
	defer m.group.Wait()
	defer stop()
	pass := func(restarts int, when string) {
		t.Helper()
		_ = m.apply(t.Context(), supervised) // What it says is not the matter here.
		if daemon.restarts != restarts {
			t.Errorf("%s: %d restarts, want %d", when, daemon.restarts, restarts)
		}
	}
	pass(0, "nothing was replaced")
	storage.why, daemon.inGrace = "a new key", true
	pass(0, "while clients reclaim")
	daemon.inGrace = false
	pass(1, "a key was replaced")
	pass(1, "while it ends")
	daemon.started, storage.why = 1, ""
	pass(1, "it was started")
	storage.why = "another key"
	pass(2, "a key was replaced again")
}
