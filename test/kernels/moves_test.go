package kernels

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// killedAfter is when in a freeze ganesha is killed.
	killedAfter = 100 * time.Millisecond
	// deafFor is how long namespace servers do not hear of a move: longer than the old owner lets clients wait for that.
	deafFor = 8 * time.Second
	// movedWithin is how long clients may wait for a move with a mishap: for the freeze, grace, the last pause of Linux (15 s), and what is amiss.
	movedWithin = time.Minute
)

// testMoves moves a directory there and back while clients work in it by its path: they wait, and none gets an error, whatever goes wrong.
func (w *world) testMoves(t *testing.T) {
	w.share("moved", 1, nil)
	for i, c := range w.clients {
		if i == 0 {
			w.spread(t, c, "moved")
		} else {
			c.mount(t, "/moved", "nconnect=2")
		}
		host(t, "cp %s %s", w.binary, filepath.Join(c.folder, "howdah"))
	}
	for _, mishap := range []struct {
		name     string
		from     int
		at       internalv1.MoveStep
		happens  func()
		lastsFor time.Duration
	}{
		{name: "the source's ganesha is killed", from: 0, at: internalv1.MoveFreezing, happens: func() {
			time.AfterFunc(killedAfter, func() { _ = syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGKILL) })
		}},
		// They know the old owner only, when that refuses the directory.
		{name: "namespace servers hear nothing of the API", from: 1, at: internalv1.MoveLeaving, lastsFor: deafFor, happens: func() {
			for i := range fronts {
				cut(t, testAddress, namespaceAddress(i))
			}
			time.AfterFunc(deafFor, func() { heal(t) })
		}},
	} {
		t.Run(mishap.name, func(t *testing.T) {
			var ends []func() result
			for _, c := range w.clients {
				wait := c.start(t, fmt.Sprintf(loadCommand, fmt.Sprintf("from%d-%s", mishap.from, c.name), "--do files,opens --pause 50ms --bytes 8Mi", 45*time.Second+mishap.lastsFor, "/mnt/share/a0"))
				ends = append(ends, func() result { return wait(t.Context()) })
			}
			time.Sleep(3 * time.Second)
			w.copyDirectory(t, "moved", "a0", mishap.from, 1-mishap.from, map[internalv1.MoveStep]func(){mishap.at: mishap.happens})
			for i, c := range w.clients {
				found := loadResult(t, c, ends[i]())
				if err := found.Verdict(movedWithin + mishap.lastsFor); err != nil {
					t.Errorf("%s: %v\n%s", c.name, err, found.Text())
				}
			}
		})
	}
}

// copyMove is the move of a directory from one data server's volume to another's.
type copyMove struct {
	*world
	t           *testing.T
	share, path string
	from, to    int
	now         internalv1.DirectoryMove
}

// copyDirectory moves a directory as the operator does. What is in happens is called before the step is written.
func (w *world) copyDirectory(t *testing.T, share, path string, from, to int, happens map[internalv1.MoveStep]func()) {
	t.Helper()
	place := func(owner int) internalv1.DirectoryPlace {
		return internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: naming.DataServer(fileServer, int32(owner))}, Volume: ptr.To(int32(0))}
	}
	m := &copyMove{world: w, t: t, share: share, path: path, from: from, to: to, now: internalv1.DirectoryMove{
		ID: string(uuid.NewUUID()), Source: place(from), Target: place(to), Step: internalv1.MoveCopying, StepTime: &metav1.Time{Time: time.Now()}, Sequence: 1,
	}}
	m.write(moving.Step)
	began := time.Now()
	for {
		next, outcome := moving.Next(m.now, moving.Input{Wanted: true, Now: time.Now(), Source: m.report(from), Target: m.report(to)})
		switch outcome {
		case moving.Done:
			m.write(moving.Done)
			t.Logf("it has moved after %s", time.Since(began).Round(time.Millisecond))
			return
		case moving.Stay:
		default:
			t.Logf("after %s: %s", time.Since(began).Round(time.Millisecond), next.Step)
			if call := happens[next.Step]; call != nil {
				delete(happens, next.Step)
				call()
			}
			m.now = next
			m.write(outcome)
		}
		if time.Since(began) > comeUp {
			t.Fatalf("the move does not end: it is %s, the reports are %+v and %+v", m.now.Step, m.report(from), m.report(to))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// write writes a step: first into the ShareDirectory, then what the data servers are to do.
func (m *copyMove) write(outcome moving.Outcome) {
	m.t.Helper()
	directory := &internalv1.ShareDirectory{}
	m.edit(m.t, directory, naming.Directory(fileServer, m.share, m.path), func() {
		directory.Spec.Move = m.now
		switch outcome {
		case moving.Flip:
			directory.Spec.DataServerRef, directory.Spec.Volume, directory.Spec.Identity = m.now.Target.DataServerRef, m.now.Target.Volume, string(uuid.NewUUID())
		case moving.Done:
			directory.Spec.Move = internalv1.DirectoryMove{}
		}
	})
	m.give(m.from, m.to, internalv1.MoveSource, outcome)
	m.give(m.to, m.from, internalv1.MoveTarget, outcome)
}

// give gives a data server its task.
func (m *copyMove) give(owner, peer int, role internalv1.MoveRole, outcome moving.Outcome) {
	m.t.Helper()
	server := &internalv1.DataServer{}
	m.edit(m.t, server, naming.DataServer(fileServer, int32(owner)), func() {
		server.Spec.Moves = nil
		if outcome == moving.Done {
			return
		}
		server.Spec.Moves = []internalv1.MoveTask{{
			ID: m.now.ID, Role: role, FileShareRef: internalv1.FileShareReference{Name: m.share}, Path: m.path, Volume: ptr.To(int32(0)),
			Peer: internalv1.DataServerReference{Name: naming.DataServer(fileServer, int32(peer))}, PeerAddress: ownerAddress(peer),
			Step: m.now.Step, Attempt: m.now.Attempt, Sequence: m.now.Sequence, OpenFiles: internalv1.MoveOpenFilesWait,
		}}
	})
}

// edit changes an object.
func (w *world) edit(t *testing.T, o client.Object, name string, change func()) {
	t.Helper()
	err := w.api.Get(t.Context(), types.NamespacedName{Namespace: kubeNamespace, Name: name}, o)
	if err == nil {
		before := o.DeepCopyObject().(client.Object)
		change()
		err = w.api.Patch(t.Context(), o, client.MergeFrom(before))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m *copyMove) report(owner int) *internalv1.MoveReport {
	m.t.Helper()
	server := &internalv1.DataServer{}
	if err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: kubeNamespace, Name: naming.DataServer(fileServer, int32(owner))}, server); err != nil {
		m.t.Fatal(err)
	}
	for i := range server.Status.Moves {
		if server.Status.Moves[i].ID == m.now.ID {
			return &server.Status.Moves[i]
		}
	}
	return nil
}
