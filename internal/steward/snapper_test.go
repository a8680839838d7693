package steward

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// caching is a cache that is in sync with a client.
type caching struct {
	cache.Cache
	of client.Client
}

func (c caching) WaitForCacheSync(context.Context) bool { return true }

func (c caching) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.of.List(ctx, list, opts...)
}

// dueSnapshot is a snapshot of a share that is to be made.
func dueSnapshot(share, name string) *internalv1.ShareSnapshot {
	return &internalv1.ShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: share + "." + name, UID: types.UID(share + "." + name)},
		Spec: internalv1.ShareSnapshotSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, FileServerUID: uid,
			FileShareRef: internalv1.FileShareReference{Name: share}, SnapshotName: name,
		},
	}
}

func TestSnapshotsOfAllSharesHaveTheirTurn(t *testing.T) {
	var due []*internalv1.ShareSnapshot
	for _, name := range []string{"a.1", "a.2", "a.3", "b.1", "b.2", "c.1"} {
		share, snapshot, _ := strings.Cut(name, ".")
		due = append(due, dueSnapshot(share, snapshot))
	}
	noon := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	tried := map[types.UID]time.Time{"a.1": noon.Add(time.Minute), "b.1": noon}
	var got []string
	for _, snapshot := range inTurn(due, tried) {
		got = append(got, snapshot.Name)
	}
	if want := []string{"a.2", "b.2", "c.1", "a.3", "b.1", "a.1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if left := stillDue(tried, due[3:]); len(left) != 1 || !left["b.1"].Equal(noon) {
		t.Errorf("%v", left)
	}
}

// A tenant asks for many snapshots that Ceph refuses. That takes long, and others ask for one meanwhile.
func TestSnapshotsThatCephRefusesDoNotKeepOthersWaiting(t *testing.T) {
	w := newWorld(t, "greedy", "modest")
	ask := func(share, name string) {
		if err := w.api.Create(t.Context(), dueSnapshot(share, name)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		ask("greedy", fmt.Sprintf("n%02d", i))
	}
	w.pass() // It writes what the fake Ceph answers.
	w.steward.api.cache = caching{of: w.api}
	clock := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	to := &connector{helper: os.Args[0], credential: w.steward.connector.credential, directory: t.TempDir()}
	t.Cleanup(to.close)
	s := &snapper{api: w.steward.api, connector: to, log: slog.New(slog.DiscardHandler), now: func() time.Time {
		clock = clock.Add(time.Second) // Each look at the clock is a second later.
		return clock
	}}
	if done, more := s.pass(t.Context()); done || !more || len(s.tried) == 0 || len(s.tried) > 10 {
		t.Fatalf("done %v, more %v, tried %d", done, more, len(s.tried))
	}
	ask("modest", "now")
	s.pass(t.Context())
	if _, was := s.tried["modest.now"]; !was {
		t.Errorf("tried %v", s.tried)
	}
	for range 20 {
		if _, more := s.pass(t.Context()); !more {
			break
		}
	}
	if len(s.tried) != 31 {
		t.Errorf("%d were tried", len(s.tried))
	}
}
