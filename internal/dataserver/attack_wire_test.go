package dataserver

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// Numbers of operations that nfsv4 does not know or does not encode as an attacker wants them (RFC 8881, 7862, 8276).
const (
	opAllocate, opDeallocate, opReadPlus, opSeek                       = 59, 62, 68, 69
	opGetXattr, opSetXattr, opListXattrs, opRemoveXattr                = 72, 73, 74, 75
	statusNoXattr                                       nfsv4.Nfsstat4 = 10095
)

// anonymous is the state ID of those who have none.
var anonymous nfsv4.Stateid4

// dialReady makes a session of the minor version for a client owner that has nothing to reclaim, and so may open files.
func dialReady(t *testing.T, owner, address string, minor uint32) *wire {
	t.Helper()
	w := dialWireAs(t, owner, address, minor)
	if status := w.Run(root, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{}); status != nfsv4.NFS4_OK {
		t.Fatalf("RECLAIM_COMPLETE: %s", client.StatusName(status))
	}
	return w
}

// raw is an operation of words, long words, opaque data and state IDs.
func raw(number uint32, parts ...any) rawOperation {
	encoded := binary.BigEndian.AppendUint32(nil, number)
	for _, part := range parts {
		switch part := part.(type) {
		case int:
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(part))
		case uint64:
			encoded = binary.BigEndian.AppendUint64(encoded, part)
		case string:
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(len(part)))
			encoded = append(encoded, part...)
			encoded = append(encoded, make([]byte, -len(part)&3)...)
		case nfsv4.Stateid4:
			encoded = binary.BigEndian.AppendUint32(encoded, part.Seqid)
			encoded = append(encoded, part.Other[:]...)
		default:
			panic(fmt.Sprintf("%T is not encoded", part))
		}
	}
	return encoded
}

func allocate(number uint32, state nfsv4.Stateid4, offset, length uint64) rawOperation {
	return raw(number, state, offset, length)
}

func putHandle(handle []byte) operation {
	return &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
}

func saveHandle() operation    { return &nfsv4.NfsArgop4_OP_SAVEFH{} }
func restoreHandle() operation { return &nfsv4.NfsArgop4_OP_RESTOREFH{} }
func putRoot() operation       { return &nfsv4.NfsArgop4_OP_PUTROOTFH{} }

func lookUpParent() operation { return &nfsv4.NfsArgop4_OP_LOOKUPP{} }

func lookUpName(name string) operation {
	return &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}}
}

func readAll(state nfsv4.Stateid4) operation {
	return &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: state, Count: 4096}}
}

func write(state nfsv4.Stateid4, data string) operation {
	return &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: state, Stable: nfsv4.FILE_SYNC4, Data: []byte(data)}}
}

func create(kind nfsv4.Createtype4, name string) operation {
	return &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: kind, Objname: name, Createattrs: nfsv4.Fattr4{
		Attrmask: nfsv4.Bitmap4{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: binary.BigEndian.AppendUint32(nil, 0o644),
	}}}
}

func link(name string) operation {
	return &nfsv4.NfsArgop4_OP_LINK{Oplink: nfsv4.Link4args{Newname: name}}
}

func rename(from, to string) operation {
	return &nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: from, Newname: to}}
}

func remove(name string) operation {
	return &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: name}}
}

func listDirectory() operation {
	return &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
		Dircount: 4096, Maxcount: 16384, AttrRequest: nfsv4.Bitmap4{1 << nfsv4.FATTR4_FILEID},
	}}
}

// open opens a file of the current directory for reading and writing, or for what access says; it is made if need be.
func (w *wire) open(name string, access uint32) operation {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: access, Owner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte("opener")},
		Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}},
		Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: name},
	}}
}

// lock takes a lock of a new owner on the whole file.
func (w *wire) lock(open nfsv4.Stateid4) operation {
	return &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{
		Locktype: nfsv4.READ_LT, Length: 1 << 20,
		Locker: &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{
			OpenStateid: open, LockOwner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte("locker")},
		}},
	}}
}

func openedState(result nfsv4.NfsResop4) nfsv4.Stateid4 {
	return result.(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid
}

func lockedState(result nfsv4.NfsResop4) nfsv4.Stateid4 {
	return result.(*nfsv4.NfsResop4_OP_LOCK).Oplock.(*nfsv4.Lock4res_NFS4_OK).Resok4.LockStateid
}

// handle is that of what the operations lead to.
func (w *wire) handle(cred client.Credentials, operations ...operation) []byte {
	w.t.Helper()
	results := w.results(cred, append(operations, &nfsv4.NfsArgop4_OP_GETFH{})...)
	return results[len(results)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
}

// inSlot is a request on the slot of the session, whose answer is to be kept.
func (w *wire) inSlot(cred client.Credentials, operations ...operation) []byte {
	w.t.Helper()
	w.sequence++
	return w.encode(cred, append([]operation{&nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{
		SaSessionid: w.session, SaSequenceid: w.sequence, SaCachethis: true,
	}}}, operations...)...)
}

// mustAnswer fails unless the compound ends with one of the statuses.
func (w *wire) mustAnswer(what string, cred client.Credentials, operations []operation, statuses ...nfsv4.Nfsstat4) {
	w.t.Helper()
	status := w.Run(cred, operations...)
	for _, wanted := range statuses {
		if status == wanted {
			return
		}
	}
	w.t.Errorf("%s: %s", what, client.StatusName(status))
}

// then is a list of operations of its own.
func then(first []operation, more ...operation) []operation {
	return append(first[:len(first):len(first)], more...)
}

// mustLive fails unless ganesha is the process that it was, and answers.
func (s *dataServer) mustLive(t *testing.T, pid int) {
	t.Helper()
	if err := s.prober.Null(t.Context()); err != nil || s.pid() != pid {
		t.Errorf("ganesha was process %d and is %d: %v", pid, s.pid(), err)
	}
}
