package namespace

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/owners"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
)

func TestASilentDataServerIsReportedOnceAndItsReturnOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		by     string
		answer owners.Answer
		since  time.Time
		due    bool
		tells  bool // that it is unreachable
	}{
		"it answers":                                  {"", owners.Answers, time.Time{}, false, false},
		"it was not asked yet":                        {"", owners.NotKnown, time.Time{}, false, false},
		"it was not asked yet by a new leader":        {"before", owners.NotKnown, time.Time{}, false, false},
		"it is silent for a moment":                   {"", owners.Silent, now.Add(-reportAfter + time.Millisecond), false, false},
		"it is silent":                                {"", owners.Silent, now.Add(-reportAfter), true, true},
		"it is silent, and the API knows":             {"replica", owners.Silent, now.Add(-time.Hour), false, false},
		"it is silent for a new leader, for a moment": {"before", owners.Silent, now.Add(-reportAfter + time.Millisecond), false, false},
		"it is silent for a new leader":               {"before", owners.Silent, now.Add(-reportAfter), true, true},
		"it is back":                                  {"before", owners.Answers, time.Time{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, due := news(tc.by, tc.answer, tc.since, now, "replica")
			if due != tc.due || (got != nil) != tc.tells {
				t.Fatalf("got %v, due %v", got, due)
			}
			if got == nil {
				return
			}
			if got.SeenBy != "replica" || tc.by == "" && !got.SinceTime.Time.Equal(tc.since) || tc.by != "" && got.SinceTime != nil {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheAPIShowsASilentDataServerAndItsReturn(t *testing.T) {
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
	moveTo("127.0.0.1:1") // no process listens there
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

// One that was removed and made again meanwhile would be fenced although it answers.
func TestTheSilenceOfADataServerIsNotThatOfTheNextOne(t *testing.T) {
	w := newWorld(t, 1)
	key := client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, 0)}
	server := &internalv1.DataServer{}
	get := func() internalv1.Unreachable {
		if err := w.api.Get(t.Context(), key, server); err != nil {
			t.Fatal(err)
		}
		return server.Status.Unreachable
	}
	get()
	server.Status.ObservedGeneration = ptr.To[int64](1)
	if err := w.api.Status().Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	answer, since := owners.Silent, time.Now().Add(-time.Hour).Truncate(time.Second)
	report := func(replica string, edit func(*tree.Server)) internalv1.Unreachable {
		known := tree.NewServer(server)
		edit(known)
		r := &reachability{
			client: w.api, kubeNamespace: w.namespace, replica: replica, clock: clock.RealClock{}, log: slog.New(slog.DiscardHandler),
			gauge:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reachable"}, []string{"server"}),
			answer: func(string) (owners.Answer, time.Time) { return answer, since },
		}
		r.report(t.Context(), known)
		return get()
	}
	if got := report("a", func(s *tree.Server) { s.UID = "earlier" }); got.SeenBy != "" {
		t.Errorf("another data server of its name was silent, and this one is: %+v", got)
	}
	if got := report("a", func(*tree.Server) {}); got.SeenBy != "a" || got.SinceTime == nil || !got.SinceTime.Time.Equal(since) {
		t.Errorf("it is silent: %+v", got)
	}
	since = since.Add(time.Minute)
	if got := report("b", func(*tree.Server) {}); got.SeenBy != "b" || got.SinceTime == nil || !got.SinceTime.Time.Equal(since.Add(-time.Minute)) {
		t.Errorf("the next leader confirms it: %+v", got)
	}
	answer = owners.Answers
	if got := report("b", func(s *tree.Server) { s.UID = "earlier" }); got.SeenBy != "b" {
		t.Errorf("another data server of its name answers: %+v", got)
	}
	if got := report("b", func(*tree.Server) {}); got.SeenBy != "" || got.SinceTime != nil {
		t.Errorf("it answers: %+v", got)
	}
	if server.Status.ObservedGeneration == nil {
		t.Error("the rest of the status is gone")
	}
}

func TestANewLeaderConfirmsThatADataServerIsSilent(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // It takes connections, and answers nothing.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	key := client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, 0)}
	server := &internalv1.DataServer{}
	if err := w.api.Get(t.Context(), key, server); err != nil {
		t.Fatal(err)
	}
	server.Spec.Address = silent.Addr().String()
	if err := w.api.Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	server.Status.ObservedGeneration = ptr.To(server.Generation)
	since := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	server.Status.Unreachable = internalv1.Unreachable{SinceTime: &since, SeenBy: "the leader before"}
	if err := w.api.Status().Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	before := server.ResourceVersion
	replica := w.serve("a")
	// By then it has reported at least once before it knew, and once after.
	w.eventually("the new leader finds the data server silent", func() bool {
		return strings.Contains(metricsOf(t, replica), fmt.Sprintf("howdah_namespace_data_server_reachable{data_server=%q,file_server=%q,namespace=%q} 0\n", key.Name, fileServer, key.Namespace))
	})
	w.eventually("it confirms that", func() bool {
		if err := w.api.Get(t.Context(), key, server); err != nil {
			t.Fatal(err)
		}
		switch by := server.Status.Unreachable.SeenBy; by {
		case "a":
			return true
		case "the leader before":
			if server.ResourceVersion != before {
				t.Fatalf("it wrote before it knew: %+v", server.Status)
			}
		default:
			t.Fatalf("it took back what the leader before had written: %+v", server.Status.Unreachable)
		}
		return false
	})
	if !server.Status.Unreachable.SinceTime.Equal(&since) {
		t.Errorf("since %v, and the leader before had found %v", server.Status.Unreachable.SinceTime, since)
	}
}

func metricsOf(t *testing.T, s *serverUnderTest) string {
	t.Helper()
	res, err := http.Get("http://" + s.manager + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
