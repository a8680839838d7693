package dataserver

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const readWrite = nfsv4.OPEN4_SHARE_ACCESS_READ | nfsv4.OPEN4_SHARE_ACCESS_WRITE

// takes are the operations that take a state ID, and the kinds of states that they may be used with.
func takes(state nfsv4.Stateid4) map[string]operation {
	return map[string]operation{
		"CLOSE":          &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: state}},
		"OPEN_DOWNGRADE": &nfsv4.NfsArgop4_OP_OPEN_DOWNGRADE{OpopenDowngrade: nfsv4.OpenDowngrade4args{OpenStateid: state, ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_READ}},
		"LOCKU":          &nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{Locktype: nfsv4.READ_LT, LockStateid: state, Length: 1 << 10}},
		"LOCK of a new owner": &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{
			Locktype: nfsv4.READ_LT, Offset: 1 << 30, Length: 1,
			Locker: &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{OpenStateid: state, LockOwner: nfsv4.StateOwner4{Owner: []byte("another")}}},
		}},
		"LOCK of a known owner": &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{
			Locktype: nfsv4.READ_LT, Offset: 1 << 30, Length: 1,
			Locker: &nfsv4.Locker4_FALSE{LockOwner: nfsv4.ExistLockOwner4{LockStateid: state}},
		}},
		"FREE_STATEID": &nfsv4.NfsArgop4_OP_FREE_STATEID{OpfreeStateid: nfsv4.FreeStateid4args{FsaStateid: state}},
		"READ":         readAll(state),
		"WRITE":        write(state, "text"),
		"SETATTR":      &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{Stateid: state, ObjAttributes: nfsv4.Fattr4{Attrmask: nfsv4.Bitmap4{1 << nfsv4.FATTR4_SIZE}, AttrVals: make([]byte, 8)}}},
		"ALLOCATE":     allocate(opAllocate, state, 0, 1),
		"DEALLOCATE":   allocate(opDeallocate, state, 0, 1),
		"SEEK":         raw(opSeek, state, uint64(0), 0),
	}
}

// statesOfAnotherType: state IDs of opens and locks where the other is meant.
func statesOfAnotherType(t *testing.T) {
	s := exported(t, "types")
	pid := s.pid()
	putFile(t, "/volumes/types/0/alpha/file", "text", 0o644)
	here := lookUp("alpha", "0", "file")
	wrong := map[string][]string{
		"lock": {"CLOSE", "OPEN_DOWNGRADE", "LOCK of a new owner"}, "open": {"LOCKU", "LOCK of a known owner", "FREE_STATEID"},
	}
	for kind, names := range wrong {
		for _, name := range names {
			w := dialReady(t, "types "+name, "10.99.0.1:2049", 2)
			made := w.results(user, then(lookUp("alpha", "0"), w.open("file", readWrite))...)
			states := map[string]nfsv4.Stateid4{"open": openedState(made[len(made)-1])}
			made = w.results(user, then(here, w.lock(states["open"]))...)
			states["lock"] = lockedState(made[len(made)-1])
			w.mustAnswer(name+" with the state of a "+kind, user, then(here, takes(states[kind])[name]),
				nfsv4.NFS4ERR_BAD_STATEID, nfsv4.NFS4ERR_LOCKS_HELD)
			// Whatever else: nothing may end the process, and what is right still works.
			for what, op := range takes(states[kind]) {
				if what != "CLOSE" && what != "FREE_STATEID" {
					w.Run(user, then(here, op)...)
				}
			}
			w.mustAnswer("CLOSE", user, then(here, takes(states["open"])["CLOSE"]), nfsv4.NFS4_OK)
		}
	}
	s.mustLive(t, pid)
}

// statesOfAnotherClient: state IDs are guessable, so they are good for their client alone.
func statesOfAnotherClient(t *testing.T) {
	s := exported(t, "others-states")
	putFile(t, "/volumes/others-states/0/alpha/file", "text", 0o666)
	here := lookUp("alpha", "0", "file")
	owner := dialReady(t, "the owner", "10.99.0.1:2049", 2)
	made := owner.results(user, then(lookUp("alpha", "0"), owner.open("file", readWrite))...)
	open := openedState(made[len(made)-1])
	made = owner.results(user, then(here, owner.lock(open))...)
	lock := lockedState(made[len(made)-1])
	for _, address := range []string{"10.99.0.1", "10.99.0.2"} {
		other := dialReady(t, "the other at "+address, address+":2049", 2)
		for kind, state := range map[string]nfsv4.Stateid4{"open": open, "lock": lock} {
			for what, op := range takes(state) {
				other.mustAnswer(fmt.Sprintf("%s of another client's %s from %s", what, kind, address), user, then(here, op),
					nfsv4.NFS4ERR_BAD_STATEID, nfsv4.NFS4ERR_ROFS)
			}
		}
	}
	owner.mustAnswer("the owner's LOCKU", user, then(here, takes(lock)["LOCKU"]), nfsv4.NFS4_OK)
	owner.mustAnswer("the owner's READ", user, then(here, readAll(open)), nfsv4.NFS4_OK)
	owner.mustAnswer("the owner's CLOSE", user, then(here, takes(open)["CLOSE"]), nfsv4.NFS4_OK)
	s.mustLive(t, s.pid())
}

// namesWithNUL: no operation acts on a part of a name.
func namesWithNUL(t *testing.T) {
	s := exported(t, "nul")
	putFile(t, "/volumes/nul/0/alpha/a", "text", 0o666)
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	directory, here := lookUp("alpha", "0"), lookUp("alpha", "0", "a")
	const name = "a\x00b"
	mustBeIn := lookUp("alpha")
	for what, operations := range map[string][]operation{
		"LOOKUP": then(directory, lookUpName(name)), "LOOKUP of a junction": then(mustBeIn, lookUpName("0\x00x")),
		"LOOKUP of a NUL alone": then(directory, lookUpName("\x00")),
		"OPEN":                  then(directory, w.open(name, readWrite)),
		"CREATE":                then(directory, create(&nfsv4.Createtype4_NF4DIR{}, "new\x00x")),
		"CREATE of a link":      then(directory, create(&nfsv4.Createtype4_NF4LNK{Linkdata: []byte("to\x00x")}, "link")),
		"REMOVE":                then(directory, remove(name)),
		"RENAME from":           then(directory, saveHandle(), rename(name, "c")),
		"RENAME to":             then(directory, saveHandle(), rename("a", "c\x00x")),
		"LINK": then(then(here, saveHandle()), then(directory, &nfsv4.NfsArgop4_OP_LINK{
			Oplink: nfsv4.Link4args{Newname: "c\x00x"},
		})...),
		"SECINFO":                        then(directory, &nfsv4.NfsArgop4_OP_SECINFO{Opsecinfo: nfsv4.Secinfo4args{Name: name}}),
		"GETXATTR":                       then(here, raw(opGetXattr, "x\x00y")),
		"SETXATTR":                       then(here, setXattr("x\x00y", "value")),
		"REMOVEXATTR":                    then(here, raw(opRemoveXattr, "x\x00y")),
		"SETXATTR without a name":        then(here, setXattr("", "value")),
		"SETXATTR with too long a name":  then(here, setXattr(string(bytes.Repeat([]byte("x"), 251)), "value")),
		"LOOKUP of a name of 4096 bytes": then(directory, lookUpName(string(bytes.Repeat([]byte("x"), 4096)))),
	} {
		w.mustAnswer(what, user, operations, nfsv4.NFS4ERR_BADNAME, nfsv4.NFS4ERR_INVAL, nfsv4.NFS4ERR_NAMETOOLONG)
	}
	w.mustAnswer("the longest name", user, then(directory, w.open(string(bytes.Repeat([]byte("x"), 255)), readWrite)), nfsv4.NFS4_OK)
	mustHave(t, "/volumes/nul/0/alpha", "a", string(bytes.Repeat([]byte("x"), 255)))
	s.mustLive(t, s.pid())
}
