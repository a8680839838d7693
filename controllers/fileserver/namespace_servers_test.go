package fileserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/serverpod"
)

// fixture is two ready namespace servers whose answers the test sets.
type fixture struct {
	*namespaceServers
	pods    []corev1.Pod
	answers map[string]serverpod.Connections // by pod; one without does not answer
}

func newFixture() *fixture {
	d := &fixture{answers: map[string]serverpod.Connections{}}
	for _, name := range []string{"a", "b"} {
		p := pod(corev1.PodRunning, true)
		p.Name, p.Namespace, p.UID = name, "ns", types.UID(name)
		p.Labels = map[string]string{v1alpha1.FileServerLabel: "fs"}
		p.Status.PodIP = "10.0.0.1"
		d.pods = append(d.pods, *p)
		d.answers[name] = serverpod.Connections{Used: 100, Limit: 1000}
	}
	d.namespaceServers = newNamespaceServers(nil, clocktesting.NewFakeClock(time.Unix(0, 0)))
	d.namespaceServers.pods = func(context.Context) ([]corev1.Pod, error) { return d.pods, nil }
	d.ask = func(_ context.Context, p *corev1.Pod) (serverpod.Connections, error) {
		if answer, ok := d.answers[p.Name]; ok {
			return answer, nil
		}
		return serverpod.Connections{}, errors.New("no answer")
	}
	return d
}

// changes makes a round and tells whether the FileServer got a pass for it.
func (d *fixture) changes(t *testing.T) bool {
	t.Helper()
	if err := d.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-d.changed:
		if e.Object.GetNamespace() != "ns" || e.Object.GetName() != "fs" {
			t.Errorf("a pass for %s", e.Object.GetName())
		}
		return true
	default:
		return false
	}
}

func TestAFileServerIsReconciledForNamespaceServersOnlyWhenAReportChanges(t *testing.T) {
	few := func(used int32) serverpod.Connections { return serverpod.Connections{Used: used, Limit: 1000} }
	for name, tc := range map[string]struct {
		change func(*fixture)
		heard  bool
		used   int32
		full   string
	}{
		"nothing changed":                     {func(*fixture) {}, false, 200, ""},
		"a client came":                       {func(d *fixture) { d.answers["a"] = few(116) }, false, 216, ""},
		"many clients came":                   {func(d *fixture) { d.answers["a"] = few(300) }, true, 400, ""},
		"one is nearly full":                  {func(d *fixture) { d.answers["a"] = few(800) }, true, 900, "a (1000)"},
		"one does not answer":                 {func(d *fixture) { delete(d.answers, "a") }, false, 200, ""},
		"one is not ready":                    {func(d *fixture) { d.pods[0] = *pod(corev1.PodRunning, false) }, true, 100, ""},
		"one was replaced and was not asked":  {func(d *fixture) { d.pods[0].UID = "c"; delete(d.answers, "a") }, true, 100, ""},
		"one was replaced and answers":        {func(d *fixture) { d.pods[0].UID = "c" }, false, 200, ""},
		"they have more memory, and can more": {func(d *fixture) { d.answers["a"] = serverpod.Connections{Used: 100, Limit: 2000} }, true, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture()
			if !d.changes(t) {
				t.Fatal("the first figures are not reported")
			}
			tc.change(d)
			if heard := d.changes(t); heard != tc.heard {
				t.Errorf("heard: %v", heard)
			}
			use, known := d.of(d.pods)
			if !known || use.used != tc.used || strings.Join(use.full, " ") != tc.full {
				t.Errorf("%+v, known: %v", use, known)
			}
		})
	}
}

func TestANamespaceServersThatWasNotAskedYetIsAskedAtOnce(t *testing.T) {
	d := newFixture()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	pods := d.pods
	d.pods = nil
	asked := make(chan struct{}, 1)
	d.namespaceServers.pods = func(context.Context) ([]corev1.Pod, error) { asked <- struct{}{}; return pods, nil }
	if _, known := d.of(pods); known {
		t.Error("figures before anybody was asked")
	}
	go func() { done <- d.Start(ctx) }() // Its clock stands still.
	<-asked
	<-d.changed
	if _, known := d.of(pods); !known {
		t.Error("no figures after everybody was asked")
	}
	<-asked // of by itself asks again: it had found pods that were not asked
	pods[0].UID = "another"
	d.of(pods)
	<-asked
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestANamespaceServersThatDoesNotAnswerIsAskedOnceInARound(t *testing.T) {
	d := newFixture()
	d.answers = nil // Ready, and out of the operator's reach: a NetworkPolicy, say.
	if d.changes(t) {
		t.Error("connections of a pod that is gone")
	}
	for range 3 {
		if _, known := d.of(d.pods); known {
			t.Error("connections of a pod that is gone")
		}
	}
	select {
	case <-d.unasked:
		t.Error("asked for again before the next round, and so without an end")
	default:
	}
	d.answers = map[string]serverpod.Connections{"a": {Used: 1, Limit: 10}}
	if !d.changes(t) {
		t.Error("what it says in a later round is not reported")
	}
}

func TestTheOperatorAsksNamespaceServersAndTakesOnlyNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		body    string
		code    int
		want    serverpod.Connections
		refused bool
	}{
		"an answer":             {`{"used": 3, "limit": 4096}`, 200, serverpod.Connections{Used: 3, Limit: 4096}, false},
		"not serving yet":       {`not serving yet`, 503, serverpod.Connections{}, true},
		"another page":          {`<html>`, 200, serverpod.Connections{}, true},
		"too many to be true":   {`{"used": 99999999999, "limit": 4096}`, 200, serverpod.Connections{}, true},
		"no limit":              {`{"used": 3}`, 200, serverpod.Connections{}, true},
		"fewer than none":       {`{"used": -3, "limit": 4096}`, 200, serverpod.Connections{}, true},
		"an answer without end": {fmt.Sprintf(`{"x": %q, "used": 3, "limit": 4096}`, strings.Repeat("x", maxAnswer)), 200, serverpod.Connections{}, true},
		"somewhere else":        {"", 302, serverpod.Connections{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			// An address of its own on the loopback: the port is fixed.
			const address = "127.88.0.1"
			listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(v1alpha1.ManagerPort)))
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != serverpod.ConnectionsPath {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Location", "http://"+address+"/elsewhere")
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.body))
			})}
			go func() { _ = server.Serve(listener) }()
			defer func() { _ = server.Close() }()
			got, err := askConnections(t.Context(), &corev1.Pod{Status: corev1.PodStatus{PodIP: address}, ObjectMeta: metav1.ObjectMeta{Name: "p"}})
			if (err != nil) != tc.refused || !tc.refused && got != tc.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
