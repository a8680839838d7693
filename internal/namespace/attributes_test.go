package namespace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// handle is the file handle that a client gets for a path.
func (k *kernel) handle(creds nfs.Credentials, path string) []byte {
	k.t.Helper()
	res, status := k.try(creds, append(walk(path), &nfsv4.NfsArgop4_OP_GETFH{})...)
	if status != nfsv4.NFS4_OK {
		k.t.Fatalf("GETFH of %s: %s", path, nfs.StatusName(status))
	}
	return res[len(res)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
}

// use is the status of using a handle: a process whose working directory it is lists it.
func (k *kernel) use(creds nfs.Credentials, handle []byte) nfsv4.Nfsstat4 {
	_, status := k.try(creds, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}},
		&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1 << nfsv4.FATTR4_TYPE}}})
	return status
}

// want holds a status to what it should be.
func want(t *testing.T, what string, want, got nfsv4.Nfsstat4) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, nfs.StatusName(got), nfs.StatusName(want))
	}
}

func TestAHandleFollowsItsDirectoryThroughRenamesRestartsAndReplicas(t *testing.T) { // RFC 8881 section 4.2.2
	w := newWorld(t, 1)
	w.share("data", 3)
	first := w.serve("a")
	a, b := boot(t, first.address), boot(t, w.serve("b").address)
	want(t, "mkdir", nfsv4.NFS4_OK, a.mkdir(user, "/data/p"))
	want(t, "mkdir", nfsv4.NFS4_OK, a.mkdir(user, "/data/p/cwd"))
	cwd := a.handle(user, "/data/p/cwd")

	want(t, "rename", nfsv4.NFS4_OK, a.rename(user, "/data/p/cwd", "/data/p/new"))
	want(t, "the handle after the rename", nfsv4.NFS4_OK, a.use(user, cwd))
	if got := a.handle(user, "/data/p/new"); string(got) != string(cwd) {
		t.Errorf("after the rename the handle is %x, not %x", got, cwd)
	}
	w.eventually("the other replica knows it, too", func() bool { return b.use(user, cwd) == nfsv4.NFS4_OK })
	want(t, "rename by the other replica", nfsv4.NFS4_OK, b.rename(user, "/data/p/new", "/data/p/newer"))
	want(t, "the handle after the second rename", nfsv4.NFS4_OK, b.use(user, cwd))

	first.stop()
	c := boot(t, w.serve("c").address)
	want(t, "the handle after a restart", nfsv4.NFS4_OK, c.use(user, cwd))

	want(t, "rmdir", nfsv4.NFS4_OK, c.rmdir(user, "/data/p/newer"))
	want(t, "mkdir of the same name", nfsv4.NFS4_OK, c.mkdir(user, "/data/p/newer"))
	want(t, "the handle of what is gone", nfsv4.NFS4ERR_STALE, c.use(user, cwd))
}

func TestAttributesThatClientsSetAreKeptAndSetOnDataServers(t *testing.T) {
	w := newWorld(t, 3)
	w.share("data", 2)
	server := w.serve("a")
	mount, other := w.mount(server), w.mount(w.serve("b"))
	k := boot(t, server.address)
	for _, path := range []string{"/data/p", "/data/p/a", "/data/p/b"} {
		want(t, "mkdir "+path, nfsv4.NFS4_OK, k.mkdir(user, path))
	}
	set := func(m *nfs.Client, creds nfs.Credentials, path string, s nfs.Settings) {
		t.Helper()
		if err := asKernelsDo(func() error { return m.SetAttributes(t.Context(), creds, path, s) }); err != nil {
			t.Fatal(err)
		}
	}
	stat := func(m *nfs.Client, path string) nfs.Attributes {
		t.Helper()
		a, err := m.Stat(t.Context(), user, path)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	root := nfs.Credentials{}
	set(mount, root, "/data/p", nfs.Settings{Owner: ptr.To[uint32](5), Group: ptr.To[uint32](6), Mode: ptr.To[uint32](0o2771)})
	if a := stat(mount, "/data/p"); a.Owner != 5 || a.Group != 6 || a.Mode != 0o2771 {
		t.Errorf("after chown and chmod it is %+v", a)
	}
	for i, owner := range w.owners {
		d, there := owner.Get("/data/0/p")
		if there && d != (ownertest.Directory{Owner: 5, Group: 6, Mode: 0o2771}) {
			t.Errorf("data server %d has the copy %+v", i, d)
		}
	}
	w.eventually("the other replica knows it", func() bool { return stat(other, "/data/p").Owner == 5 })
	err := mount.SetAttributes(t.Context(), user, "/data/p", nfs.Settings{Mode: ptr.To[uint32](0o777)})
	if !nfs.IsStatus(err, nfsv4.NFS4ERR_PERM) {
		t.Errorf("chmod by another: %v", err)
	}

	past := time.Date(2001, 2, 3, 4, 5, 6, 789012345, time.UTC)
	set(mount, root, "/data/p", nfs.Settings{Modify: &nfs.TimeSetting{Time: past}})
	if a := stat(mount, "/data/p"); !a.Modify.Equal(past) || a.Owner != 5 {
		t.Errorf("after utimes it is %+v", a)
	}
	before := time.Now()
	want(t, "mkdir in it", nfsv4.NFS4_OK, k.mkdir(root, "/data/p/c"))
	later := stat(mount, "/data/p").Modify
	if later.Before(before) {
		t.Errorf("after a mkdir in it at %v the time is %v", before, later)
	}
	want(t, "rmdir in it", nfsv4.NFS4_OK, k.rmdir(root, "/data/p/c"))
	if after := stat(mount, "/data/p").Modify; after.Before(later) {
		t.Errorf("after an rmdir in it the time is %v, before it was %v", after, later)
	}
}

func TestADirectoryIsNotOlderThanWhatWasMadeBeforeIt(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 3)
	server := w.serve("a")
	mount, k := w.mount(server), boot(t, server.address)
	for _, path := range []string{"/data/p", "/data/p/q"} {
		before := time.Now()
		want(t, "mkdir "+path, nfsv4.NFS4_OK, k.mkdir(user, path))
		a, err := mount.Stat(t.Context(), user, path)
		if err != nil {
			t.Fatal(err)
		}
		if a.Modify.Before(before) || a.Metadata.Before(before) || a.Modify.After(time.Now()) {
			t.Errorf("%s was made at %v and has the times %v and %v", path, before, a.Modify, a.Metadata)
		}
	}
}

func TestARenamedDirectoryKeepsItsAttributes(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 2)
	server := w.serve("a")
	mount, k := w.mount(server), boot(t, server.address)
	want(t, "mkdir", nfsv4.NFS4_OK, k.mkdir(user, "/data/p"))
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	err := mount.SetAttributes(t.Context(), user, "/data/p", nfs.Settings{Mode: ptr.To[uint32](0o711), Modify: &nfs.TimeSetting{Time: past}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := mount.Stat(t.Context(), user, "/data/p")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "rename", nfsv4.NFS4_OK, k.rename(user, "/data/p", "/data/q"))
	after, err := mount.Stat(t.Context(), user, "/data/q")
	if err != nil {
		t.Fatal(err)
	}
	if after.Mode != 0o711 || !after.Modify.Equal(past) || after.FileID != before.FileID {
		t.Errorf("after the rename it is %+v, before %+v", after, before)
	}
}

func TestTheRootOfAShareKeepsWhatClientsSetUntilTheShareAsksForSomethingElse(t *testing.T) {
	w := newWorld(t, 2)
	share := w.share("data", 1)
	server := w.serve("a")
	mount := w.mount(server)
	root := nfs.Credentials{}
	chmod := func(mode uint32) {
		t.Helper()
		if err := asKernelsDo(func() error { return mount.SetAttributes(t.Context(), root, "/data", nfs.Settings{Mode: &mode}) }); err != nil {
			t.Fatal(err)
		}
	}
	mode := func() uint32 {
		a, err := mount.Stat(t.Context(), root, "/data")
		if err != nil {
			t.Fatal(err)
		}
		return a.Mode
	}
	update := func(edit func(*v1alpha1.FileShareSpec)) {
		t.Helper()
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(share), share); err != nil {
			t.Fatal(err)
		}
		edit(&share.Spec)
		if err := w.api.Update(t.Context(), share); err != nil {
			t.Fatal(err)
		}
	}
	chmod(0o1777)
	if got := mode(); got != 0o1777 {
		t.Errorf("after chmod the mode is %o", got)
	}
	for i, owner := range w.owners {
		if d, _ := owner.Get("/data/0"); d.Mode != 0o1777 {
			t.Errorf("the export's root on data server %d has mode %o", i, d.Mode)
		}
	}
	update(func(s *v1alpha1.FileShareSpec) { s.MaxDirectories = 77 })
	w.eventually("another change of the share is known", func() bool { return w.directory("data", ".") != nil && mode() == 0o1777 })
	update(func(s *v1alpha1.FileShareSpec) { s.Mode = "0711" })
	w.eventually("what the share asks for counts", func() bool { return mode() == 0o711 })
	chmod(0o750)
	if got := mode(); got != 0o750 {
		t.Errorf("after another chmod the mode is %o", got)
	}
	// A data server that begins to serve the share has made its export's root as the share says.
	w.setReady(1, metav1.ConditionFalse)
	w.owners[1].Put("/data/0", ownertest.Directory{Mode: 0o711})
	w.setReady(1, metav1.ConditionTrue)
	w.eventually("a new data server has the mode", func() bool {
		d, _ := w.owners[1].Get("/data/0")
		return d.Mode == 0o750
	})
}

func TestADataServerThatWasAwayGetsAttributesWhenItIsBack(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 2)
	server := w.serve("a")
	mount, k := w.mount(server), boot(t, server.address)
	want(t, "mkdir", nfsv4.NFS4_OK, k.mkdir(user, "/data/p"))
	want(t, "mkdir", nfsv4.NFS4_OK, k.mkdir(user, "/data/p/a"))
	w.owners[0].Refuse(func(op, path string) nfsv4.Nfsstat4 {
		if op == "SETATTR" {
			return nfsv4.NFS4ERR_SERVERFAULT
		}
		return nfsv4.NFS4_OK
	})
	if err := asKernelsDo(func() error {
		return mount.SetAttributes(t.Context(), user, "/data/p", nfs.Settings{Mode: ptr.To[uint32](0o700)})
	}); err != nil {
		t.Fatalf("chmod while a data server refuses it: %v", err)
	}
	if d, _ := w.owners[0].Get("/data/0/p"); d.Mode == 0o700 {
		t.Fatal("the data server has the mode already: the test tests nothing")
	}
	w.owners[0].Refuse(nil)
	w.eventually("the data server has the mode", func() bool {
		d, _ := w.owners[0].Get("/data/0/p")
		return d.Mode == 0o700
	})
	w.eventually("that is noted", func() bool {
		r := w.directory("data", "p")
		return r.Status.ObservedGeneration != nil && *r.Status.ObservedGeneration == r.Generation
	})
}

func TestAttributesOfAFreshDirectoryAreSetByItsOwner(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	k := boot(t, w.serve("a").address)
	res, status := k.try(user, append(walk("/data"), &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{
		Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: "d",
	}}, &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
		Attrmask: []uint32{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: []byte{0, 0, 0o1, 0o350},
	}}})...)
	want(t, fmt.Sprintf("CREATE and SETATTR (%d results)", len(res)), nfsv4.NFS4_OK, status)
	if d, _ := w.owners[0].Get("/data/0/d"); d.Mode != 0o750 {
		t.Errorf("on its owner it is %+v", d)
	}
	if r := w.directory("data", "d"); r.Spec.Mode != "0750" {
		t.Errorf("its ShareDirectory says %s", r.Spec.Mode)
	}
	// Its maker sees what it set, before it enters it (2001-02-03 is what tar and rsync would compare).
	past := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	var set bytes.Buffer
	for _, v := range []any{uint32(nfsv4.SET_TO_CLIENT_TIME4), past.Unix(), uint32(past.Nanosecond())} {
		if err := binary.Write(&set, binary.BigEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	handle := k.handle(user, "/data/d")
	res, status = k.try(user, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}},
		&nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
			Attrmask: []uint32{0, 1 << (nfsv4.FATTR4_TIME_MODIFY_SET - 32)}, AttrVals: set.Bytes(),
		}}},
		&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{0, 1 << (nfsv4.FATTR4_TIME_MODIFY - 32)}}})
	want(t, "PUTFH, SETATTR, GETATTR of a fresh directory", nfsv4.NFS4_OK, status)
	if d, _ := w.owners[0].Get("/data/0/d"); !d.Modified.Equal(past) {
		t.Errorf("on its owner it is %+v", d)
	}
	got := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	if !bytes.Equal(got, set.Bytes()[4:]) {
		t.Errorf("its maker sees the time %x, not %x", got, set.Bytes()[4:])
	}
	// Another's attributes are not its to set: the owner refuses.
	_, status = k.try(nfs.Credentials{UID: 7, GID: 7}, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}},
		&nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
			Attrmask: []uint32{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: []byte{0, 0, 0o1, 0o377},
		}}})
	want(t, "SETATTR by another", nfsv4.NFS4ERR_PERM, status)
}
