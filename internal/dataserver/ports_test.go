package dataserver

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/naming"
)

func TestGaneshasOwnMetricsHaveOneUsualPort(t *testing.T) {
	if got := naming.DataServerPorts(0).Ganesha; got != ganesha.DefaultMonitoringPort {
		t.Errorf("internal/naming has port %d, internal/ganesha %d", got, ganesha.DefaultMonitoringPort)
	}
}

// fivePorts are free at this moment, as far as this machine's other programs go.
func fivePorts(t *testing.T) (first int32) {
	t.Helper()
	for first = 21000; first < 29000; first += v1alpha1.HostNetworkPorts {
		if portTaken(t.Context(), Options{FirstPort: first}) == nil {
			return first
		}
	}
	t.Fatal("no five ports are free")
	return 0
}

func TestADataServerWaitsForItsPortsAndSaysWhichIsTaken(t *testing.T) {
	first := fivePorts(t)
	number := strconv.Itoa(int(first) + 2)
	taken, err := net.Listen("tcp", ":"+number)
	mustWork(t, "take a port", err)
	defer func() { _ = taken.Close() }()
	options := Options{NodeName: "node-a", PodIP: "10.0.0.1", PodUID: "uid-1", FirstPort: first, Log: quiet}
	reports := make(chan internalv1.DataServerStatus, 1000)
	report := func(_ context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
		reports <- build(internalv1.DataServerStatus{})
		return nil
	}
	wait := func(ctx context.Context) chan bool {
		done := make(chan bool, 1)
		go func() { done <- awaitPorts(ctx, options, report) }()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := wait(ctx)
	select {
	case status := <-reports:
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != internalv1.ReasonPortTaken || !strings.HasPrefix(ready.Message, "port "+number+" of node node-a can't be used: ") ||
			!strings.Contains(ready.Message, "address already in use") || status.PodUID != "uid-1" {
			t.Errorf("%+v", status)
		}
	case <-time.After(timeout):
		t.Fatal("it reports nothing")
	}
	cancel()
	if <-done {
		t.Error("it went on without the port")
	}
	done = wait(t.Context())
	mustWork(t, "give the port back", taken.Close())
	select {
	case free := <-done:
		if !free {
			t.Error("it ended")
		}
	case <-time.After(timeout):
		t.Error("it did not go on")
	}
	if !awaitPorts(t.Context(), Options{}, report) {
		t.Error("a pod with a network of its own has its ports")
	}
}
