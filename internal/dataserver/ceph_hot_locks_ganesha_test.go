package dataserver

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// locker is a client that has a file open, and takes locks on it.
type locker struct {
	*end
	handle     []byte
	open, lock nfsv4.Stateid4
}

func (e *end) lockerOf(name string) *locker {
	e.t.Helper()
	results := e.results(user, then(hot(), e.wire.open(name, nfsv4.OPEN4_SHARE_ACCESS_BOTH), &nfsv4.NfsArgop4_OP_GETFH{})...)
	return &locker{
		end: e, open: openedState(results[len(results)-2]),
		handle: results[len(results)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object,
	}
}

// take takes a lock if it is free.
func (l *locker) take(kind nfsv4.NfsLockType4, offset, length uint64, reclaim bool) nfsv4.Nfsstat4 {
	l.t.Helper()
	args := nfsv4.Lock4args{Locktype: kind, Offset: offset, Length: length, Reclaim: reclaim}
	args.Locker = &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{
		OpenStateid: l.open, LockOwner: nfsv4.StateOwner4{Clientid: l.clientID, Owner: []byte("locker")},
	}}
	if l.lock != (nfsv4.Stateid4{}) {
		args.Locker = &nfsv4.Locker4_FALSE{LockOwner: nfsv4.ExistLockOwner4{LockStateid: l.lock}}
	}
	status, results := l.call(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_LOCK{Oplock: args})
	if status == nfsv4.NFS4_OK {
		l.lock = lockedState(results[len(results)-1])
	}
	mustBeReadable(l.t, results[len(results)-1])
	return status
}

// test asks whether the lock could be taken.
func (l *locker) test(kind nfsv4.NfsLockType4, offset, length uint64) nfsv4.Nfsstat4 {
	l.t.Helper()
	status, results := l.call(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_LOCKT{Oplockt: nfsv4.Lockt4args{
		Locktype: kind, Offset: offset, Length: length, Owner: nfsv4.LockOwner4{Clientid: l.clientID, Owner: []byte("locker")},
	}})
	mustBeReadable(l.t, results[len(results)-1])
	return status
}

func (l *locker) release(offset, length uint64) {
	l.t.Helper()
	results := l.results(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{
		Locktype: nfsv4.WRITE_LT, LockStateid: l.lock, Offset: offset, Length: length,
	}})
	l.lock = results[len(results)-1].(*nfsv4.NfsResop4_OP_LOCKU).Oplocku.(*nfsv4.Locku4res_NFS4_OK).LockStateid
}

func (l *locker) close() {
	l.t.Helper()
	l.results(user, putHandle(l.handle), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: l.open}})
}

func hotLocks(t *testing.T, one, other *end) {
	a, b := one.lockerOf("locked"), other.lockerOf("locked")
	defer b.close()
	must := func(what string, got, want nfsv4.Nfsstat4) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, client.StatusName(got), client.StatusName(want))
		}
	}
	must("a write lock", a.take(nfsv4.WRITE_LT, 0, 100, false), nfsv4.NFS4_OK)
	must("a write lock on the same, at the other data server", b.take(nfsv4.WRITE_LT, 50, 100, false), nfsv4.NFS4ERR_DENIED)
	must("a read lock on the same", b.take(nfsv4.READ_LT, 0, 1, false), nfsv4.NFS4ERR_DENIED)
	must("a test of it", b.test(nfsv4.READ_LT, 0, 10), nfsv4.NFS4ERR_DENIED)
	must("a test beside it", b.test(nfsv4.WRITE_LT, 100, 100), nfsv4.NFS4_OK)
	must("the holder's own test", a.test(nfsv4.WRITE_LT, 0, 100), nfsv4.NFS4_OK)
	must("a write lock beside it", b.take(nfsv4.WRITE_LT, 100, 100, false), nfsv4.NFS4_OK)
	must("a test of what the other has", a.test(nfsv4.READ_LT, 0, 101), nfsv4.NFS4ERR_DENIED)
	must("what the other has", a.take(nfsv4.READ_LT, 150, 1, false), nfsv4.NFS4ERR_DENIED)
	a.release(0, 100)
	must("what was released", b.take(nfsv4.READ_LT, 0, 100, false), nfsv4.NFS4_OK)
	must("a read lock on what is read", a.take(nfsv4.READ_LT, 0, 100, false), nfsv4.NFS4_OK)
	must("a test of what both read", a.test(nfsv4.READ_LT, 0, 100), nfsv4.NFS4_OK)
	must("a test of what both read, to write", a.test(nfsv4.WRITE_LT, 0, 100), nfsv4.NFS4ERR_DENIED)
	b.release(0, 200)
	must("what is read by itself alone", a.take(nfsv4.WRITE_LT, 0, 200, false), nfsv4.NFS4_OK)
	a.release(0, 200)
	must("the whole file", a.take(nfsv4.WRITE_LT, 0, 1<<64-1, false), nfsv4.NFS4_OK)
	must("a byte of it", b.take(nfsv4.WRITE_LT, 1<<40, 1, false), nfsv4.NFS4ERR_DENIED)
	a.release(0, 1<<64-1)
	must("the whole file again", b.take(nfsv4.WRITE_LT, 0, 1<<64-1, false), nfsv4.NFS4_OK)
	b.release(0, 1<<64-1)
	a.close()
}

func locksOfGoneClients(t *testing.T, one, other *end) {
	address := one.connection.RemoteAddr().String()
	short := enter(t, "short "+t.Name(), address)
	a, b := short.lockerOf("left"), other.lockerOf("left")
	defer b.close()
	if status := a.take(nfsv4.WRITE_LT, 0, 10, false); status != nfsv4.NFS4_OK {
		t.Fatalf("a lock: %s", client.StatusName(status))
	}
	if status := b.take(nfsv4.WRITE_LT, 0, 10, false); status != nfsv4.NFS4ERR_DENIED {
		t.Fatalf("the same lock: %s", client.StatusName(status))
	}
	// A client of the same name that has started again: all that it had ends (RFC 8881 section 18.35.4).
	again := &end{&wire{t: t, connection: short.connection, minor: 1}, short.name}
	if status := again.identify("short "+t.Name(), [8]byte{1}); status != nfsv4.NFS4_OK {
		t.Fatalf("EXCHANGE_ID: %s", client.StatusName(status))
	}
	if status := again.createSession(); status != nfsv4.NFS4_OK {
		t.Fatalf("CREATE_SESSION: %s", client.StatusName(status))
	}
	if status := b.take(nfsv4.WRITE_LT, 0, 10, false); status != nfsv4.NFS4_OK {
		t.Errorf("after the client that had it started again: %s", client.StatusName(status))
	} else {
		b.release(0, 10)
	}
	again.destroy()
}

// Share reservations are ganesha's own: two data servers know nothing of each other's (docs/operate/ceph.md says so). Linux asks for none.
func shareReservations(t *testing.T, one, other *end) {
	deny := func(e *end) operation {
		return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
			ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_BOTH, ShareDeny: nfsv4.OPEN4_SHARE_DENY_BOTH,
			Owner:   nfsv4.StateOwner4{Clientid: e.clientID, Owner: []byte("denier")},
			Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}},
			Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: "denied"},
		}}
	}
	results := one.results(user, then(hot(), deny(one), &nfsv4.NfsArgop4_OP_GETFH{})...)
	state := openedState(results[len(results)-2])
	handle := results[len(results)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	if status := one.Run(user, then(hot(), one.open("denied", nfsv4.OPEN4_SHARE_ACCESS_READ))...); status != nfsv4.NFS4ERR_SHARE_DENIED {
		t.Errorf("at the same data server: %s", client.StatusName(status))
	}
	if status := other.Run(user, then(hot(), other.open("denied", nfsv4.OPEN4_SHARE_ACCESS_READ), closeCurrent())...); status != nfsv4.NFS4_OK {
		t.Errorf("at the other data server: %s; if reservations hold there, the documentation is to say so", client.StatusName(status))
	}
	one.results(user, putHandle(handle), &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: state}})
}

// oneMaker has both ends make files of the same names that must not exist, at the same time: lock files.
func oneMaker(t *testing.T, ends [2]*end) {
	const names = 100
	won := [2]int{}
	for i := range names {
		var statuses [2]nfsv4.Nfsstat4
		var race sync.WaitGroup
		for j, e := range ends {
			race.Go(func() {
				statuses[j] = e.Run(user, then(hot(), &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
					ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE, Owner: nfsv4.StateOwner4{Clientid: e.clientID, Owner: []byte("maker")},
					Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_GUARDED4{}},
					Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: fmt.Sprint("lock file ", i)},
				}}, closeCurrent())...)
			})
		}
		race.Wait()
		for j, status := range statuses {
			if status == nfsv4.NFS4_OK {
				won[j]++
			} else if status != nfsv4.NFS4ERR_EXIST {
				t.Errorf("name %d: %s", i, client.StatusName(status))
			}
		}
	}
	t.Logf("FIGURE %d names, each made by a client of each of two data servers at the same time: %d and %d made", names, won[0], won[1])
	if won[0]+won[1] != names {
		t.Errorf("%d and %d of %d names were made", won[0], won[1], names)
	}
}

// counterUnderLock has both ends add to a number in a file, each time under a lock: none may be lost.
func counterUnderLock(t *testing.T, ends [2]*end) {
	const each = 50
	ends[0].put("counter", "00000000")
	began := time.Now()
	var both sync.WaitGroup
	for _, e := range ends {
		both.Go(func() {
			l := e.lockerOf("counter")
			for done := 0; done < each; {
				switch status := l.take(nfsv4.WRITE_LT, 0, 100, false); status {
				case nfsv4.NFS4ERR_DENIED:
					time.Sleep(time.Millisecond)
					continue
				case nfsv4.NFS4_OK:
				default:
					t.Errorf("at %s: %s", e.name, client.StatusName(status))
					return
				}
				results := l.results(user, putHandle(l.handle), readAll(l.lock))
				number, err := strconv.Atoi(string(results[len(results)-1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4.Data))
				if err != nil {
					t.Errorf("at %s: %v", e.name, err)
					return
				}
				l.results(user, putHandle(l.handle), write(l.lock, fmt.Sprintf("%08d", number+1)))
				l.release(0, 100)
				done++
			}
			l.close()
		})
	}
	both.Wait()
	t.Logf("FIGURE %d additions by clients of two data servers, each under a lock: %s", 2*each, time.Since(began).Round(time.Millisecond))
	for _, e := range ends {
		if got, want := e.look("counter").data, fmt.Sprintf("%08d", 2*each); got != want {
			t.Errorf("%s reads %s, want %s", e.name, got, want)
		}
	}
}
