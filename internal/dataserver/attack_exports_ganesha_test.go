package dataserver

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// mustHave fails unless the directory has these names.
func mustHave(t *testing.T, directory string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	mustWork(t, "list", err)
	var have []string
	for _, entry := range entries {
		have = append(have, entry.Name())
	}
	slices.Sort(names)
	if !slices.Equal(have, names) {
		t.Errorf("%s has %q", directory, have)
	}
}

// squashHolds: whatever made another export the current one, root and its files are those of the export at hand.
func squashHolds(t *testing.T) {
	s := boot(t, "squash", 1)
	rule := func(squash v1alpha1.Squash) v1alpha1.AccessRule {
		return v1alpha1.AccessRule{Clients: []string{"10.99.0.1"}, AccessType: v1alpha1.AccessReadWrite, Squash: squash}
	}
	reserved := rule(v1alpha1.SquashNone)
	reserved.SourcePorts = v1alpha1.SourcePortsReserved
	squashed := []string{"root", "all"}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("none", rule(v1alpha1.SquashNone)), dataservertest.ShareSpec("root", rule(v1alpha1.SquashRoot)), dataservertest.ShareSpec("all", rule(v1alpha1.SquashAll)),
			dataservertest.ShareSpec("readers", v1alpha1.AccessRule{Clients: []string{"10.99.0.1"}, AccessType: v1alpha1.AccessReadOnly, Squash: v1alpha1.SquashNone}),
			dataservertest.ShareSpec("reserved", reserved), dataservertest.ShareSpec("others", v1alpha1.AccessRule{Clients: []string{"10.98.0.1"}}),
		}
	})
	s.settle()
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 1)
	handles := map[string][]byte{}
	for _, share := range []string{"none", "root", "all", "readers"} {
		secret := "/volumes/squash/0/" + share + "/secret"
		mustWork(t, "write", os.WriteFile(secret, []byte("of root"), 0o600))
		mustWork(t, "chmod", os.Chmod("/volumes/squash/0/"+share, 0o777))
		handles[share] = w.handle(root, lookUp(share, "0")...)
	}
	// Each way leads from the share's root to a handle of another export, and back to the share.
	ways := map[string]func(share, other string) []operation{
		"PUTROOTFH": func(string, string) []operation { return []operation{saveHandle(), putRoot(), restoreHandle()} },
		"PUTPUBFH": func(string, string) []operation {
			return []operation{saveHandle(), &nfsv4.NfsArgop4_OP_PUTPUBFH{}, restoreHandle()}
		},
		"LOOKUPP": func(string, string) []operation { return []operation{saveHandle(), lookUpParent(), restoreHandle()} },
		"PUTFH": func(_, other string) []operation {
			return []operation{saveHandle(), putHandle(handles[other]), restoreHandle()}
		},
		"PUTFH alone": func(share, other string) []operation {
			return []operation{putHandle(handles[other]), putHandle(handles[share])}
		},
		"LOOKUP":           func(share, other string) []operation { return then(lookUp(other, "0"), lookUp(share, "0")...) },
		"LOOKUPP and back": func(string, string) []operation { return []operation{lookUpParent(), lookUpName("0")} },
		"LOOKUP and SAVEFH": func(_, other string) []operation {
			return then([]operation{saveHandle()}, then(lookUp(other, "0"), restoreHandle())...)
		},
		"two RESTOREFH": func(string, string) []operation {
			return []operation{saveHandle(), putRoot(), restoreHandle(), putRoot(), restoreHandle()}
		},
		"READDIR": func(share, _ string) []operation {
			return then([]operation{saveHandle(), putRoot(), listDirectory()}, restoreHandle())
		},
	}
	others := []string{"none", "root", "all", "readers"}
	for way, through := range ways {
		for _, share := range squashed {
			for _, other := range others {
				start := then([]operation{putHandle(handles[share])}, through(share, other)...)
				what := fmt.Sprintf("%s of %s by way of %s", share, way, other)
				w.mustAnswer("reading root's file in "+what, root, then(start, lookUpName("secret"), readAll(anonymous)), nfsv4.NFS4ERR_ACCESS)
				w.mustAnswer("changing it in "+what, root, then(start, lookUpName("secret"), setMode(0o666)), nfsv4.NFS4ERR_PERM, nfsv4.NFS4ERR_ACCESS)
				name := fmt.Sprintf("made-%s-%s", way, other)
				w.mustAnswer("CREATE in "+what, root, then(start, create(&nfsv4.Createtype4_NF4DIR{}, name)), nfsv4.NFS4_OK)
				if info, err := os.Stat(filepath.Join("/volumes/squash/0", share, name)); err != nil || info.Sys().(*syscall.Stat_t).Uid == 0 {
					t.Errorf("in %s a directory of root was made: %v", what, err)
				}
			}
		}
		start := then([]operation{putHandle(handles["none"])}, through("none", "all")...)
		w.mustAnswer("root where no user is squashed, by "+way, root, then(start, lookUpName("secret"), readAll(anonymous)), nfsv4.NFS4_OK)
		start = then([]operation{putHandle(handles["readers"])}, through("readers", "none")...)
		w.mustAnswer("a write where only reads are allowed, by "+way, root, then(start, lookUpName("secret"), write(anonymous, "x")), nfsv4.NFS4ERR_ROFS)
	}
	twoHandles(t, w, handles)
	reservedPorts(t, s, w)
	s.mustLive(t, s.pid())
}

// twoHandles: RENAME and LINK have two handles, which must be of one export.
func twoHandles(t *testing.T, w *wire, handles map[string][]byte) {
	for _, from := range []string{"none", "all", "readers"} {
		for _, to := range []string{"none", "all", "readers"} {
			if from == to {
				continue
			}
			rename := &nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "secret", Newname: "taken"}}
			link := &nfsv4.NfsArgop4_OP_LINK{Oplink: nfsv4.Link4args{Newname: "taken"}}
			start := []operation{putHandle(handles[from]), saveHandle(), putHandle(handles[to])}
			w.mustAnswer("RENAME from "+from+" to "+to, root, then(start, rename), nfsv4.NFS4ERR_XDEV, nfsv4.NFS4ERR_ROFS)
			start = []operation{putHandle(handles[from]), lookUpName("secret"), saveHandle(), putHandle(handles[to])}
			w.mustAnswer("LINK from "+from+" to "+to, root, then(start, link), nfsv4.NFS4ERR_XDEV, nfsv4.NFS4ERR_ROFS)
		}
	}
	for _, squashed := range []string{"root", "all"} {
		start := []operation{putHandle(handles[squashed]), saveHandle(), putRoot(), restoreHandle()}
		w.mustAnswer("RENAME of root's file in "+squashed, root, then(start, &nfsv4.NfsArgop4_OP_SETATTR{
			Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
				Attrmask: nfsv4.Bitmap4{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: binary.BigEndian.AppendUint32(nil, 0o700),
			}},
		}), nfsv4.NFS4ERR_PERM, nfsv4.NFS4ERR_ACCESS)
	}
}

// reservedPorts: a share that wants reserved ports, and one of others, stay closed by handle, too.
func reservedPorts(t *testing.T, s *dataServer, w *wire) {
	handle, err := s.fromReservedPort("10.99.0.1").Handle(t.Context(), root, "/reserved/0")
	mustWork(t, "the handle from a reserved port", err)
	closed, err := s.from("10.98.0.1").Handle(t.Context(), user, "/others/0")
	mustWork(t, "the handle of another client", err)
	for what, handle := range map[string][]byte{"a share for reserved ports": handle, "a share of others": closed} {
		w.mustAnswer("PUTFH of "+what, root, []operation{putHandle(handle), listDirectory()}, nfsv4.NFS4ERR_ACCESS)
	}
}

// nothingLeadsOut: a directory that was moved out of its share on the disk leads neither up nor in.
func nothingLeadsOut(t *testing.T) {
	s := exported(t, "moved")
	share := "/volumes/moved/0/alpha"
	for _, path := range []string{share + "/a/b/c", share + "/kept/deep/er", "/volumes/moved/0/hidden/inner"} {
		mustWork(t, "mkdir", os.MkdirAll(path, 0o777))
	}
	putFile(t, "/volumes/moved/0/hidden/secret", "of others", 0o644)
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 1)
	held := map[string][]byte{}
	for _, path := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}} {
		held[filepath.Join(path...)] = w.handle(user, lookUp(append([]string{"alpha", "0"}, path...)...)...)
	}
	deep := w.handle(user, lookUp("alpha", "0", "kept", "deep", "er")...)
	exports := s.want.Exports
	restart := func() {
		s.stop()
		s = boot(t, "moved", 1)
		s.apply(func(spec *dataservertest.Wanted) { spec.Exports = exports })
		s.settle()
		w = dialReady(t, "moved "+w.t.Name(), "10.99.0.1:2049", 1)
	}
	up := func(handle []byte, steps int) []operation {
		operations := []operation{putHandle(handle)}
		for range steps {
			operations = append(operations, lookUpParent())
		}
		return operations
	}
	for _, to := range []string{"/volumes/moved/0/hidden/inner/a", "/volumes/moved/0/a", "/volumes/moved/a"} {
		mustWork(t, "move", os.Rename(share+"/a", to))
		for _, restarted := range []bool{false, true} {
			if restarted {
				restart()
			}
			pid := s.pid()
			for name, handle := range held {
				for steps := range 8 {
					// Before a restart ganesha may know the old way up, which ends in the share.
					operations := then(up(handle, steps), lookUpName("secret"))
					w.mustAnswer(fmt.Sprintf("%s moved to %s, %d steps up", name, to, steps), user, operations,
						nfsv4.NFS4ERR_STALE, nfsv4.NFS4ERR_NOENT)
					if restarted && w.Run(user, up(handle, steps)...) == nfsv4.NFS4_OK {
						t.Errorf("%s moved to %s leads %d steps up after a restart", name, to, steps)
					}
				}
			}
			s.mustLive(t, pid)
		}
		mustWork(t, "move back", os.Rename(to, share+"/a"))
		restart()
	}
	for steps := range 4 {
		w.mustAnswer(fmt.Sprintf("%d steps up within the share", steps), user, up(deep, steps), nfsv4.NFS4_OK)
	}
	for name, handle := range held {
		w.mustAnswer(name+", back in its share", user, []operation{putHandle(handle), listDirectory()}, nfsv4.NFS4_OK)
	}
	s.mustLive(t, s.pid())
}

// sharesOfOthers are not shown, in any way that tells a name.
func sharesOfOthers(t *testing.T) {
	s := exported(t, "shown")
	names := func(w *wire, operations ...operation) (all []string) {
		results := w.results(user, then(operations, listDirectory())...)
		list := results[len(results)-1].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply
		for entry := list.Entries; entry != nil; entry = entry.Nextentry {
			all = append(all, entry.Name)
		}
		return all
	}
	secinfo := func(name string) operation {
		return &nfsv4.NfsArgop4_OP_SECINFO{Opsecinfo: nfsv4.Secinfo4args{Name: name}}
	}
	theirs := dialReady(t, "theirs", "10.98.0.1:2049", 1)
	if got := names(theirs, putRoot()); !slices.Equal(got, []string{"hidden"}) {
		t.Errorf("10.98.0.1 is shown %q", got)
	}
	handle := theirs.handle(user, lookUp("hidden")...)
	w := dialReady(t, "shown", "10.99.0.1:2049", 1)
	if got := names(w, putRoot()); !slices.Equal(got, []string{"alpha"}) {
		t.Errorf("10.99.0.1 is shown %q", got)
	}
	if got := names(w, lookUp("alpha")...); !slices.Equal(got, []string{"0"}) {
		t.Errorf("its share has %q", got)
	}
	for _, name := range []string{"hidden", "never-there"} {
		w.mustAnswer("LOOKUP of "+name, user, lookUp(name), nfsv4.NFS4ERR_NOENT)
		w.mustAnswer("SECINFO of "+name, user, []operation{putRoot(), secinfo(name)}, nfsv4.NFS4ERR_NOENT)
	}
	w.mustAnswer("PUTFH of the directory of another's share", user, []operation{putHandle(handle), listDirectory()}, nfsv4.NFS4ERR_STALE)
	w.mustAnswer("SECINFO of its own", user, []operation{putRoot(), secinfo("alpha")}, nfsv4.NFS4_OK)
	w.mustAnswer("SECINFO_NO_NAME", user, then(lookUp("alpha"), raw(52, 0)), nfsv4.NFS4_OK)
	w.mustAnswer("SECINFO_NO_NAME of the parent", user, then(lookUp("alpha", "0"), raw(52, 1)), nfsv4.NFS4_OK)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = slices.Clone(spec.Exports)
		spec.Exports[1].Access = []v1alpha1.AccessRule{{Clients: []string{"10.99.0.0/16", "10.98.0.1"}}}
	})
	s.settle()
	if got := names(w, putRoot()); !slices.Equal(got, []string{"alpha", "hidden"}) {
		t.Errorf("10.99.0.1 is shown %q once it may have both", got)
	}
	if _, err := s.from("10.99.0.1").Stat(t.Context(), client.Credentials{UID: 1000}, "/hidden/0"); err != nil {
		t.Error(err)
	}
}
