package hostile

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/realtest"
)

// Who is who. A guest is let in to one share, and attacks the other; an unlisted client is let in nowhere.
const (
	readWrite, readOnly, guest = realtest.Address1, realtest.Address2, realtest.Address3
	unlisted, bystander        = realtest.Address4, realtest.Address5

	// share has the files that are attacked, elsewhere is the guest's, quiet is the bystander's alone.
	share, elsewhere, quiet = "share", "elsewhere", "quiet"
	// awaited was served once, and has been left out since: its clients wait.
	awaited = "awaited"
)

var shares = []string{share, elsewhere, quiet, awaited}

// world is a running ganesha with its files.
type world struct {
	t       testing.TB
	server  *realtest.Server
	storage storage
	// handles are those at the paths that clients know.
	handles map[string][]byte
	// paths are those of handles that the fuzzer chooses from, names those of files. What is in them twice is chosen as often.
	paths, names []string
}

// knownPaths are those of every storage.
var knownPaths = []string{
	"share", "share/dir", "share/dir/file", "share/dir/file", "share/dir/link", "share/dir/fifo", "elsewhere/dir", "elsewhere/dir/file",
}

// begin makes the files of shares and starts a ganesha.
func begin(t testing.TB) *world {
	t.Helper()
	stored, err := files()
	must(t, err)
	must(t, stored.clear(t.Context()))
	for _, name := range shares {
		top := stored.path(name)
		base := filepath.Join(top, "dir")
		for _, directory := range []string{top, base, filepath.Join(base, "sub")} {
			must(t, os.MkdirAll(directory, 0o777))
			must(t, os.Chmod(directory, 0o777)) // Whatever the umask.
		}
		must(t, os.WriteFile(base+"/file", []byte(strings.Repeat("what is there stays. ", 3000)), 0o666))
		must(t, os.Chmod(base+"/file", 0o666))
		must(t, os.WriteFile(base+"/secret", []byte("root's"), 0o600))
		must(t, os.Symlink("file", base+"/link"))
		must(t, syscall.Mkfifo(base+"/fifo", 0o666))
		must(t, os.Chmod(base+"/fifo", 0o666))
		must(t, stored.device(base+"/device"))
	}
	export := func(id uint16, name string, clients ...ganesha.Client) ganesha.Export {
		return ganesha.Export{ID: id, Path: name, Pseudo: "/" + name, Clients: clients}
	}
	w := &world{
		t: t, storage: stored, handles: map[string][]byte{}, paths: slices.Clone(knownPaths),
		names: []string{"file", "made", "link", "fifo", "dir", "sub", awaited, "..", ".", "", "a\x00b", "user.x"},
	}
	snapshot, err := stored.snapshot(t.Context())
	must(t, err)
	if snapshot != "" {
		w.paths = append(w.paths, "share/.snap", "share/dir/.snap", "share/dir/.snap/"+snapshot, "share/.snap/"+snapshot+"/dir/file", "share/.snap/"+snapshot+"/dir/fifo")
		w.names = append(w.names, ".snap", snapshot)
	}
	config := ganesha.Config{
		Exports: []ganesha.Export{
			export(1, share, realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, readWrite),
				realtest.Client(ganesha.ReadOnly, ganesha.SquashNone, readOnly)),
			export(2, elsewhere, realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, readWrite, guest)),
			export(3, quiet, realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, bystander)),
			export(4, awaited, realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, readWrite, guest)),
		},
	}
	for i, one := range config.Exports {
		if slices.ContainsFunc(config.Exports[:i], func(other ganesha.Export) bool { return other.Path == one.Path }) {
			t.Fatalf("two exports have the files of %s, which a data server in Ceph refuses", one.Path)
		}
	}
	stored.complete(&config)
	// Handles outlive a server. Of a share that is left out, clients have none but from before.
	before := realtest.Start(t, config)
	w.learn(awaited, awaited+"/dir", awaited+"/dir/file")
	before.Stop()
	config.Exports[3].Awaited = true
	w.server = realtest.Start(t, config)
	w.learn(append(slices.Clone(w.paths), "share/dir/device", "share/dir/secret")...)
	w.paths = append(w.paths, awaited, awaited+"/dir", awaited+"/dir/file")
	return w
}

// learn looks paths up, for their handles.
func (w *world) learn(paths ...string) {
	w.t.Helper()
	s, err := login(readWrite, 1, 0, "the one who looks up")
	must(w.t, err)
	for _, path := range paths {
		w.handles[path], err = s.handle(strings.Split(path, "/")...)
		must(w.t, err)
	}
	s.leave()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents are all that clients can see of a share on the disk, but for times of access: a line for each file.
func (w *world) contents(name string) string {
	w.t.Helper()
	var lines strings.Builder
	must(w.t, filepath.WalkDir(w.storage.path(name), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		fmt.Fprint(&lines, path, " ", info.Mode(), info.Size(), stat.Uid, stat.Gid, stat.Nlink, stat.Blocks, stat.Mtim, stat.Ctim)
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&lines, " %x", sha256.Sum256(content))
		}
		if names, err := listXattrs(path); err == nil {
			fmt.Fprintf(&lines, " %q", names)
		}
		fmt.Fprintln(&lines)
		return nil
	}))
	return lines.String()
}

// unchanged fails if the contents of a share are others than they were.
func (w *world) unchanged(name, before string) {
	w.t.Helper()
	if now := w.contents(name); now != before {
		w.t.Errorf("the share has changed, from\n%sto\n%s", before, now)
	}
}

func listXattrs(path string) (string, error) {
	into := make([]byte, 4096)
	n, err := syscall.Listxattr(path, into)
	if err != nil {
		return "", err
	}
	return string(into[:n]), nil
}

// logFindings logs what sanitizers reported while the server stopped: what they had written before is known.
func (w *world) logFindings(known int) {
	w.t.Helper()
	findings, err := w.server.Findings()
	must(w.t, err)
	if len(findings) > known {
		w.t.Logf("FIGURE at the stop, sanitizers: %s", findings[known:min(len(findings), known+6000)])
	}
}

// endedWell fails if the server's stop ended with a fault: sessions of other shares may then be left with Ceph, and their clients wait for them.
// A fault of ntirpc is only logged: svc_shutdown may destroy a connection that another thread still sets up (its xp_ops is NULL), in Debian's binary.
func (w *world) endedWell() {
	w.t.Helper()
	how := w.server.HowEnded()
	w.t.Logf("FIGURE stopped: %s", how)
	if how == "exit status 0" {
		return
	}
	log := w.server.Log()
	findings, err := w.server.Findings()
	must(w.t, err)
	report := w.t.Errorf
	if strings.Contains(findings, "svc_shutdown") {
		report = w.t.Logf
	}
	report("the server's stop ended with %s; the end of the log: %s", how, log[max(0, len(log)-6000):])
}

// watch is a client that behaves well. It has a file open, a lock on it, and goes on working.
type watch struct {
	world   *world
	stop    chan struct{}
	done    chan struct{}
	longest time.Duration
	calls   int
	errors  []string
}

// watching begins to work as the bystander. What it notices is known after end.
func (w *world) watching() *watch {
	b := &watch{world: w, stop: make(chan struct{}), done: make(chan struct{})}
	s, err := login(bystander, 1, 0, "bystander")
	must(w.t, err)
	file, err := s.handle(quiet, "dir", "file")
	must(w.t, err)
	opened, err := s.openFile("bystander", file, nfsv4.OPEN4_SHARE_ACCESS_BOTH)
	must(w.t, err)
	lock, err := s.lockFile("bystander", file, opened, nfsv4.WRITE_LT, 7)
	must(w.t, err)
	steps := [][]operation{
		{putFH(file), &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1 << nfsv4.FATTR4_SIZE}}}},
		{putFH(file), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: opened, Count: 4096}}},
		{putFH(file), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: lock, Offset: 4096, Data: []byte("it goes on")}}},
		lookUp(quiet, "dir", "sub"),
	}
	go func() {
		defer close(b.done)
		defer s.leave()
		for i := 0; ; i++ {
			began := time.Now()
			if i%10 == 9 {
				b.newcomer()
			} else if answer, err := s.run(0, steps[i%len(steps)]...); err != nil || answer.status != nfsv4.NFS4_OK {
				b.note(answer.status, err)
			}
			b.longest = max(b.longest, time.Since(began))
			b.calls++
			if len(b.errors) > 10 {
				return
			}
			select {
			case <-b.stop:
				b.stillLocked(s, lock)
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return b
}

func (b *watch) note(status nfsv4.Nfsstat4, err error) {
	b.errors = append(b.errors, fmt.Sprint(nfsv4.Nfsstat4_name[status], " ", err))
}

// newcomer mounts and leaves.
func (b *watch) newcomer() {
	s, err := login(bystander, 1, 0, "newcomer")
	if err != nil {
		b.note(0, fmt.Errorf("newcomer: %w", err))
		return
	}
	if answer, err := s.run(0, lookUp(quiet)...); err != nil || answer.status != nfsv4.NFS4_OK {
		b.note(answer.status, err)
	}
	s.leave()
}

// stillLocked: locks that were lost are seen by TEST_STATEID.
func (b *watch) stillLocked(s *session, lock nfsv4.Stateid4) {
	answer, err := s.run(0, &nfsv4.NfsArgop4_OP_TEST_STATEID{OptestStateid: nfsv4.TestStateid4args{TsStateids: []nfsv4.Stateid4{lock}}})
	if err != nil || answer.status != nfsv4.NFS4_OK {
		b.note(answer.status, err)
		return
	}
	tested, ok := answer.results[1].(*nfsv4.NfsResop4_OP_TEST_STATEID).OptestStateid.(*nfsv4.TestStateid4res_NFS4_OK)
	if !ok || len(tested.TsrResok4.TsrStatusCodes) != 1 || tested.TsrResok4.TsrStatusCodes[0] != nfsv4.NFS4_OK {
		b.errors = append(b.errors, "the lock is lost")
	}
}

// end stops working.
func (b *watch) end() {
	close(b.stop)
	<-b.done
}

// unharmed fails if the bystander noticed more than it may, or if ganesha ended.
func (b *watch) unharmed(t testing.TB, stall time.Duration) {
	t.Helper()
	if err := b.world.server.Ended(); err != nil {
		log := b.world.server.Log()
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-3000):])
	}
	for _, fault := range b.errors {
		t.Errorf("the bystander: %s", fault)
	}
	if b.longest > stall {
		t.Errorf("the bystander waited for %s", b.longest)
	}
}
