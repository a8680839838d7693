package dataserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// waits are the answers that make a client wait, or have it make a new session, beside success.
var waits = []nfsv4.Nfsstat4{nfsv4.NFS4_OK, nfsv4.NFS4ERR_DELAY, nfsv4.NFS4ERR_GRACE, nfsv4.NFS4ERR_BADSESSION}

// asker asks one thing again and again, and connects again when ganesha has ended.
type asker struct {
	t           *testing.T
	what, owner string
	ask         func(w *wire) []operation
	// left: from now on it may be stale. wrong are answers that no client may have got.
	left  *atomic.Bool
	wrong []string
	last  nfsv4.Nfsstat4
}

// askerOwner is the client owner of an asker. All moves have the same ones, so grace ends as soon as all are back.
func askerOwner(i int) string { return fmt.Sprintf("asker %d of a move", i) }

func (a *asker) run(stop <-chan struct{}) {
	var w *wire
	for {
		select {
		case <-stop:
			return
		case <-time.After(2 * time.Millisecond):
		}
		if w == nil {
			if w = a.connect(); w == nil {
				continue
			}
		}
		mayBeStale := a.left.Load()
		status, _, err := w.try(user, w.inOrder(a.ask(w))...)
		switch {
		case err != nil || status == nfsv4.NFS4ERR_BADSESSION:
			_ = w.connection.Close()
			w = nil
			continue
		case !slices.Contains(waits, status) && (status != nfsv4.NFS4ERR_STALE || !mayBeStale && !a.left.Load()):
			a.wrong = append(a.wrong, client.StatusName(status))
		}
		a.last = status
	}
}

// connect makes a session as a client does that was there before; nil: ganesha does not answer.
func (a *asker) connect() *wire {
	connection, err := net.DialTimeout("tcp", "10.99.0.1:2049", time.Second)
	if err != nil {
		return nil
	}
	w := &wire{t: a.t, connection: connection, minor: 1}
	status, results, err := w.try(root, exchangeID(a.owner, [8]byte{}))
	if w.identified(status, results); err == nil && status == nfsv4.NFS4_OK {
		status, results, err = w.try(root, w.newSession())
		if w.inSession(status, results); err == nil && status == nfsv4.NFS4_OK {
			_, _, err = w.try(root, w.inOrder([]operation{&nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}})...)
		}
	}
	if err != nil || status != nfsv4.NFS4_OK {
		_ = connection.Close()
		return nil
	}
	return w
}

// try is send for a ganesha that may end meanwhile.
func (w *wire) try(cred client.Credentials, operations ...operation) (nfsv4.Nfsstat4, []nfsv4.NfsResop4, error) {
	answer, err := w.exchange(w.encode(cred, operations...))
	if err != nil {
		return nfsv4.NFS4ERR_IO, nil, err
	}
	status, results := w.decode(answer)
	return status, results, nil
}

// clientsOfAKilledMoveWait: ganesha is killed at each change of a move's source. Until the target has the directory its clients wait, whatever they
// ask for: Linux takes one ESTALE on a path, and gives the second to the program.
func clientsOfAKilledMoveWait(t *testing.T) {
	s := exported(t, "killed-moves")
	for i, change := range []string{"freeze", "refuse", "hide", "frozen", "promise", "leave", "trash", "left"} {
		t.Run(change, func(t *testing.T) { clientsWait(t, s, fmt.Sprintf("d%d", i), change) })
	}
}

// clientsWait moves a directory while it is asked for, and ganesha is killed before a change.
func clientsWait(t *testing.T, s *dataServer, name, change string) {
	const volume = "/volumes/killed-moves/0/"
	id := "move-of-" + name
	inner := volume + "alpha/" + name + "/inner"
	mustWork(t, "mkdir", os.MkdirAll(inner, 0o777))
	mustWork(t, "chmod", os.Chmod(inner, 0o777))
	putFile(t, inner+"/file", "before", 0o666)
	w := (&asker{t: t, owner: askerOwner(0)}).connect()
	if w == nil {
		t.Fatal("ganesha does not answer")
	}
	at := func(names ...string) []operation { return lookUp(append([]string{"alpha", "0"}, names...)...) }
	top, parent, directory, file := w.handle(user, at()...), w.handle(user, at(name)...), w.handle(user, at(name, "inner")...), w.handle(user, at(name, "inner", "file")...)

	var left atomic.Bool
	askers := []*asker{
		{what: "making a file", ask: func(w *wire) []operation { return []operation{putHandle(directory), w.open("made", readWrite)} }},
		{what: "a handle of the directory", ask: func(*wire) []operation { return []operation{putHandle(parent), getMode()} }},
		{what: "a handle of a file", ask: func(*wire) []operation { return []operation{putHandle(file), getMode()} }},
		{what: "a LOOKUP in it", ask: func(*wire) []operation { return []operation{putHandle(directory), lookUpName("file"), getMode()} }},
		{what: "a LOOKUP of its name", ask: func(*wire) []operation { return []operation{putHandle(top), lookUpName(name), getMode()} }},
		{what: "the way to it from the root", ask: func(*wire) []operation { return then(at(name, "inner", "file"), getMode()) }},
	}
	var asking sync.WaitGroup
	stop := make(chan struct{})
	for i, a := range askers {
		a.t, a.owner, a.left = t, askerOwner(i), &left
		asking.Go(func() { a.run(stop) })
	}
	var killed atomic.Bool
	s.moves.Before = func(now string) {
		if now == "leave" {
			left.Store(true)
		}
		if now == change && killed.CompareAndSwap(false, true) {
			_ = syscall.Kill(s.pid(), syscall.SIGKILL)
		}
	}
	moved := &sourceTask{s: s, id: id, path: name}
	moved.step(t, internalv1.MoveFreezing, internalv1.MoveStateFrozen)
	moved.promise(t, volume+".howdah/moves/"+id+"/move.json")
	moved.step(t, internalv1.MoveLeaving, internalv1.MoveStateLeft)
	s.settle()
	time.Sleep(100 * time.Millisecond)
	close(stop)
	asking.Wait()
	for _, a := range askers {
		if len(a.wrong) > 0 || a.last != nfsv4.NFS4ERR_STALE {
			t.Errorf("%s: wrong answers %v; the last one is %s", a.what, a.wrong, client.StatusName(a.last))
		}
	}
	if !killed.Load() {
		t.Errorf("there is no change %q", change)
	}
}

// sourceTask gives a data server the tasks of a move's source.
type sourceTask struct {
	s        *dataServer
	id, path string
	sequence int64
}

func (m *sourceTask) step(t *testing.T, step internalv1.MoveStep, until internalv1.MoveState) {
	t.Helper()
	m.sequence++
	m.s.apply(func(spec *dataservertest.Wanted) {
		spec.Moves = []internalv1.MoveTask{{
			ID: m.id, Role: internalv1.MoveSource, FileShareRef: internalv1.FileShareReference{Name: "alpha"}, Path: m.path, Volume: ptr.To(int32(0)),
			Peer: internalv1.DataServerReference{Name: "training-1"}, Step: step, Attempt: 1, Sequence: m.sequence, OpenFiles: internalv1.MoveOpenFilesInterrupt,
		}}
	})
	m.s.await(string(until), func(status dataservertest.Reported) bool {
		return len(status.Moves) == 1 && status.Moves[0].ID == m.id && status.Moves[0].State == until
	})
}

// promise asks for the promise, as the target does.
func (m *sourceTask) promise(t *testing.T, journal string) {
	t.Helper()
	text, err := os.ReadFile(journal)
	mustWork(t, "read the journal", err)
	freeze := regexp.MustCompile(`"freeze":"([A-Z0-9]+)"`).FindSubmatch(text)
	if freeze == nil {
		t.Fatalf("the journal has no freeze: %s", text)
	}
	conn, err := m.s.asDataServer(t.Context(), "training-1")
	mustWork(t, "connect", err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "{\"move\":%q,\"kind\":\"promise\",\"freeze\":%q}\n", m.id, freeze[1])
	mustWork(t, "ask", err)
	if answer, err := io.ReadAll(conn); err != nil || regexp.MustCompile("error").Match(answer) {
		t.Fatalf("not promised: %s, %v", answer, err)
	}
}
