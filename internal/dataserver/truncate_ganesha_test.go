package dataserver

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// truncatingEndsSetUserID: as on a local disk, a file that a user other than root truncates loses set-user-ID and
// set-group-ID.
func truncatingEndsSetUserID(t *testing.T) {
	s := exported(t, "truncate")
	file := "/volumes/truncate/0/alpha/file"
	other := client.Credentials{UID: 1001, GID: 1001}
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	toSize := func(size uint64) nfsv4.Fattr4 {
		return nfsv4.Fattr4{Attrmask: nfsv4.Bitmap4{1 << nfsv4.FATTR4_SIZE}, AttrVals: binary.BigEndian.AppendUint64(nil, size)}
	}
	setSize := then(lookUp("alpha", "0", "file"), &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: toSize(1)}})
	openEmpty := then(lookUp("alpha", "0"), &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_WRITE, Owner: nfsv4.StateOwner4{Clientid: w.clientID, Owner: []byte("opener")},
		Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{Createattrs: toSize(0)}},
		Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: "file"},
	}})
	for _, c := range []struct {
		what       string
		cred       client.Credentials
		operations []operation
		size       int64
		kept       os.FileMode
	}{
		{"SETATTR of the size by another user", other, setSize, 1, 0},
		{"SETATTR of the size by the owner", user, setSize, 1, 0},
		{"OPEN with size 0 by another user", other, openEmpty, 0, 0},
		{"SETATTR of the size by root", root, setSize, 1, os.ModeSetuid | os.ModeSetgid},
	} {
		putFile(t, file, "text", 0o777)
		mustWork(t, "chmod", os.Chmod(file, 0o777|os.ModeSetuid|os.ModeSetgid))
		w.mustAnswer(c.what, c.cred, c.operations, nfsv4.NFS4_OK)
		info, err := os.Stat(file)
		mustWork(t, "stat", err)
		if got := info.Mode() & (os.ModeSetuid | os.ModeSetgid); got != c.kept || info.Size() != c.size {
			t.Errorf("%s: the file has mode %s and %d bytes, want the bits %s and %d bytes", c.what, info.Mode(), info.Size(), c.kept, c.size)
		}
	}
	s.mustLive(t, s.pid())
}
