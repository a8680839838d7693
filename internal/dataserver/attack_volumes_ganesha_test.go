package dataserver

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/serverpod"
)

// workers is more than ganesha has threads that serve.
const workers = 260

// nothingHoldsAThread: each operation on each kind of thing that users make, more often than there are threads.
func nothingHoldsAThread(t *testing.T) {
	s := exported(t, "kinds")
	pid := s.pid()
	share := "/volumes/kinds/0/alpha/"
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	directory := lookUp("alpha", "0")
	for name, kind := range map[string]nfsv4.Createtype4{
		"fifo": &nfsv4.Createtype4_NF4FIFO{}, "socket": &nfsv4.Createtype4_NF4SOCK{},
		"loop": &nfsv4.Createtype4_NF4LNK{Linkdata: []byte("loop")}, "link": &nfsv4.Createtype4_NF4LNK{Linkdata: []byte("file")},
		"directory": &nfsv4.Createtype4_NF4DIR{},
	} {
		w.mustAnswer("CREATE of "+name, user, then(directory, create(kind, name)), nfsv4.NFS4_OK)
	}
	putFile(t, share+"file", "text", 0o666)
	putFile(t, share+"sparse", "", 0o666)
	mustWork(t, "truncate", os.Truncate(share+"sparse", 1<<43)) // What ext4 allows: 16 TiB.
	kinds := []string{"fifo", "socket", "loop", "link", "directory", "file", "sparse"}
	for _, name := range kinds {
		here := then(directory, lookUpName(name))
		for what, operations := range map[string][]operation{
			"GETXATTR": then(here, raw(opGetXattr, "name")), "LISTXATTRS": then(here, raw(opListXattrs, uint64(0), 4096)),
			"SETXATTR": then(here, setXattr("name", "value")), "REMOVEXATTR": then(here, raw(opRemoveXattr, "name")),
			"READ": then(here, readAll(anonymous)), "WRITE": then(here, write(anonymous, "text")), "COMMIT": then(here, &nfsv4.NfsArgop4_OP_COMMIT{}),
			"OPEN":    then(directory, w.open(name, readWrite)),
			"READDIR": then(here, listDirectory()), "READLINK": then(here, &nfsv4.NfsArgop4_OP_READLINK{}), "LOOKUPP": then(here, lookUpParent()),
			"GETATTR": then(here, &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: nfsv4.Bitmap4{0x0018091a, 0x00b0a23a}}}),
			"SETATTR": then(here, setMode(0o640)), "SEEK": then(here, raw(opSeek, anonymous, uint64(1<<42), 0)),
			"ALLOCATE": then(here, allocate(opAllocate, anonymous, 0, 1<<62)), "DEALLOCATE": then(here, allocate(opDeallocate, anonymous, 0, 1<<62)),
			"SECINFO": then(directory, &nfsv4.NfsArgop4_OP_SECINFO{Opsecinfo: nfsv4.Secinfo4args{Name: name}}),
		} {
			began := time.Now()
			if !answersWithin(t, 10*time.Second, func() { w.Run(user, operations...) }) {
				t.Fatalf("%s of %s holds a thread", what, name)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s of %s took %s", what, name, took.Round(time.Millisecond))
			}
		}
	}
	manyOnAFIFO(t)
	w.mustAnswer("GETXATTR of a FIFO", user, then(directory, lookUpName("fifo"), raw(opGetXattr, "name")), statusNoXattr)
	w.mustAnswer("LISTXATTRS of a FIFO", user, then(directory, lookUpName("fifo"), raw(opListXattrs, uint64(0), 4096)), nfsv4.NFS4_OK)
	w.mustAnswer("SETXATTR of a FIFO", user, then(directory, lookUpName("fifo"), setXattr("name", "value")), nfsv4.NFS4ERR_PERM)
	s.mustLive(t, pid)
}

func answersWithin(t *testing.T, limit time.Duration, ask func()) bool {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); ask() }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// manyOnAFIFO asks more often at a time than there are threads, and sees that others are answered meanwhile.
func manyOnAFIFO(t *testing.T) {
	var asking sync.WaitGroup
	fifo := lookUp("alpha", "0", "fifo")
	for i := range workers {
		w := dialWireAs(t, fmt.Sprintf("many %d", i/8), "10.99.0.1:2049", 2)
		asking.Go(func() { w.Run(user, then(fifo, raw(opListXattrs, uint64(0), 4096))...) })
	}
	began := time.Now()
	if err := client.Null(t.Context(), "10.99.0.2:2049"); err != nil || time.Since(began) > time.Second {
		t.Errorf("another client was answered after %s: %v", time.Since(began).Round(time.Millisecond), err)
	}
	asking.Wait()
}

// xattrsNeedPermissions: extended attributes are read by those who may read, and set by those who may write.
func xattrsNeedPermissions(t *testing.T) {
	s := exported(t, "xattrs")
	private := "/volumes/xattrs/0/alpha/private"
	putFile(t, private, "text", 0o600)
	mustWork(t, "setxattr", unix.Setxattr(private, "user.own", []byte("value"), 0))
	other := client.Credentials{UID: 1001, GID: 1001}
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 2)
	here := lookUp("alpha", "0", "private")
	for what, op := range map[string]operation{
		"GETXATTR": raw(opGetXattr, "own"), "LISTXATTRS": raw(opListXattrs, uint64(0), 4096),
		"SETXATTR": setXattr("planted", "value"), "REMOVEXATTR": raw(opRemoveXattr, "own"),
	} {
		w.mustAnswer(what+" by another user", other, then(here, op), nfsv4.NFS4ERR_ACCESS)
	}
	for _, op := range []operation{raw(opGetXattr, "own"), raw(opListXattrs, uint64(0), 4096), setXattr("more", "value"), raw(opRemoveXattr, "own")} {
		w.mustAnswer("the owner's", user, then(here, op), nfsv4.NFS4_OK)
	}
	s.mustLive(t, s.pid())
}

// socketsLeadNowhere: attributes of a socket are those of the socket, whatever has taken its name.
func socketsLeadNowhere(t *testing.T, name string) {
	if isEmulated() && ganeshaOf[name] != "" {
		t.Skip("QEMU takes no filter of system calls (internal/ganesha/build/tests/older.c)")
	}
	s := exported(t, name)
	share := filepath.Join(volumesOf(name), "0/alpha") + "/"
	secret := filepath.Join(volumesOf(name), "0/hidden/secret")
	mustWork(t, "write", os.WriteFile(secret, []byte("of others"), 0o600))
	w := dialReady(t, "wire "+t.Name(), "10.99.0.1:2049", 1)
	directory := lookUp("alpha", "0")
	w.mustAnswer("CREATE", user, then(directory, create(&nfsv4.Createtype4_NF4SOCK{}, "socket")), nfsv4.NFS4_OK)
	handle := w.handle(user, lookUp("alpha", "0", "socket")...)
	w.mustAnswer("LINK", user, then([]operation{putHandle(handle), saveHandle()}, then(directory, &nfsv4.NfsArgop4_OP_LINK{
		Oplink: nfsv4.Link4args{Newname: "second"},
	})...), nfsv4.NFS4_OK)
	mustWork(t, "remove its name", os.Remove(share+"socket"))
	mustWork(t, "put a link in its place", os.Symlink(secret, share+"socket"))
	mustWork(t, "as its user would", os.Lchown(share+"socket", 1000, 1000))
	w.mustAnswer("SETATTR", user, []operation{putHandle(handle), setMode(0o777)}, nfsv4.NFS4_OK)
	w.mustAnswer("SETATTR of a time", user, []operation{putHandle(handle), setModifyTime()}, nfsv4.NFS4_OK)
	about, err := os.Stat(secret)
	mustWork(t, "stat", err)
	if about.Mode().Perm() != 0o600 {
		t.Errorf("another share's file has the mode %v", about.Mode())
	}
	about, err = os.Lstat(share + "second")
	mustWork(t, "stat", err)
	if about.Mode().Perm() != 0o777 || about.Mode()&os.ModeSocket == 0 || about.ModTime().Unix() != 1_000_000 {
		t.Errorf("the socket is %v of %s", about.Mode(), about.ModTime())
	}
	exports := s.want.Exports
	s.stop()
	s = boot(t, name, 1)
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports = exports })
	s.settle()
	seen, err := s.from("10.99.0.1").StatHandle(t.Context(), user, handle)
	mustWork(t, "attributes by the handle", err)
	if seen.Type != nfsv4.NF4SOCK || seen.Owner != 1000 {
		t.Errorf("it is %+v", seen)
	}
}

func setModifyTime() operation {
	values := binary.BigEndian.AppendUint32(nil, uint32(nfsv4.SET_TO_CLIENT_TIME4))
	values = binary.BigEndian.AppendUint64(values, 1_000_000)
	values = binary.BigEndian.AppendUint32(values, 0)
	return &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: nfsv4.Fattr4{
		Attrmask: nfsv4.Bitmap4{0, 1 << (nfsv4.FATTR4_TIME_MODIFY_SET - 32)}, AttrVals: values,
	}}}
}

// slowOperationsAreNamed: what counts as slow here is what takes a millisecond, which a write to the disk does.
func slowOperationsAreNamed(t *testing.T) {
	ganeshaOf["slow-operations"] = "/run/ganesha-that-is-impatient"
	script := "#!/bin/sh\nexport HOWDAH_LONG_MILLISECONDS=1\nexec " + serverpod.GaneshaBinary + " \"$@\"\n"
	mustWork(t, "write", os.WriteFile(ganeshaOf["slow-operations"], []byte(script), 0o755))
	s := exported(t, "slow-operations")
	putFile(t, "/volumes/slow-operations/0/alpha/file", "text", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for i := range 8 {
		w := dialReady(t, fmt.Sprintf("writer %d", i), "10.99.0.1:2049", 1)
		data := string(make([]byte, 60_000))
		writing.Go(func() {
			for ctx.Err() == nil {
				w.Run(user, then(lookUp("alpha", "0", "file"), write(anonymous, data))...)
			}
		})
	}
	s.await("a slow operation to be named", func(dataservertest.Reported) bool {
		work := s.supervisor.State().AtWork
		return work.Count > 0 && strings.Contains(work.Oldest, "of client 10.99.0.1, for ")
	})
	t.Logf("FIGURE %s", s.supervisor.State().AtWork.Describe(time.Now()))
	cancel()
	writing.Wait()
	s.await("the end of it", func(dataservertest.Reported) bool { return s.supervisor.State().AtWork.Count == 0 })
}
