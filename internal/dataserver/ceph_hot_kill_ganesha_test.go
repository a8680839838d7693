package dataserver

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// A data server that is killed loses its locks in Ceph, and its clients reclaim them. Each data server has a grace of its own, so a client of
// another one may be first (docs/operate/ceph.md says so). What must never be is two clients with one lock by the word of their servers.
func TestALockInAHotDirectoryHasOneHolderAfterAKillInARealCephCluster(t *testing.T) {
	_, first, ends := twoEnds(t)
	for _, contended := range []bool{false, true} {
		time.Sleep(supervisor.SettledAfter + time.Second) // Not to be held back.
		name := map[bool]string{false: "alone", true: "contended"}[contended]
		holder := ends[0].lockerOf(name)
		if status := holder.take(nfsv4.WRITE_LT, 0, 10, false); status != nfsv4.NFS4_OK {
			t.Fatalf("a lock: %s", client.StatusName(status))
		}
		ends[0].put("written", name)
		other := ends[1].lockerOf(name)
		starts := first.supervisor.State().Starts
		mustWork(t, "kill", syscall.Kill(first.pid(), syscall.SIGKILL))
		began := time.Now()
		since := func() time.Duration { return time.Since(began).Round(10 * time.Millisecond) }
		stop := make(chan struct{})
		var took time.Duration
		var contender sync.WaitGroup
		contender.Go(func() {
			// What the killed one had capabilities for.
			if seen := ends[1].look("written"); seen.data != name {
				t.Errorf("what was committed before the kill reads %q", seen.data)
			}
			t.Logf("FIGURE killed: a client of the other data server reads what was written through the killed one after %s", since())
			for contended && took == 0 {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				switch status := other.take(nfsv4.WRITE_LT, 0, 10, false); status {
				case nfsv4.NFS4_OK:
					took = since()
				case nfsv4.NFS4ERR_DENIED, nfsv4.NFS4ERR_DELAY:
				default:
					t.Errorf("the contender: %s", client.StatusName(status))
					return
				}
			}
		})
		first.awaitStart(starts)
		back := &end{dialWireAs(t, ends[0].name, "10.99.0.1:2049", 1), ends[0].name}
		results := back.results(user, putHandle(holder.handle), reclaimBy("opener"))
		again := &locker{end: back, handle: holder.handle, open: openedState(results[len(results)-1])}
		reclaimed := again.take(nfsv4.WRITE_LT, 0, 10, true)
		when := since()
		back.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
		close(stop)
		contender.Wait()
		t.Logf("FIGURE killed with a lock, %s: reclaimed after %s with %s; the client of the other data server had it after %s (0s: never)",
			name, when, client.StatusName(reclaimed), took)
		switch {
		case reclaimed == nfsv4.NFS4_OK && took != 0:
			t.Errorf("%s: both have the lock", name)
		case reclaimed != nfsv4.NFS4_OK && took == 0:
			t.Errorf("%s: neither has the lock", name)
		case !contended && other.take(nfsv4.WRITE_LT, 0, 10, false) != nfsv4.NFS4ERR_DENIED:
			t.Errorf("%s: a reclaimed lock does not hold at the other data server", name)
		}
		other.close()
		again.close()
		ends[0] = back
		first.settle()
	}
}
