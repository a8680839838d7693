package hostile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	// envSeconds is the duration of each attack. make bench-hostile sets it, and checks the goals of time.
	envSeconds = "HOWDAH_HOSTILE_SECONDS"
	// attackLasts is the duration of an attack in make test, and holdLasts that of one that holds connections: long
	// enough to distinguish it from a busy machine.
	attackLasts, holdLasts = 500 * time.Millisecond, 7 * time.Second
	// goalStall is the longest wait of other clients, if goals of time are checked. Otherwise looseStall distinguishes
	// slow from stopped.
	goalStall, looseStall = time.Second, 6 * time.Second
	// goalMemory is the most memory that one attacker may make ganesha allocate.
	goalMemory = 128 << 20
	// cacheMemory is what ganesha's cache of 100,000 entries may take, which a client fills by listing as many: 1.9 KiB each, measured.
	// docs/operate/sizing.md counts it.
	cacheMemory = 256 << 20
	// threadMemory is what ganesha's 200 threads hold that each answer a READ of 1 MiB, and the replies that are kept beside them.
	threadMemory = 256 << 20
)

// attack is what one client does to others.
type attack struct {
	name string
	// by are the addresses that attack, each its own server.
	by []string
	// run attacks until the context ends, or returns earlier if more would change nothing. It returns what it noticed,
	// and in fault what it should not have got.
	run func(ctx context.Context, w *world, from string) (note string, fault error)
	// readsOnly: the share must be as before.
	readsOnly bool
	// lasts is the duration in make test; 0 is attackLasts.
	lasts time.Duration
	// memory is how much more the server may take; 0 is goalMemory.
	memory int64
}

// unshared are clients that the share does not admit.
var unshared = []string{unlisted, guest}

var attacks = []attack{
	// Attacks that once ended a server.
	{"a READDIR is sent again in its slot", unshared, readdirAgain, true, 0, 0},
	{"a PROXY header says LOCAL", unshared, proxyLocal, true, 0, 0},
	{"credentials are of RPCSEC_GSS", unshared, gss, true, 0, 0},
	{"operations of 4.2 have no handle", unshared, noHandle, true, 0, 0},
	{"LAYOUTRETURN of a file system has no handle", unshared, layoutreturnFSID, true, 0, 0},
	{"CLOSE gets a lock's state ID", []string{readOnly, readWrite}, closeLock, false, 0, 0},
	{"a READ is sent again in its slot", []string{readOnly, readWrite}, readAgain, false, 0, 0},
	{"opens are refused by the storage", []string{readWrite}, refusedOpens, true, 0, 0},
	{"owners are taken over while they lock", []string{readWrite}, expireWhileLocking, false, 0, 0},
	{"clients begin again while their sessions are used", unshared, expireWhileUsing, true, 0, 0},
	// Attacks that blocked the answers of all clients.
	{"600 connections send one byte", unshared, oneByte, true, holdLasts, 0},
	{"600 connections send the start of a PROXY header", unshared, proxyStart, true, holdLasts, 0},
	{"5,000 connections do nothing", unshared, idleConnections, true, holdLasts, 0},
	{"connections come and go", unshared, comeAndGo, true, 0, 0},
	{"200 calls read attributes of a FIFO", []string{readWrite}, fifo, false, 0, 0},
	{"sessions are destroyed whose callbacks have no answer", unshared, silentCallbacks, true, 0, 0},
	{"a file of 8 EiB is walked", []string{readWrite}, sparse, false, 0, 0},
	{"a directory with many entries is walked", []string{readWrite}, manyEntries, false, holdLasts, cacheMemory},
	{"device nodes are opened", []string{readOnly, readWrite}, devices, false, 0, 0},
	{"holes are longer than files can be", []string{readWrite}, longHoles, false, holdLasts, 0},
	{"holes are as long as the longest file", []string{readWrite}, wholeHoles, false, holdLasts, 0},
	{"a file is made longer than files can be", []string{readWrite}, longFiles, false, 0, 0},
	{"answers are not read", []string{readOnly, readWrite}, unread, true, holdLasts, 0},
	{"answers of a megabyte are not read", []string{readWrite}, unreadMegabytes, false, holdLasts, threadMemory},
	// Attacks that took memory.
	{"records of 300 MB", unshared, bigRecords, true, 0, 0},
	{"records of a million fragments", unshared, fragments, true, 0, 0},
	{"6,000 client IDs", unshared, manyClients, true, 0, 0},
	{"20,000 sessions of one client", unshared, manySessions, true, 0, 0},
	// Attacks that took or changed what belongs to others.
	{"EXCHANGE_ID has another client's owner", unshared, anothersOwner, true, 0, 0},
	{"sessions and client IDs are guessed", unshared, guess, true, 0, 0},
	{"CREATE_SESSION is sent again with an IRD", unshared, sessionAgain, true, 0, 0},
	{"files are called as the directory of snapshots is", []string{readWrite}, snapshotNames, false, holdLasts, 0},
	{"a read-only client changes data", []string{readOnly}, readOnlyChanges, true, 0, 0},
	// Beside NFS.
	{"metrics are asked for and not read", unshared, silentMetrics, true, 0, 0},
}

// TestAttacks runs each attack beside a well-behaved client at another address. That client continues within a second,
// keeps its lock and gets no error, and the server's memory stays bounded.
func TestAttacks(t *testing.T) {
	if !isInside(t) {
		return
	}
	for _, a := range attacks {
		for _, from := range a.by {
			t.Run(a.name+", by "+who(from), func(t *testing.T) { suffer(t, a, from) })
		}
	}
}

func who(address string) string {
	return map[string]string{
		unlisted: "an unlisted client", guest: "a guest of another share", readOnly: "a read-only client", readWrite: "a read-write client",
	}[address]
}

// isPutOff tells that a new client has to wait, because its address has as many as it may have (patch 0320).
func isPutOff(err error) bool {
	var refused *statusError
	return errors.As(err, &refused) && refused.what == "EXCHANGE_ID" && refused.status == nfsv4.NFS4ERR_DELAY
}

func suffer(t *testing.T, a attack, from string) {
	w := begin(t)
	before := w.contents(share)
	start, _, err := w.server.Memory()
	must(t, err)
	seconds, _ := strconv.ParseFloat(os.Getenv(envSeconds), 64) // Unset is 0.
	judged := seconds > 0
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(time.Duration(seconds*float64(time.Second)), a.lasts, attackLasts))
	defer cancel()
	watched := w.watching()
	note, fault := a.run(ctx, w, from)
	for a.lasts == 0 && fault == nil && ctx.Err() == nil && w.server.Ended() == nil {
		// Those that are soon over, or are refused, begin again, until the address has all clients that it may have.
		if note, fault = a.run(ctx, w, from); isPutOff(fault) {
			note, fault = "then it gets no more clients", nil
			break
		}
	}
	if note != "" {
		note = "; " + note
	}
	watched.end()
	now, most, err := w.server.Memory()
	if err != nil {
		now, most = 0, 0 // What ended it is reported below.
	}
	t.Logf("FIGURE %s, by %s: longest stall %s in %d calls, %d errors, memory %d MiB, at most %d MiB, then %d MiB%s",
		a.name, who(from), watched.longest.Round(time.Millisecond), watched.calls, len(watched.errors), start>>20, most>>20, now>>20, note)
	stall := looseStall
	if judged {
		stall = goalStall
	}
	watched.unharmed(t, stall)
	if most-start > cmp.Or(a.memory, goalMemory) && !w.server.Sanitized() {
		t.Errorf("the server took %d MiB more", (most-start)>>20)
	}
	if fault != nil {
		t.Error(fault)
	}
	if a.readsOnly {
		w.unchanged(share, before)
	}
	findings, err := w.server.Findings()
	must(t, err)
	if findings != "" {
		t.Errorf("sanitizers: %s", findings[:min(len(findings), 6000)])
	}
	began := time.Now()
	w.server.Stop()
	if took := time.Since(began); took > looseStall {
		t.Errorf("the server needed %s to stop", took)
	}
	w.endedWell()
	w.logFindings(len(findings))
}

// times does something for each number below n at once, and returns how often it worked.
func times(n int, do func(i int) error) (worked int, last error) {
	type outcome struct{ err error }
	outcomes := make(chan outcome, n)
	tokens := make(chan struct{}, 64)
	for i := range n {
		tokens <- struct{}{}
		go func() {
			defer func() { <-tokens }()
			outcomes <- outcome{do(i)}
		}()
	}
	for range n {
		if o := <-outcomes; o.err == nil {
			worked++
		} else {
			last = o.err
		}
	}
	return worked, last
}

// again repeats until the context ends, as far as connections are taken.
func again(ctx context.Context, do func() error) string {
	done, refused := 0, 0
	var last error
	for ctx.Err() == nil && done < 2000 {
		if err := do(); err != nil {
			last = err
			refused++
			if closed(err) {
				time.Sleep(time.Millisecond)
			}
			if refused > 200 {
				break
			}
		} else {
			done++
		}
	}
	return fmt.Sprintf("%d times, %d refused (%v)", done, refused, last)
}
