package dataserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// smallVolume boots a data server on the volume that is a small file system of its own, with two shares and a file of each.
func smallVolume(t *testing.T) *dataServer {
	clearOwn(t)
	t.Cleanup(func() { clearOwn(t) })
	s := boot(t, "own", 1)
	t.Cleanup(s.stop) // Before the volume is cleared.
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("beta")}
	})
	s.settle()
	putFile(t, ownRoot+"/0/alpha/grows", "", 0o666)
	putFile(t, ownRoot+"/0/alpha/kept", strings.Repeat("kept", 1024), 0o666)
	putFile(t, ownRoot+"/0/beta/large", strings.Repeat("large", 1<<20), 0o666)
	return s
}

// clearOwn empties the volume of its own, with what belongs to Howdah.
func clearOwn(t *testing.T) {
	entries, err := os.ReadDir(ownRoot + "/0")
	mustWork(t, "list the volume", err)
	for _, entry := range entries {
		if entry.Name() != "lost+found" {
			mustWork(t, "clear the volume", os.RemoveAll(filepath.Join(ownRoot, "0", entry.Name())))
		}
	}
}

func writeAt(offset uint64, data []byte) operation {
	return &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Offset: offset, Stable: nfsv4.FILE_SYNC4, Data: data}}
}

// fillUp writes to a file until it is refused, and returns how much it took.
func (w *wire) fillUp(cred client.Credentials, share, file string) (size uint64) {
	w.t.Helper()
	for _, chunk := range []int{1 << 20, 1 << 16, 1 << 12, 1 << 10} {
		for {
			status := w.Run(cred, then(lookUp(share, "0", file), writeAt(size, make([]byte, chunk)))...)
			if status == nfsv4.NFS4ERR_NOSPC {
				break
			}
			if status != nfsv4.NFS4_OK || size > 2*uint64(ownBytes) {
				w.t.Fatalf("writing at %d: %s", size, client.StatusName(status))
			}
			size += uint64(chunk)
		}
	}
	return size
}

// aFullVolumeStaysServed: what clients fill is theirs. New clients are recorded, ganesha starts again, shares come and go with their data, and what
// takes no more room goes on. Root is a client as any other.
func aFullVolumeStaysServed(t *testing.T) {
	s := smallVolume(t)
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	took := w.fillUp(root, "alpha", "grows")
	var stat unix.Statfs_t
	mustWork(t, "statfs", unix.Statfs(ownRoot+"/0", &stat))
	t.Logf("FIGURE a client took %d of %d bytes; %d are left of the file system", took, ownBytes, int64(stat.Bavail)*stat.Bsize)
	s.refusesGrowth(t, w)

	// Ganesha records a client that it has not seen, and starts again.
	late := dialReady(t, "wire late "+t.Name(), "10.99.0.2:2049", 2)
	if at := s.supervisor.State().NoRecordAt; !at.IsZero() {
		t.Error("a client of a full volume is not recorded: after a restart its locks are lost")
	}
	late.mustAnswer("read", user, then(lookUp("alpha", "0", "kept"), &nfsv4.NfsArgop4_OP_GETATTR{}), nfsv4.NFS4_OK)
	before := s.supervisor.State().Starts
	mustWork(t, "kill", syscall.Kill(s.pid(), syscall.SIGKILL))
	s.await("ganesha to serve again", func(status dataservertest.Reported) bool {
		return s.supervisor.State().Starts == before+1 && s.probes.Fit(t.Context()) == nil
	})
	s.settle()

	// A share that comes is served, and one that goes leaves room.
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("gamma"))
	})
	s.settle()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports, spec.Removals = []internalv1.ShareExportSpec{spec.Exports[0], spec.Exports[2]}, []string{"beta"}
	})
	s.settle()
	s.await("the trash to be emptied", func(dataservertest.Reported) bool {
		left, err := os.ReadDir(ownRoot + "/0/.howdah/trash")
		return err == nil && len(left) == 0
	})
	again := dialReady(t, "wire again "+t.Name(), "10.99.0.1:2049", 2)
	again.mustAnswer("write where there is room again", user, then(lookUp("alpha", "0", "kept"), writeAt(1<<16, make([]byte, 1<<20))), nfsv4.NFS4_OK)
}

// refusesGrowth: each operation that needs room is refused with NFS4ERR_NOSPC, and each that needs none works.
func (s *dataServer) refusesGrowth(t *testing.T, w *wire) {
	t.Helper()
	in := func(more ...operation) []operation { return then(lookUp("alpha", "0"), more...) }
	at := func(name string, more ...operation) []operation { return then(lookUp("alpha", "0", name), more...) }
	openTo := func(name string, how nfsv4.Createhow4) operation {
		return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
			ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE, Owner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte("opener")},
			Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: how}, Claim: &nfsv4.OpenClaim4_CLAIM_NULL{File: name},
		}}
	}
	unchecked, guarded := &nfsv4.Createhow4_UNCHECKED4{}, &nfsv4.Createhow4_GUARDED4{}
	for _, c := range []struct {
		what       string
		operations []operation
		want       nfsv4.Nfsstat4
	}{
		{"write a file longer", at("kept", writeAt(1<<16, make([]byte, 1<<16))), nfsv4.NFS4ERR_NOSPC},
		{"write to a hole", at("kept", writeAt(1<<30, []byte("x"))), nfsv4.NFS4ERR_NOSPC},
		{"write to a file's own blocks", at("kept", writeAt(0, []byte("KEPT"))), nfsv4.NFS4_OK},
		{"make a directory", in(create(&nfsv4.Createtype4_NF4DIR{}, "new")), nfsv4.NFS4ERR_NOSPC},
		{"make a FIFO", in(create(&nfsv4.Createtype4_NF4FIFO{}, "new")), nfsv4.NFS4ERR_NOSPC},
		{"make a link", in(create(&nfsv4.Createtype4_NF4LNK{Linkdata: []byte("kept")}, "new")), nfsv4.NFS4ERR_NOSPC},
		{"make a file", in(openTo("new", unchecked)), nfsv4.NFS4ERR_NOSPC},
		{"make a file that must be new", in(openTo("new", guarded)), nfsv4.NFS4ERR_NOSPC},
		{"make a directory that is there", in(create(&nfsv4.Createtype4_NF4DIR{}, "kept")), nfsv4.NFS4ERR_EXIST},
		{"make a file that must be new and is there", in(openTo("kept", guarded)), nfsv4.NFS4ERR_EXIST},
		{"open a file that is there", in(openTo("kept", unchecked)), nfsv4.NFS4_OK},
		{"set an attribute", at("kept", setXattr("name", "value")), nfsv4.NFS4ERR_NOSPC},
		{"make a second name", then(lookUp("alpha", "0", "kept"), saveHandle(), putRoot(), lookUpName("alpha"), lookUpName("0"),
			&nfsv4.NfsArgop4_OP_LINK{Oplink: nfsv4.Link4args{Newname: "second"}}), nfsv4.NFS4ERR_NOSPC},
		{"rename", then(lookUp("alpha", "0"), saveHandle(),
			&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "kept", Newname: "renamed"}}), nfsv4.NFS4_OK},
		{"rename back", then(lookUp("alpha", "0"), saveHandle(),
			&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "renamed", Newname: "kept"}}), nfsv4.NFS4_OK},
		{"chmod", at("kept", setMode(0o600)), nfsv4.NFS4_OK},
		{"chmod back", at("kept", setMode(0o666)), nfsv4.NFS4_OK},
	} {
		if status := w.Run(root, c.operations...); status != c.want {
			t.Errorf("%s on a full volume: %s, want %s", c.what, client.StatusName(status), client.StatusName(c.want))
		}
	}
}

// aVolumeWithoutInodesIsFull: inodes count like bytes.
func aVolumeWithoutInodesIsFull(t *testing.T) {
	s := smallVolume(t)
	many := ownRoot + "/0/alpha/many"
	mustWork(t, "mkdir", os.Mkdir(many, 0o755))
	for i := 0; ; i++ {
		if i%64 == 0 {
			var stat unix.Statfs_t
			mustWork(t, "statfs", unix.Statfs(ownRoot+"/0", &stat))
			if stat.Ffree <= stat.Files/128 {
				break
			}
		}
		mustWork(t, "make a file", os.WriteFile(fmt.Sprint(many, "/", i), nil, 0o600))
	}
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	w.mustAnswer("make a directory", user, then(lookUp("alpha", "0"), create(&nfsv4.Createtype4_NF4DIR{}, "new")), nfsv4.NFS4ERR_NOSPC)
	w.mustAnswer("write to a file's own blocks", user, then(lookUp("alpha", "0", "kept"), writeAt(0, []byte("KEPT"))), nfsv4.NFS4_OK)
	if at := s.supervisor.State().NoRecordAt; !at.IsZero() {
		t.Error("a client of a volume without inodes is not recorded")
	}
	s.exporter.Wake()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("gamma"))
	})
	s.settle()
}

// aVolumeWithoutAByteIsServed: what fills the volume to the last byte is not a client of the data server (the disk is shared), or came before the
// data server kept room. Shares that are served go on, a new one waits and says why, and removed data makes room.
func aVolumeWithoutAByteIsServed(t *testing.T) {
	s := smallVolume(t)
	filler, err := os.OpenFile(ownRoot+"/0/filler", os.O_CREATE|os.O_WRONLY, 0o600)
	mustWork(t, "make a file", err)
	defer func() { _ = filler.Close() }()
	for _, chunk := range []int{1 << 20, 1 << 12} {
		for err == nil {
			_, err = filler.Write(make([]byte, chunk))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	for i := 0; err == nil; i++ { // Directories take what files left.
		err = os.Mkdir(fmt.Sprintf("%s/0/lost+found/%d", ownRoot, i), 0o700)
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("gamma"))
	})
	status := s.await("the new share to be refused", func(status dataservertest.Reported) bool {
		_, message := readyCondition(status)
		return strings.Contains(message, "share gamma")
	})
	reason, message := readyCondition(status)
	if reason != internalv1.ReasonExportsFailing || !strings.Contains(message, makeRoomWords) || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("with a full volume the data server says %s: %s", reason, message)
	}
	if len(status.Exports) != 2 || s.status.Downs > 0 {
		t.Errorf("%d shares are served, and %d times one ceased to be", len(status.Exports), s.status.Downs)
	}
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	w.mustAnswer("read", user, then(lookUp("alpha", "0", "kept"), &nfsv4.NfsArgop4_OP_GETATTR{}), nfsv4.NFS4_OK)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports, spec.Removals = []internalv1.ShareExportSpec{spec.Exports[0], spec.Exports[2]}, []string{"beta"}
	})
	s.settle() // The data of beta made room for gamma.
	_ = os.RemoveAll(ownRoot + "/0/filler")
	left, _ := filepath.Glob(ownRoot + "/0/lost+found/*")
	for _, directory := range left {
		_ = os.Remove(directory)
	}
}

// makeRoomWords is what a data server says that one can do.
const makeRoomWords = "raise spec.storage.volumes.size"
