package dataserver

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
)

// directoriesThatMove: a frozen directory's clients wait, whatever they have of it; then they go on, or all of it is stale. Other directories of the
// share are served all the time.
func directoriesThatMove(t *testing.T) {
	s := exported(t, "frozen")
	const top = "/volumes/frozen/0/alpha"
	for _, directory := range []string{top + "/train/7/deep", top + "/train/8"} {
		mustWork(t, "mkdir", os.MkdirAll(directory, 0o777))
	}
	for _, directory := range []string{top + "/train", top + "/train/7", top + "/train/7/deep", top + "/train/8"} {
		mustWork(t, "chmod", os.Chmod(directory, 0o777))
	}
	putFile(t, top+"/train/7/deep/file", "before", 0o666)
	putFile(t, top+"/train/8/file", "other", 0o666)
	w := dialReady(t, "moves "+t.Name(), "10.99.0.1:2049", 2)
	train := []string{"alpha", "0", "train"}
	at := func(names ...string) []operation { return lookUp(append(train, names...)...) }
	held := map[string][]byte{}
	for _, names := range [][]string{{"7"}, {"7", "deep"}, {"7", "deep", "file"}} {
		held[names[len(names)-1]] = w.handle(user, at(names...)...)
	}
	parent := w.handle(user, lookUp(train...)...)
	opened := w.results(user, then(at("7", "deep"), w.open("file", readWrite))...)
	openFiles := internalv1.MoveOpenFilesWait
	state := opened[len(opened)-1].(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid
	sequence := int64(0)
	task := func(step internalv1.MoveStep, attempt int32) {
		sequence++
		s.apply(func(spec *dataservertest.Wanted) {
			spec.Moves = []internalv1.MoveTask{{
				ID: "move-0123", Role: internalv1.MoveSource, FileShareRef: internalv1.FileShareReference{Name: "alpha"}, Path: "train/7", Volume: ptr.To(int32(0)),
				Peer: internalv1.DataServerReference{Name: "training-1"}, Step: step, Attempt: attempt, Sequence: sequence,
				OpenFiles: openFiles,
			}}
		})
	}
	reported := func(state internalv1.MoveState, attempt int32) {
		t.Helper()
		s.await(string(state), func(status dataservertest.Reported) bool {
			return len(status.Moves) == 1 && status.Moves[0].State == state && status.Moves[0].Attempt == attempt
		})
	}
	all := func(what string, want nfsv4.Nfsstat4) {
		t.Helper()
		for name, handle := range held {
			w.mustAnswer(what+": PUTFH of "+name, user, []operation{putHandle(handle), getMode()}, want)
		}
		w.mustAnswer(what+": a READ with an open file", user, []operation{putHandle(held["file"]), readAll(state)}, want)
		w.mustAnswer(what+": an OPEN in it", user, []operation{putHandle(held["deep"]), w.open("new", readWrite)}, want, ifOK(want))
		w.mustAnswer(what+": a LOOKUP of its name", user, []operation{putHandle(parent), lookUpName("7")}, want)
		w.mustAnswer(what+": the way to it from the root", user, at("7"), want)
		w.mustAnswer(what+": its neighbour", user, at("8", "file"), nfsv4.NFS4_OK)
	}
	all("served", nfsv4.NFS4_OK)
	task(internalv1.MoveCopying, 0)
	reported(internalv1.MoveStateServing, 0)
	all("copied", nfsv4.NFS4_OK)

	// A file is open: it is not frozen. While it is tried, clients that open another one wait, and those with an open one go on.
	task(internalv1.MoveFreezing, 1)
	closing := time.Now()
	for w.Run(user, putHandle(held["deep"]), w.open("new", readWrite)) != nfsv4.NFS4ERR_DELAY {
		if time.Since(closing) > timeout {
			t.Fatal("clients open files all the time")
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.mustAnswer("closing: making a directory", user, []operation{putHandle(held["deep"]), create(&nfsv4.Createtype4_NF4DIR{}, "more")}, nfsv4.NFS4ERR_DELAY)
	w.mustAnswer("closing: a READ with an open file", user, []operation{putHandle(held["file"]), readAll(state)}, nfsv4.NFS4_OK)
	w.mustAnswer("closing: a LOOKUP in it", user, at("7", "deep", "file"), nfsv4.NFS4_OK)
	reported(internalv1.MoveStateInUse, 1)
	all("not frozen", nfsv4.NFS4_OK)
	openFiles = internalv1.MoveOpenFilesInterrupt
	task(internalv1.MoveFreezing, 1)
	reported(internalv1.MoveStateFrozen, 1)
	all("frozen", nfsv4.NFS4ERR_DELAY)
	hidden := then(lookUp("alpha", "0"), lookUpName(".howdah-moving-move-0123"))
	w.mustAnswer("the hidden name", user, hidden, nfsv4.NFS4ERR_DELAY)
	w.mustAnswer("a WRITE with an open file", user, []operation{putHandle(held["file"]), write(state, "lost")}, nfsv4.NFS4ERR_DELAY)
	if text, err := os.ReadFile(top + "/.howdah-moving-move-0123/deep/file"); err != nil || string(text) != "before" {
		t.Errorf("the frozen file is %q, %v", text, err)
	}

	// Ganesha learns it before it serves anybody, also when it is killed meanwhile.
	pid := s.pid()
	mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	for s.pid() == pid || s.pid() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	s.settle()
	w = dialReady(t, "moves again "+t.Name(), "10.99.0.1:2049", 2)
	for name, handle := range held {
		w.mustAnswer("after a kill: PUTFH of "+name, user, []operation{putHandle(handle), getMode()}, nfsv4.NFS4ERR_DELAY)
	}
	w.mustAnswer("after a kill: a LOOKUP of its name", user, []operation{putHandle(parent), lookUpName("7")}, nfsv4.NFS4ERR_DELAY)

	task(internalv1.MoveThawing, 1)
	reported(internalv1.MoveStateServing, 1)
	for name, handle := range held {
		w.mustAnswer("thawed: PUTFH of "+name, user, []operation{putHandle(handle), getMode()}, nfsv4.NFS4_OK)
	}
	w.mustAnswer("thawed: a LOOKUP of its name", user, at("7", "deep", "file"), nfsv4.NFS4_OK)
	for w.Run(user, then(at("7", "deep"), w.open("file", readWrite))...) == nfsv4.NFS4ERR_GRACE {
		time.Sleep(50 * time.Millisecond)
	}
	opened = w.results(user, then(at("7", "deep"), w.open("file", readWrite))...)
	state = opened[len(opened)-1].(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid
	w.mustAnswer("thawed: a WRITE", user, []operation{putHandle(held["file"]), write(state, "after!")}, nfsv4.NFS4_OK)

	task(internalv1.MoveFreezing, 2)
	reported(internalv1.MoveStateFrozen, 2)
	all("frozen again", nfsv4.NFS4ERR_DELAY)
	// The target has it promised, before it places its copy.
	journal, err := os.ReadFile("/volumes/frozen/0/.howdah/moves/move-0123/move.json")
	mustWork(t, "read the journal", err)
	freeze := regexp.MustCompile(`"freeze":"([A-Z0-9]+)"`).FindSubmatch(journal)
	if freeze == nil {
		t.Fatal("the journal has no freeze")
	}
	promised := func(from, freeze string) string {
		t.Helper()
		conn, err := s.asDataServer(t.Context(), from)
		mustWork(t, "connect", err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "{\"move\":\"move-0123\",\"kind\":\"promise\",\"freeze\":%q}\n", freeze)
		mustWork(t, "ask", err)
		answer, err := io.ReadAll(conn)
		mustWork(t, "read", err)
		return string(answer)
	}
	if got := promised("training-2", string(freeze[1])); !strings.Contains(got, "error") {
		t.Errorf("promised to another data server: %s", got)
	}
	if got := promised("training-1", "ANOTHER"); !strings.Contains(got, `"ended":true`) {
		t.Errorf("promised for another freeze: %s", got)
	}
	if got := promised("training-1", string(freeze[1])); strings.Contains(got, "error") {
		t.Errorf("not promised: %s", got)
	}
	task(internalv1.MoveLeaving, 2)
	reported(internalv1.MoveStateLeft, 2)
	all("gone", nfsv4.NFS4ERR_STALE)
	w.mustAnswer("a WRITE to what is gone", user, []operation{putHandle(held["file"]), write(state, "lost")}, nfsv4.NFS4ERR_STALE)
	w.mustAnswer("CLOSE of what is gone", user, []operation{putHandle(held["file"]), getMode(), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: state}}}, nfsv4.NFS4_OK)
	if text, err := os.ReadFile("/volumes/frozen/0/.howdah/moves/move-0123/data/deep/file"); err != nil || string(text) != "after!" {
		t.Errorf("the trash has %q, %v", text, err)
	}
	s.mustLive(t, s.pid())
}

// getMode asks for an attribute.
func getMode() operation {
	return &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{0, 1 << (nfsv4.FATTR4_MODE - 32)}}}
}

// ifOK is another answer that is good where OK is: a file may be open already.
func ifOK(want nfsv4.Nfsstat4) nfsv4.Nfsstat4 {
	if want == nfsv4.NFS4_OK {
		return nfsv4.NFS4ERR_GRACE
	}
	return want
}
