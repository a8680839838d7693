package namespace

import (
	"bytes"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// inCeph has all data servers say that they have the same storage.
func (w *world) inCeph() {
	w.t.Helper()
	for i := range w.owners {
		o := &internalv1.DataServer{}
		key := client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, int32(i))}
		if err := w.api.Get(w.t.Context(), key, o); err != nil {
			w.t.Fatal(err)
		}
		o.Spec.Ceph = internalv1.CephFileSystem{
			Monitors: []string{"10.0.0.1:3300"}, FSID: "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c", FileSystem: "fs1", RecoveryPool: "howdah", RecoveryUser: "u", SecretName: "s",
		}
		if err := w.api.Update(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// give has the operator give a directory to another data server, as its controller of FileServers does. The directory is there, too.
func (w *world) give(share, path string, to int) *internalv1.ShareDirectory {
	w.t.Helper()
	o := w.directory(share, path)
	before := o.DeepCopy()
	o.Spec.DataServerRef.Name = naming.DataServer(fileServer, int32(to))
	if err := w.api.Patch(w.t.Context(), o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		w.t.Fatal(err)
	}
	for at, c := range path + "/" {
		if c == '/' {
			w.owners[to].Put(naming.ExportPseudo(share, 0)+"/"+path[:at], ownertest.Directory{Mode: 0o777})
		}
	}
	return o
}

// referral is where a client is sent that enters a directory: the fs_locations attribute as it is on the wire.
func (k *kernel) referral(path string) []byte {
	k.t.Helper()
	res, status := k.try(user, append(walk(path),
		&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1 << nfsv4.FATTR4_FS_LOCATIONS}}})...)
	if status != nfsv4.NFS4_OK {
		return nil
	}
	return res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
}

// attributesOf are those of a directory entry that a mounted client compares: file system, file and what it is mounted on.
func (k *kernel) attributesOf(path string) []byte {
	k.t.Helper()
	mask := []uint32{1<<nfsv4.FATTR4_FSID | 1<<nfsv4.FATTR4_RDATTR_ERROR, 1 << (nfsv4.FATTR4_MOUNTED_ON_FILEID - 32)}
	res, status := k.try(user, append(walk(path), &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: mask}})...)
	if status != nfsv4.NFS4_OK {
		k.t.Fatalf("attributes of %s: %s", path, nfs.StatusName(status))
	}
	return res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
}

// changeOf is the change attribute of a directory of the namespace.
func (k *kernel) changeOf(path string) []byte {
	k.t.Helper()
	res, status := k.try(user, append(walk(path),
		&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1 << nfsv4.FATTR4_CHANGE}}})...)
	if status != nfsv4.NFS4_OK {
		k.t.Fatalf("change of %s: %s", path, nfs.StatusName(status))
	}
	return res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
}

func TestADirectoryThatGetsAnotherDataServerIsTheSameToClients(t *testing.T) {
	w := newWorld(t, 2)
	w.inCeph()
	share := w.share("data", 2)
	w.declare(share, "p/a", 0)
	a, b := boot(t, w.serve("a").address), boot(t, w.serve("b").address)
	for name, k := range map[string]*kernel{"a": a, "b": b} {
		w.eventually(name+" refers to the first", func() bool { return strings.Contains(string(k.referral("/data/p/a")), w.owners[0].Address) })
	}
	parent, mounted, before := a.handle(user, "/data/p"), a.attributesOf("/data/p/a"), a.changeOf("/data/p")
	other := b.attributesOf("/data/p/a")

	moved := w.give("data", "p/a", 1)

	for name, k := range map[string]*kernel{"a": a, "b": b} {
		w.eventually(name+" refers to the second", func() bool { return strings.Contains(string(k.referral("/data/p/a")), w.owners[1].Address) })
		// It never goes back.
		for range 50 {
			if strings.Contains(string(k.referral("/data/p/a")), w.owners[0].Address) {
				t.Fatalf("%s refers to the first again", name)
			}
		}
	}
	if now := a.attributesOf("/data/p/a"); !bytes.Equal(now, mounted) || !bytes.Equal(now, other) {
		t.Errorf("the identity of the junction changed for clients that have it mounted: %x, it was %x", now, mounted)
	}
	if status := a.use(user, parent); status != nfsv4.NFS4_OK {
		t.Errorf("the handle of the directory above: %v", status)
	}
	if bytes.Equal(a.changeOf("/data/p"), before) {
		t.Error("the directory above did not change, so clients would keep a referral that they have cached")
	}

	// An older state of the ShareDirectory, as a watch that lags brings it, is not taken.
	if now := w.directory("data", "p/a"); now.UID != moved.UID || now.Spec.DataServerRef.Name != naming.DataServer(fileServer, 1) {
		t.Fatalf("%+v", now.Spec)
	}
	// What clients change goes to the new one.
	want(t, "rename", nfsv4.NFS4_OK, a.rename(user, "/data/p/a", "/data/p/b"))
	if owners := w.ownersOf("data", "p/b"); len(owners) != 1 || owners[0] != 1 {
		t.Errorf("it was renamed on %v", owners)
	}
	if renamed := w.directory("data", "p/b"); renamed == nil || renamed.Spec.DataServerRef.Name != naming.DataServer(fileServer, 1) {
		t.Errorf("renamed: %+v", renamed)
	}
	want(t, "rmdir", nfsv4.NFS4_OK, b.rmdir(user, "/data/p/b"))
	if owners := w.ownersOf("data", "p/b"); len(owners) != 0 {
		t.Errorf("removed, and on %v", owners)
	}
}

func TestNewDirectoriesGoElsewhereThanToAServerThatIsToBeIdle(t *testing.T) {
	w := newWorld(t, 2)
	w.inCeph()
	w.share("data", 1)
	o := &internalv1.DataServer{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, 0)}, o); err != nil {
		t.Fatal(err)
	}
	o.Spec.NewDirectories = internalv1.NewDirectoriesForbid
	if err := w.api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	k := boot(t, w.serve("a").address)
	for _, name := range []string{"a", "b", "c"} {
		want(t, "mkdir", nfsv4.NFS4_OK, k.mkdir(user, "/data/"+name))
		if owners := w.ownersOf("data", name); len(owners) != 1 || owners[0] != 1 {
			t.Errorf("%s is on %v", name, owners)
		}
	}
	// What it has it serves.
	w.give("data", "a", 0)
	w.eventually("it is referred to", func() bool { return strings.Contains(string(k.referral("/data/a")), w.owners[0].Address) })
	res := k.do(user, append(walk("/data"), &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: "a"}})...)
	want(t, "lookup", nfsv4.NFS4_OK, session.StatusOf(res[len(res)-1]))
}
