package namespace

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

func TestTheAPIIsToldOnceThatADataServerIsSilentAndOnceThatItIsBack(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		known bool
		since time.Time
		down  bool
		due   bool
		tells bool // that it is unreachable
	}{
		"it answers":                               {false, time.Time{}, false, false, false},
		"it is silent for a moment":                {false, now.Add(-reportAfter + time.Millisecond), true, false, false},
		"it is silent":                             {false, now.Add(-reportAfter), true, true, true},
		"it is silent, and the API knows":          {true, now.Add(-time.Hour), true, false, false},
		"it is back":                               {true, time.Time{}, false, true, false},
		"it is back before the API had to be told": {false, time.Time{}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, due := news(tc.known, tc.since, tc.down, now, "replica")
			if due != tc.due || (got != nil) != tc.tells {
				t.Fatalf("got %v, due %v", got, due)
			}
			if got != nil && (!got.SinceTime.Time.Equal(tc.since) || got.SeenBy != "replica") {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestADataServerThatFallsSilentIsSaidToBeInTheAPIAndThatItIsBack(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	w.serve("a")
	key := client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, 0)}
	server := &internalv1.DataServer{}
	get := func() *internalv1.DataServer {
		if err := w.api.Get(t.Context(), key, server); err != nil {
			t.Fatal(err)
		}
		return server
	}
	get().Status.ObservedGeneration = ptr.To[int64](1)
	if err := w.api.Status().Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	moveTo := func(address string) {
		get().Spec.Address = address
		if err := w.api.Update(t.Context(), server); err != nil {
			t.Fatal(err)
		}
	}
	home := server.Spec.Address
	began := time.Now()
	moveTo("127.0.0.1:1") // nobody listens there
	w.eventually("the silent data server to be reported", func() bool { return get().Status.Unreachable.SeenBy == "a" })
	t.Logf("reported after %v", time.Since(began).Round(time.Millisecond))
	if since := server.Status.Unreachable.SinceTime; since == nil || since.Time.Before(began.Add(-2*time.Second)) || since.After(time.Now()) {
		t.Errorf("silent since %v, and it fell silent at %v", since, began)
	}
	if len(server.Status.Conditions) == 0 {
		t.Error("the rest of the status is gone")
	}
	moveTo(home)
	w.eventually("the data server to be well again", func() bool { return get().Status.Unreachable.SeenBy == "" })
}
