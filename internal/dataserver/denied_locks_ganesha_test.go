package dataserver

import (
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// linuxOwner is how long the owner of a lock in the way may be (lock_owner_id_maxsz in Linux 6.15's fs/nfs/nfs4xdr.c): with a longer one the reply is broken
// to Linux, and the program gets EIO.
const linuxOwner = 20

// mustBeReadable fails unless clients can read what the answer to a LOCK or LOCKT says of the lock in the way.
func mustBeReadable(t *testing.T, result nfsv4.NfsResop4) {
	t.Helper()
	var denied *nfsv4.Lock4denied
	switch r := result.(type) {
	case *nfsv4.NfsResop4_OP_LOCK:
		if d, ok := r.Oplock.(*nfsv4.Lock4res_NFS4ERR_DENIED); ok {
			denied = &d.Denied
		}
	case *nfsv4.NfsResop4_OP_LOCKT:
		if d, ok := r.Oplockt.(*nfsv4.Lockt4res_NFS4ERR_DENIED); ok {
			denied = &d.Denied
		}
	}
	if denied == nil {
		return
	}
	if owner := denied.Owner.Owner; len(owner) > linuxOwner {
		t.Errorf("the owner of the lock in the way has %d bytes: %.40q", len(owner), owner)
	}
	if denied.Length == 0 {
		t.Errorf("the lock in the way has length 0: %+v", *denied)
	}
}

// refusedLocks: whoever asks for a lock that another client has gets a reply that Linux can read, whatever the other one calls itself.
func refusedLocks(t *testing.T) {
	exported(t, "denied")
	putFile(t, "/volumes/denied/0/alpha/file", "text", 0o666)
	here := lookUp("alpha", "0", "file")
	open := func(w *wire) nfsv4.Stateid4 {
		made := w.results(user, then(lookUp("alpha", "0"), w.open("file", readWrite))...)
		return openedState(made[len(made)-1])
	}
	lock := func(w *wire, state nfsv4.Stateid4, owner string, length uint64) operation {
		return &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{
			Locktype: nfsv4.WRITE_LT, Length: length, Locker: &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{
				OpenStateid: state, LockOwner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte(owner)},
			}},
		}}
	}
	asks := dialReady(t, "the one that asks", "10.99.0.1:2049", 1)
	asked := open(asks)
	for name, owner := range map[string]string{"short": "a", "as long as Linux'": strings.Repeat("b", linuxOwner), "longer": strings.Repeat("c", linuxOwner+1), "longest": strings.Repeat("d", 1000)} {
		holder := dialReady(t, "holder "+name, "10.99.0.1:2049", 1)
		made := holder.results(user, then(here, lock(holder, open(holder), owner, 1<<64-1))...)
		held := lockedState(made[len(made)-1])
		for what, op := range map[string]operation{
			"LOCK":  lock(asks, asked, "asks", 10),
			"LOCKT": &nfsv4.NfsArgop4_OP_LOCKT{Oplockt: nfsv4.Lockt4args{Locktype: nfsv4.READ_LT, Length: 10, Owner: nfsv4.StateOwner4{Clientid: asks.clientID, Owner: []byte("asks")}}},
		} {
			status, results := asks.call(user, then(here, op)...)
			if status != nfsv4.NFS4ERR_DENIED {
				t.Errorf("%s, owner %s: %s", what, name, client.StatusName(status))
			}
			mustBeReadable(t, results[len(results)-1])
		}
		holder.results(user, then(here, &nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{Locktype: nfsv4.WRITE_LT, LockStateid: held, Length: 1<<64 - 1}})...)
	}
}
