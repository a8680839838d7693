package steward

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ganesha/realtest"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// What the frozen ganesha still had to write when it was frozen, and what its client wrote to it since, does not reach the files once the next
// one serves them. Both with the steward's fence and without it: the metadata servers end the old mount of each share before they accept the new
// one. Only the fence keeps the frozen ganesha out of the recovery records.
func TestAFrozenGaneshaCannotWriteInARealCephCluster(t *testing.T) {
	t.Run("fenced", func(t *testing.T) { frozen(t, true) })
	t.Run("not fenced", func(t *testing.T) { frozen(t, false) })
}

func frozen(t *testing.T, fenced bool) {
	w := newFrozenWorld(t)
	before := w.ganesha("a", 0, 2049)
	t.Cleanup(before.Kill) // It need not be able to stop.
	a := w.writeAndFreeze(before)
	if fenced {
		addresses := w.fence()
		t.Logf("FIGURE frozen, fenced after %s: %v", a.since(), addresses)
	}
	next := w.ganesha("b", 0, 2050)
	b := mustConnect(t, 2050, "another client")
	now := b.open(frozenShare, "file")
	t.Logf("FIGURE frozen, fenced %v: the next ganesha opens a file after %s", fenced, a.since())
	first, seen := w.change(now)
	if fenced {
		w.fencer.now = func() time.Time { return time.Now().Add(2 * firstLook) }
		addresses := w.fence()
		t.Logf("the clients that stay blocked: %v", addresses)
		if len(addresses) < 2 {
			t.Error("the steward does not keep the share's client blocked")
		}
	}
	recorded := w.records()

	w.must(syscall.Kill(before.PID(), syscall.SIGCONT))
	went := time.Now()
	w.clientSees(a, first, went)
	w.goOn(a, b, went)
	if ended := before.Ended(); ended != nil {
		t.Logf("the frozen one: %v", ended)
	}

	fresh := w.ganesha("c", 1, 2051)
	mustRead(now, "the next ganesha", seen)
	mustRead(mustConnect(t, 2051, "a third client").open(frozenShare, "file"), "a fresh mount", seen)
	w.mustHave(seen)
	changed := w.changed(recorded)
	if fenced && changed != "" {
		t.Errorf("the recovery records changed:%s", changed)
	}
	t.Logf("what changed in the recovery records:%s", changed)
	fresh.Stop()
	next.Stop()
}

// asked is a request of the frozen ganesha's client. If it succeeds, the blocks were written before the next ganesha served.
type asked struct {
	what     string
	promises []int
}

// frozenClient is the client of a ganesha that is frozen.
type frozenClient struct {
	*nfsClient
	file     *file
	waiting  map[uint32]asked
	frozenAt time.Time
}

func (a *frozenClient) since() time.Duration {
	return time.Since(a.frozenAt).Round(10 * time.Millisecond)
}

// later sends a request. Its answer is read when the ganesha goes on.
func (a *frozenClient) later(what string, all operations, promises ...int) {
	a.t.Helper()
	slot := uint32(len(a.waiting) + 1)
	if slot == slots {
		a.t.Fatal("too few slots")
	}
	xid, err := a.send(a.inSlot(slot, all...))
	if err != nil {
		a.t.Fatal(err)
	}
	a.waiting[xid] = asked{what, promises}
}

// writeAndFreeze has a client write through a ganesha and freezes that. Of each four blocks one is written then and in ganesha's cache, one is
// on its way through ganesha, one gets to the frozen ganesha, and one is left alone.
func (w *frozenWorld) writeAndFreeze(server *realtest.Server) *frozenClient {
	w.t.Helper()
	a := &frozenClient{nfsClient: mustConnect(w.t, 2049, "client of the frozen one"), waiting: map[uint32]asked{}}
	a.file = a.open(frozenShare, "file")
	for block := range blocks {
		a.must("write", a.file.writing(uint64(block*blockEvery), content("before", block), nfsv4.FILE_SYNC4)...)
	}
	short, gone := a.open(frozenShare, "short"), a.open(frozenShare, "gone")
	a.must("write", short.writing(0, content("before", 0), nfsv4.FILE_SYNC4)...)
	// The steward is connected, as it always is.
	_, err := w.fencer.connector.connected(w.t.Context(), &w.request.steward.Spec.Ceph)
	w.must(err)

	var cached []int
	for block := 0; block < blocks; block += 4 {
		a.must("write", a.file.writing(uint64(block*blockEvery), content("late", block), nfsv4.UNSTABLE4)...)
		cached = append(cached, block)
	}
	a.must("write", short.writing(blockEvery, content("late", 1), nfsv4.UNSTABLE4)...)
	a.must("write", gone.writing(0, content("late", 0), nfsv4.UNSTABLE4)...)
	for block := 1; block < blocks; block += 4 {
		a.later("a write on its way", a.file.writing(uint64(block*blockEvery), content("late", block), nfsv4.FILE_SYNC4), block)
	}
	w.must(syscall.Kill(server.PID(), syscall.SIGSTOP))
	a.frozenAt = time.Now()
	for block := 2; block < blocks; block += 4 {
		a.later("a write after the freeze", a.file.writing(uint64(block*blockEvery), content("late", block), nfsv4.FILE_SYNC4), block)
	}
	a.later("COMMIT after the freeze", a.file.committing(), cached...)
	a.later("an open that makes a file, after the freeze", append(at(frozenShare), openOperation(a.clientID, "late")))
	return a
}

// change reads all blocks through the next ganesha, writes half of them, and changes the other files. It returns what was read first, and what
// is there then.
func (w *frozenWorld) change(now *file) (first, seen [][]byte) {
	w.t.Helper()
	first = readAll(now)
	for block := range blocks {
		if isLate, isBefore := bytes.Equal(first[block], content("late", block)), bytes.Equal(first[block], content("before", block)); !isBefore && !isLate ||
			isLate && block%4 >= 2 {
			w.t.Errorf("the next ganesha reads %.40q in block %d", first[block], block)
		}
	}
	seen = slices.Clone(first)
	for block := range blocks {
		if block%8 < 4 { // The others are read only.
			now.must("write", now.writing(uint64(block*blockEvery), content("after", block), nfsv4.FILE_SYNC4)...)
			seen[block] = content("after", block)
		}
	}
	now.must("make it short", append(operations{now.open(frozenShare, "short").putFH()}, toNothing())...)
	now.must("remove", append(at(frozenShare), &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: "gone"}})...)
	mustRead(now, "the next ganesha", seen)
	return first, seen
}

// mustHave checks files, sizes and names without ganesha.
func (w *frozenWorld) mustHave(seen [][]byte) {
	w.t.Helper()
	mounted := filepath.Join(os.Getenv("HOWDAH_CEPH_MOUNTED"), w.path)
	whole, err := os.ReadFile(filepath.Join(mounted, "file"))
	w.must(err)
	for block := range blocks {
		if data := whole[block*blockEvery:][:blockSize]; !bytes.Equal(data, seen[block]) {
			w.t.Errorf("without ganesha block %d is %.40q, want %.40q", block, data, seen[block])
		}
	}
	var names []string
	entries, err := os.ReadDir(mounted)
	w.must(err)
	for _, entry := range entries {
		info, err := entry.Info()
		w.must(err)
		names = append(names, fmt.Sprintf("%s %d", entry.Name(), info.Size()))
	}
	if got, want := strings.Join(names, ", "), fmt.Sprintf("file %d, short 0", (blocks-1)*blockEvery+blockSize); got != want {
		w.t.Errorf("the directory has %s; want %s", got, want)
	}
}

// toNothing is SETATTR of the size 0.
func toNothing() nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
		Attrmask: nfsv4.Bitmap4{1 << nfsv4.FATTR4_SIZE}, AttrVals: make([]byte, 8),
	}}}
}

// clientSees logs the answers to what the frozen ganesha's client had asked before. first is what the next ganesha has read first.
func (w *frozenWorld) clientSees(a *frozenClient, first [][]byte, went time.Time) {
	w.t.Helper()
	saw := map[string]int{}
	for len(a.waiting) > 0 {
		answer, err := a.receive()
		if err != nil {
			saw[fmt.Sprintf("%d requests: %v", len(a.waiting), err)]++
			break
		}
		request, found := a.waiting[answer.xid]
		if !found {
			continue
		}
		delete(a.waiting, answer.xid)
		saw[request.what+": "+nfs.StatusName(answer.status)]++
		for _, block := range request.promises {
			if answer.status == nfsv4.NFS4_OK && !bytes.Equal(first[block], content("late", block)) {
				w.t.Errorf("%s succeeded, and block %d was lost: the next ganesha has read %.40q", request.what, block, first[block])
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(saw)) {
		w.t.Logf("FIGURE the frozen one's client after %s: %s, %d times", time.Since(went).Round(time.Millisecond), what, saw[what])
	}
}

// goOn has the client of the ganesha that was frozen go on with all that it can do, and a new one come to it, and logs each answer that is another
// than the last one. The client of the next ganesha keeps its lease.
func (w *frozenWorld) goOn(a *frozenClient, b *nfsClient, went time.Time) {
	w.t.Helper()
	last := map[string]string{}
	note := func(what, saw string) {
		if last[what] != saw {
			last[what] = saw
			if what == "COMMIT" && saw == nfs.StatusName(nfsv4.NFS4_OK) {
				w.t.Error("COMMIT succeeds, and what there is to commit was lost")
			}
			w.t.Logf("FIGURE the frozen one's client after %s: %s: %s", time.Since(went).Round(time.Millisecond), what, saw)
		}
	}
	broken := false
	for i := 0; time.Since(went) < goesOnFor; i++ {
		b.must("keep the lease", at(frozenShare)...)
		block := i % blocks
		for _, try := range []struct {
			what string
			all  operations
		}{
			{"READ", a.file.reading(uint64(block*blockEvery), blockSize)},
			{"WRITE and sync", a.file.writing(uint64(block*blockEvery), content("late", block), nfsv4.FILE_SYNC4)},
			{"WRITE", a.file.writing(uint64(block*blockEvery), content("late", block), nfsv4.UNSTABLE4)},
			{"COMMIT", a.file.committing()},
			{"OPEN of a new file", append(at(frozenShare), openOperation(a.clientID, "late"))},
			{"LOOKUP", at(frozenShare, "file")},
		} {
			if broken {
				break
			}
			answer, err := a.call(a.inSlot(0, try.all...))
			saw := nfs.StatusName(answer.status)
			if err != nil {
				broken, saw = true, err.Error()
			} else if try.what == "READ" && answer.status == nfsv4.NFS4_OK {
				saw += fmt.Sprintf(" with %.6q", dataOf(answer))
			}
			note(try.what, saw)
		}
		made, status, err := connect(w.t, 2049, fmt.Sprint("new client ", i))
		if err == nil && status == nfsv4.NFS4_OK {
			var answer nfsAnswer
			answer, err = made.call(made.inSlot(0, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}))
			status = answer.status
		}
		note("a new client", fmt.Sprintf("%s, %v", nfs.StatusName(status), err))
		time.Sleep(200 * time.Millisecond)
	}
}
