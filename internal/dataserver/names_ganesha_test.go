package dataserver

import (
	"crypto/sha256"
	"io"
	"os"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/ganesha/realtest"
)

// namesAreOnDisk: a client that has the answer to a change of a directory relies on it, also when the server loses its power at that moment.
// Such a change has no COMMIT. The disk of this volume is a file: what the file system has not written is not in it.
func namesAreOnDisk(t *testing.T) {
	s := smallVolume(t)
	graceIsOver(t)
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	at := lookUp("alpha", "0")
	for _, change := range []struct {
		what string
		ops  []operation
	}{
		{"CREATE of a directory", then(at, create(&nfsv4.Createtype4_NF4DIR{}, "directory"))},
		{"CREATE of a symbolic link", then(at, create(&nfsv4.Createtype4_NF4LNK{Linkdata: []byte("kept")}, "symbolic"))},
		{"CREATE of a FIFO", then(at, create(&nfsv4.Createtype4_NF4FIFO{}, "fifo"))},
		{"OPEN that creates", then(at, &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
			ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE, Owner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte("opener")},
			Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{}},
			Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: "opened"},
		}})},
		{"LINK", then(then(lookUp("alpha", "0", "kept"), saveHandle()), then(at, link("linked"))...)},
		{"RENAME", then(at, saveHandle(), rename("kept", "renamed"))},
		{"RENAME into another directory", then(then(at, saveHandle()), then(lookUp("alpha", "0", "directory"), rename("renamed", "again"))...)},
		{"REMOVE of a file", then(at, remove("linked"))},
		{"REMOVE of a directory's last name", then(lookUp("alpha", "0", "directory"), remove("again"))},
		{"REMOVE of a directory", then(at, remove("directory"))},
	} {
		unix.Sync()
		before := ownDisk(t)
		w.mustAnswer(change.what, root, change.ops, nfsv4.NFS4_OK)
		if ownDisk(t) == before {
			t.Errorf("%s has its answer, and nothing of it is on disk", change.what)
		}
	}
	s.mustLive(t, s.pid())
}

// ownDisk is a checksum of what is on the disk of the volume of its own.
func ownDisk(t *testing.T) [sha256.Size]byte {
	t.Helper()
	disk, err := os.Open(realtest.OwnImage)
	mustWork(t, "open the disk", err)
	defer func() { _ = disk.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, disk)
	mustWork(t, "read the disk", err)
	return [sha256.Size]byte(sum.Sum(nil))
}
