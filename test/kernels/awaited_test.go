package kernels

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keeper has a file open in each of two shares, locked, and one without a lock. It writes to each until it is to stop.
const keeper = `import fcntl, os, time
release = os.uname().release
def make(name, locked):
    f = open(name, 'w+')
    if locked: fcntl.lockf(f, fcntl.LOCK_EX)
    f.write('begin\n'); f.flush(); os.fsync(f.fileno())
    return f
files = {'locked': make('/mnt/share/a0/locked-' + release, True), 'open': make('/mnt/share/a0/open-' + release, False), 'beside': make('/mnt/beside/a0/locked-' + release, True)}
failed = {}
open('/tmp/ready', 'w').close()
while not os.path.exists('/tmp/go'):
    for name, f in files.items():
        try: os.write(f.fileno(), b'more\n'); os.fsync(f.fileno())
        except OSError as e: failed[name] = e.strerror
    time.sleep(0.2)
for name, f in files.items():
    try: os.write(f.fileno(), b'last\n'); os.fsync(f.fileno())
    except OSError as e: failed[name] = e.strerror
    print(name + ':', failed.get(name, 'ok'))
`

// testAwaitedShare takes a share's directory away from a data server whose ganesha is then killed. It comes back within grace, and after it.
func (w *world) testAwaitedShare(t *testing.T) {
	w.share("awaited", 1, nil)
	w.share("beside", 1, nil)
	t.Run("another share", func(t *testing.T) { w.spread(t, w.clients[0], "beside") })
	for i, c := range w.clients {
		if i == 0 {
			w.spread(t, c, "awaited")
		} else {
			c.mount(t, "/awaited", "nconnect=2")
		}
		c.must(t, "mkdir -p /mnt/beside && mount -t nfs4 -o vers=4.1,nconnect=2 "+source(namespaceServers)+":/beside /mnt/beside")
		t.Cleanup(func() { c.run(t, "cd /; umount -i -l /mnt/beside") })
	}
	t.Run("back within grace", func(t *testing.T) { w.awaitShare(t, 25*time.Second, false) })
	t.Run("back after grace", func(t *testing.T) { w.awaitShare(t, 2*time.Minute, true) })
}

func (w *world) awaitShare(t *testing.T, away time.Duration, lost bool) {
	w.together(t, "rm -f /tmp/ready /tmp/go; cat > /tmp/keeper.py << 'EOF'\n"+keeper+"EOF")(t.Context())
	ended := w.together(t, "python3 /tmp/keeper.py")
	w.untilReady(t)
	directory := filepath.Join(w.ownerFolder(0), "volume", "awaited")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(directory, directory+".away"))
	must(os.WriteFile(directory, nil, 0o600))
	must(syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGKILL))
	time.Sleep(away)
	began := time.Now()
	must(os.Remove(directory))
	must(os.Rename(directory+".away", directory))
	w.together(t, "touch /tmp/go")(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i, r := range ended(ctx) {
		t.Logf("Linux %s, with the share away for %v, ended %v after its return: %s", w.clients[i].kernel, away, time.Since(began).Round(time.Second), strings.ReplaceAll(r.output, "\n", ", "))
		wanted := []string{"locked: ok", "open: ok", "beside: ok"}
		if lost {
			wanted[0] = "locked: Input/output error"
		}
		for _, want := range wanted {
			if !strings.Contains(r.output, want) {
				t.Errorf("Linux %s, with the share away for %v: want %q", w.clients[i].kernel, away, want)
			}
		}
	}
}
