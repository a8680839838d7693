package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8s "sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// openWaitingRoom gives its address, how many were let in, and what ends it.
func openWaitingRoom(t *testing.T, stay time.Duration, places int) (address string, entered *atomic.Int32, end func()) {
	t.Helper()
	listener, err := listenForWaiting(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered = &atomic.Int32{}
	room := newWaitingRoom(stay, places, func() { entered.Add(1) }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		room.serve(ctx, listener)
	}()
	end = func() {
		cancel()
		<-ended
	}
	t.Cleanup(end)
	return listener.Addr().String(), entered, end
}

// The address of a data server without a pod leads there: the probe of another namespace server must not take it for the data server.
func TestAWaitingRoomIsNoDataServerThatAnswers(t *testing.T) {
	address, entered, _ := openWaitingRoom(t, waitingTime, 1)
	if err := nfs.Knock(t.Context(), address); !errors.Is(err, syscall.ECONNRESET) || entered.Load() != 1 {
		t.Errorf("%v, %d were let in", err, entered.Load())
	}
}

// waitThere connects, and tells in the channel how that ended and after how long.
func waitThere(t *testing.T, address string) <-chan visit {
	t.Helper()
	began := time.Now()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	// Clients send their requests. It comes before the reset, which is reported once, and Read must get it.
	if _, err := connection.Write(make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	visits := make(chan visit, 1)
	go func() {
		_ = connection.SetReadDeadline(began.Add(20 * time.Second))
		n, err := connection.Read(make([]byte, 1))
		visits <- visit{time.Since(began), n, err}
		_ = connection.Close()
	}()
	return visits
}

type visit struct {
	took  time.Duration
	bytes int
	err   error
}

func TestAWaitingConnectionGetsAResetAndNoData(t *testing.T) {
	const stay = 300 * time.Millisecond
	address, entered, _ := openWaitingRoom(t, stay, 10)
	var visits []<-chan visit
	for range 5 {
		visits = append(visits, waitThere(t, address))
		time.Sleep(stay / 10)
	}
	for i, visits := range visits {
		if v := <-visits; v.bytes != 0 || !errors.Is(v.err, syscall.ECONNRESET) || v.took < stay {
			t.Errorf("%d: %d bytes and %v after %s", i, v.bytes, v.err, v.took)
		}
	}
	if n := entered.Load(); n != 5 {
		t.Errorf("%d were counted", n)
	}
}

func TestAConnectionWithoutAPlaceWaitsForOne(t *testing.T) {
	const stay = 200 * time.Millisecond
	address, entered, _ := openWaitingRoom(t, stay, 2)
	var visits []<-chan visit
	began := time.Now()
	for range 6 {
		visits = append(visits, waitThere(t, address))
	}
	time.Sleep(stay / 4)
	if n := entered.Load(); n > 2 && time.Since(began) < stay {
		t.Errorf("%d are in a room for two", n)
	}
	for i, visits := range visits {
		if v := <-visits; !errors.Is(v.err, syscall.ECONNRESET) || v.took < stay {
			t.Errorf("%d: %v after %s", i, v.err, v.took)
		}
	}
	if took := time.Since(began); took < 3*stay {
		t.Errorf("six went through a room for two in %s", took)
	}
}

func TestTheWaitingRoomEndsWithTheContext(t *testing.T) {
	address, entered, end := openWaitingRoom(t, time.Hour, 1)
	inside, outside := waitThere(t, address), waitThere(t, address)
	for deadline := time.Now().Add(10 * time.Second); entered.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no connection is accepted")
		}
	}
	end()
	for where, visits := range map[string]<-chan visit{"in the room": inside, "before it": outside} {
		if v := <-visits; !errors.Is(v.err, syscall.ECONNRESET) {
			t.Errorf("who was %s: %v", where, v.err)
		}
	}
	if connection, err := net.Dial("tcp", address); err == nil {
		_ = connection.Close()
		t.Error("it still listens")
	}
}

func TestHowLongOneWaits(t *testing.T) {
	const stay = 2 * time.Second
	came := time.Now()
	for name, tc := range map[string]struct {
		since time.Duration // After a data server has reported that it comes.
		want  time.Duration // The same.
	}{
		"one that has waited already tries again when connections are led there": {-time.Second, leadTime},
		"one that has just come is not taken for one that a data server refuses": {-comingTime / 10, comingTime - comingTime/10},
		"who comes later": {time.Second, time.Second + comingTime},
		"who comes when it should be there for long": {comingFor + time.Second, comingFor + time.Second + stay},
		"who would go anyway":                        {leadTime/2 - stay, leadTime / 2},
	} {
		room := &waitingRoom{stay: stay}
		if got := room.until(came.Add(tc.since)); !got.Equal(came.Add(tc.since + stay)) {
			t.Errorf("%s, and none comes: %s", name, got.Sub(came))
		}
		room.came = came
		if got := room.until(came.Add(tc.since)); !got.Equal(came.Add(tc.want)) {
			t.Errorf("%s: %s after its report, want %s", name, got.Sub(came), tc.want)
		}
	}
}

// The next pod of a data server reports, or its container starts again: connections are led to it any moment.
func TestWhoWaitsTriesAgainWhenADataServerComes(t *testing.T) {
	w := newWorld(t, 1)
	server := w.serve("a")
	for name, report := range map[string]func(try int) (pod, reason string){
		"another pod":           func(try int) (pod, reason string) { return fmt.Sprint("pod-", try), internalv1.ReasonStarting },
		"the same pod, started": func(int) (pod, reason string) { return "pod", internalv1.ReasonStarting },
	} {
		soon := false
		for try := 0; try < 20 && !soon; try++ { // Everything may take longer than one waits, once.
			w.reports(0, "pod", internalv1.ReasonStopping)
			time.Sleep(leadTime)
			visit := waitThere(t, server.waitingRoom)
			time.Sleep(comingTime)
			pod, reason := report(try)
			w.reports(0, pod, reason)
			v := <-visit
			soon = errors.Is(v.err, syscall.ECONNRESET) && v.took >= comingTime && v.took < waitingTime-leadTime
		}
		if !soon {
			t.Errorf("%s: those who wait are not reset before their time", name)
		}
	}
}

// reports has a data server report that it is not ready, and why.
func (w *world) reports(i int, pod, reason string) {
	w.t.Helper()
	owner := &internalv1.DataServer{}
	if err := w.api.Get(w.t.Context(), k8s.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, int32(i))}, owner); err != nil {
		w.t.Fatal(err)
	}
	owner.Status.PodUID = pod
	meta.SetStatusCondition(&owner.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason})
	if err := w.api.Status().Update(w.t.Context(), owner); err != nil {
		w.t.Fatal(err)
	}
}
