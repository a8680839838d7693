package dataserver

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// mustLeadNowhere fails unless a handle is refused as one of what does not exist.
func mustLeadNowhere(t *testing.T, what string, err error) {
	t.Helper()
	if !client.IsStatus(err, nfsv4.NFS4ERR_STALE) && !client.IsStatus(err, nfsv4.NFS4ERR_BADHANDLE) {
		t.Errorf("%s: %v", what, err)
	}
}

// handlesOfRemovedData: the data of a share that was deleted with it can be in the trash for long. A share that is made again with its
// name must not give it to clients that still have the handles.
func handlesOfRemovedData(t *testing.T) {
	const name = "removed-handles"
	held := make(chan struct{})
	beforeOf[name] = func(change string) {
		if strings.HasPrefix(change, "delete ") {
			<-held
		}
	}
	defer delete(beforeOf, name)
	s := boot(t, name, 1)
	defer sync.OnceFunc(func() { close(held) })()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("again"), dataservertest.ShareSpec("stays")}
	})
	s.settle()
	mustWork(t, "write", os.WriteFile(filepath.Join(volumesOf(name), "0/again/file"), []byte("secret"), 0o666))
	handle, err := s.from("10.99.0.1").Handle(t.Context(), user, "/again/0/file")
	mustWork(t, "GETFH", err)
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports, spec.Removals = spec.Exports[1:], []string{"again"} })
	s.settle()
	left, err := filepath.Glob(filepath.Join(volumesOf(name), "0", volumes.MetaDir, volumes.TrashDir, "*", "file"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the data is not in the trash (%v, %v), so this shows nothing", left, err)
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Removals, spec.Exports = nil, append(spec.Exports, dataservertest.ShareSpec("again"))
	})
	s.settle()
	c := s.from("10.99.0.2")
	_, err = c.StatHandle(t.Context(), user, handle)
	mustLeadNowhere(t, "a handle of the share that was deleted with its data", err)
	entries, err := c.ReadDir(t.Context(), user, "/again/0")
	if err != nil || len(entries) > 0 {
		t.Errorf("the new share begins with %v, %v", entries, err)
	}
}

// cutter ends a supervisor, or its ganesha alone, before a change of its volumes.
type cutter struct {
	mu sync.Mutex
	// in is how many changes from now; 0: never.
	in   int
	pid  func() int
	what string
	// dead: the supervisor is to end, too.
	manager, dead bool
}

func (c *cutter) before(change string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		runtime.Goexit() // Whatever else it was at.
	}
	if c.in--; c.in != 0 {
		return
	}
	c.what = change
	if pid := c.pid(); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // As the kernel does when the parent ends.
	}
	if c.manager {
		c.dead = true
		runtime.Goexit()
	}
}

func (c *cutter) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// again boots a data server whose supervisor was killed, with the same API and volumes.
func (s *dataServer) again(name string) *dataServer {
	s.t.Helper()
	s.await("the end of ganesha", func(dataservertest.Reported) bool { return s.pid() == 0 })
	s.stop()
	next := boot(s.t, name, s.dataServer.Spec.Volumes)
	s.status.Mutex.Lock()
	next.status.Exports, next.status.Status = s.status.Exports, s.status.Status
	s.status.Mutex.Unlock()
	next.want, next.dataServer = s.want, s.dataServer
	return next
}

// removalsAreCut: a share is deleted with its data and made again, over and over, and each time the supervisor or ganesha is
// killed at another step. In the end the share is empty, another one has all that is its own, and no handle of earlier data leads anywhere.
func removalsAreCut(t *testing.T) {
	const name = "cut"
	const cuts = 12
	began := time.Now()
	c := &cutter{}
	beforeOf[name] = c.before
	defer delete(beforeOf, name)
	s := boot(t, name, 2)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("stays"), dataservertest.ShareSpec("again")}
	})
	s.settle()
	path := func(volume, share string) string { return filepath.Join(volumesOf(name), volume, share) }
	mustWork(t, "write", os.WriteFile(filepath.Join(path("1", "stays"), "file"), []byte("kept"), 0o666))
	// change asks for something else, and boots what was killed meanwhile until that is done.
	change := func(what func(*dataservertest.Wanted)) {
		s.apply(what)
		s.await("what is asked for to be done, or a death", func(dataservertest.Reported) bool { return c.isDead() || s.status.IsUpToDate() })
		if c.isDead() {
			c.mu.Lock()
			c.dead = false
			c.mu.Unlock()
			s = s.again(name)
			c.pid = s.pid
			s.Offer()
		}
		s.settle()
	}
	for round := 1; round <= cuts; round++ {
		content := "round " + strconv.Itoa(round)
		mustWork(t, "write", os.WriteFile(filepath.Join(path("0", "again"), "file"), []byte(content), 0o666))
		mustWork(t, "write", os.WriteFile(filepath.Join(path("1", "again"), "file"), []byte(content), 0o666))
		handle, err := s.from("10.99.0.1").Handle(t.Context(), user, "/again/1/file")
		mustWork(t, "GETFH", err)
		c.mu.Lock()
		c.in, c.manager, c.pid, c.what = 3*round-2, round%3 != 0, s.pid, "nothing"
		c.mu.Unlock()
		change(func(spec *dataservertest.Wanted) { spec.Exports, spec.Removals = spec.Exports[:1], []string{"again"} })
		for _, volume := range []string{"0", "1"} {
			if _, err := os.Lstat(path(volume, "again")); err == nil {
				t.Errorf("round %d: the data on volume %s is reported as removed, but is still there", round, volume)
			}
		}
		change(func(spec *dataservertest.Wanted) {
			spec.Removals, spec.Exports = nil, append(spec.Exports, dataservertest.ShareSpec("again"))
		})
		t.Logf("round %d: killed before: %s (the supervisor: %v)", round, c.what, c.manager)
		reader := s.from("10.99.0.2")
		_, err = reader.StatHandle(t.Context(), user, handle)
		mustLeadNowhere(t, "a handle of removed data, in "+content, err)
		for _, volume := range []string{"0", "1"} {
			if entries, err := reader.ReadDir(t.Context(), user, "/again/"+volume); err != nil || len(entries) > 0 {
				t.Errorf("round %d: the new share has %v on volume %s, %v", round, entries, volume, err)
			}
		}
		if _, err := reader.Stat(t.Context(), user, "/stays/1/file"); err != nil {
			t.Errorf("round %d: the other share: %v", round, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(path("1", "stays"), "file")); err != nil || string(text) != "kept" {
		t.Errorf("the other share has %q, %v", text, err)
	}
	t.Logf("FIGURE %d removals of a share that were cut, and the share made again: %s", cuts, time.Since(began).Round(time.Millisecond))
}
