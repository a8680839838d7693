package exporter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/ganesha"
)

// seen is a ganesha that ignores its configuration: it serves what the test sets.
type seen struct {
	owner, scope string
	serves       map[string]server.FileSystem
	unreachable  error
	looked       []string
}

func (s *seen) Null(context.Context) error { return s.unreachable }

func (s *seen) Identity(context.Context) (string, string, error) { return s.owner, s.scope, nil }

func (s *seen) Look(_ context.Context, paths []string) ([]server.Sight, error) {
	var sights []server.Sight
	for _, path := range paths {
		s.looked = append(s.looked, path)
		if fsid, there := s.serves[path]; there {
			sights = append(sights, server.Sight{Fsid: fsid})
		} else {
			sights = append(sights, server.Sight{Err: server.ErrNotThere})
		}
	}
	return sights, s.unreachable
}

func (s *seen) Forge(context.Context, string) error { return nil }

// The configuration without the last share has no export, and what is served of it is nothing: two empty lists are equal, and prove
// nothing. What ganesha still serves keeps its data until it was seen that it does not.
func TestTheLastShareIsSeenToBeGoneBeforeItsData(t *testing.T) {
	for name, before := range map[string]func(*Exporter){
		"ganesha served it until now":  func(m *Exporter) { m.serving = map[string]server.FileSystem{"/last/0": {Major: 1, Minor: 1}} },
		"ganesha was restarted":        func(m *Exporter) { m.leaving = m.remembered() },
		"the pod was restarted":        func(*Exporter) {},
		"the table has no entry of it": func(m *Exporter) { delete(m.memory.Parts[0], "last") },
	} {
		t.Run(name, func(t *testing.T) {
			root, dataServer := dataservertest.EmptyVolume(t), dataservertest.DataServer(1)
			storage := volumes.New(root, quiet)
			mustWork(t, "claim", storage.Claim(t.Context(), dataServer))
			data := filepath.Join(root, "0", "last", "file")
			mustWork(t, "make", os.MkdirAll(filepath.Dir(data), 0o755))
			mustWork(t, "write", os.WriteFile(data, []byte("data"), 0o644))
			export := dataservertest.NewExport(dataservertest.ShareSpec("last"))
			export.DeletionTimestamp, export.Spec.DataPolicy = &metav1.Time{Time: time.Now()}, internalv1.DataDelete
			supervised, stop := context.WithCancel(t.Context())
			look := &seen{owner: "o", scope: "s", serves: map[string]server.FileSystem{"/last/0": {Major: 1, Minor: 1}}}
			m := &Exporter{
				Config: Config{
					Log:      quiet,
					Prober:   look,
					Expected: &server.Expectation{},
					Nodes:    server.NewNodes(nil),
				},
				storage:    storage,
				dataServer: dataServer,
				exports:    []*internalv1.ShareExport{export},
				now:        time.Now,
				memory:     &exportids.Table{Parts: []map[string]exportids.Entry{{"last": {ExportID: 1}}}},
				failing:    map[string]*kubeapi.Fault{},
				serving:    map[string]server.FileSystem{},
				leaving:    map[string]bool{},
			}
			defer m.group.Wait()
			defer stop()
			before(m)
			for path := range m.serving {
				m.leaving[path] = true // As load does before it reloads.
			}
			empty := ganesha.Config{ServerOwner: "o", ServerScope: "s"}
			// pass is what apply does after a reload.
			pass := func() *kubeapi.Fault {
				m.loaded, m.failing = "no exports", map[string]*kubeapi.Fault{}
				if failure := m.verify(t.Context(), empty); failure != nil {
					return failure
				}
				m.remove(t.Context(), supervised)
				return nil
			}
			kept := func(when string) {
				t.Helper()
				if text, err := os.ReadFile(data); err != nil || string(text) != "data" {
					t.Fatalf("%s the data is gone: %v", when, err)
				}
				if m.removed[export.UID] {
					t.Fatalf("%s the removal is reported as done", when)
				}
			}

			look.unreachable = errors.New("no answer")
			if failure := pass(); failure == nil {
				t.Error("a ganesha that does not answer was taken for one that serves nothing")
			}
			kept("while ganesha does not answer")
			look.unreachable = nil
			for range 2 {
				if failure := pass(); failure != nil {
					t.Fatal(failure)
				}
				kept("while ganesha serves it")
				if m.loaded != "" {
					t.Error("ganesha is not reloaded again")
				}
				if m.failing["last"] == nil {
					t.Error("no fault says what the removal waits for")
				}
			}
			delete(look.serves, "/last/0")
			if failure := pass(); failure != nil {
				t.Fatal(failure)
			}
			if _, err := os.Lstat(data); !errors.Is(err, os.ErrNotExist) || !m.removed[export.UID] {
				t.Errorf("it is not removed: %v", err)
			}
			if len(look.looked) < 4 {
				t.Errorf("looked at %v only", look.looked)
			}
		})
	}
}
