package kubeapi

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
)

// hanging is an API server that answers writes only when it is let.
type hanging struct {
	client.Client
	asked, answer chan struct{}
}

func (h *hanging) Status() client.SubResourceWriter { return hangingStatus{hanging: h} }

type hangingStatus struct {
	client.SubResourceWriter
	*hanging
}

func (h hangingStatus) Patch(ctx context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	h.asked <- struct{}{}
	select {
	case <-h.answer:
		object.SetResourceVersion("2")
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A pod that is stopped asks whether its DataServer is deleted, and reports that it stops: neither may wait for an API server that hangs.
func TestAWriteThatHangsDelaysNothingElse(t *testing.T) {
	server := &hanging{asked: make(chan struct{}), answer: make(chan struct{})}
	source := NewDetachedSource(server)
	dataServer := dataservertest.DataServer(1)
	dataServer.UID, dataServer.ResourceVersion = "u", "1"
	source.ObjectChanged(dataServer)
	source.SetSynced()
	set := func(node string) func(internalv1.DataServerStatus) internalv1.DataServerStatus {
		return func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
			status.NodeName = node
			return status
		}
	}
	written := make(chan error, 1)
	go func() { written <- source.Report(t.Context(), set("a")) }()
	<-server.asked
	soon := func(what string, do func()) {
		t.Helper()
		done := make(chan struct{})
		go func() {
			defer close(done)
			do()
		}()
		select {
		case <-done:
		case <-time.After(timeout / 10):
			t.Fatalf("%s waits for the write", what)
		}
	}
	soon("IsDeleted", func() {
		if source.IsDeleted() {
			t.Error("it is taken for deleted")
		}
	})
	soon("another report", func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := source.Report(ctx, set("b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	deleted := dataServer.DeepCopy()
	now := metav1.Now()
	deleted.ResourceVersion, deleted.DeletionTimestamp = "3", &now
	soon("an event", func() { source.ObjectChanged(deleted) })
	soon("IsDeleted", func() {
		if !source.IsDeleted() {
			t.Error("a deletion is not seen while a write hangs")
		}
	})
	close(server.answer)
	mustWork(t, "the write", <-written)
	if !source.IsDeleted() {
		t.Error("the deletion is lost after the write")
	}
	select {
	case <-source.Desired():
	case <-time.After(timeout):
		t.Error("what was seen during the write is not offered")
	}
}

// The watch may show an own write before its answer comes.
func TestTheEchoOfAWriteIsNoChange(t *testing.T) {
	server := &hanging{asked: make(chan struct{}), answer: make(chan struct{})}
	source := NewDetachedSource(server)
	dataServer := dataservertest.DataServer(1)
	dataServer.UID, dataServer.ResourceVersion = "u", "1"
	source.ObjectChanged(dataServer)
	source.SetSynced()
	<-source.Desired()
	written := make(chan error, 1)
	go func() {
		written <- source.Report(t.Context(), func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
			status.NodeName = "a"
			return status
		})
	}()
	<-server.asked
	echo := dataServer.DeepCopy()
	echo.ResourceVersion, echo.Status.NodeName = "2", "a"
	source.ObjectChanged(echo)
	close(server.answer)
	mustWork(t, "the write", <-written)
	select {
	case <-source.Desired():
		t.Error("the echo of an own write is offered as a change")
	case <-time.After(3 * settle):
	}
}

// After the API's database was restored, the DataServer and its exports have earlier versions, and count.
func TestARestoredSpecificationIsTaken(t *testing.T) {
	source := NewDetachedSource(nil)
	state := func(version string, index int32) (*internalv1.DataServer, *internalv1.ShareExport) {
		server, export := dataservertest.DataServer(index), dataservertest.NewExport(dataservertest.ShareSpec("data"))
		server.UID, server.ResourceVersion, server.Generation = "server", version, int64(index)
		export.UID, export.ResourceVersion, export.Generation = "export", version, int64(index)
		return server, export
	}
	take := func(version string, index int32) {
		server, export := state(version, index)
		source.ObjectChanged(server)
		source.ExportSeen(export)
	}
	expect := func(what string, index int64) {
		t.Helper()
		source.Offer()
		got := <-source.Desired()
		if len(got.Exports) != 1 || got.Server.Generation != index || got.Exports[0].Generation != index {
			t.Errorf("%s: generation %d, exports %v", what, got.Server.Generation, got.Exports)
		}
	}
	take("9", 2)
	source.SetSynced()
	expect("at first", 2)
	take("5", 1)
	expect("an echo that is late", 2)
	server, export := state("5", 1)
	source.Rewound(server)
	source.Rewound(export)
	take("5", 1)
	expect("restored", 1)
	take("4", 3)
	expect("late again", 1)
}
