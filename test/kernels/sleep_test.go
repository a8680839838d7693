package kernels

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

const sleeper = `import fcntl, os, sys, time
f = open('/mnt/share/a0/sleeper-' + os.uname().release, 'w+')
g = open('/mnt/share/a0/file')
fcntl.lockf(f, fcntl.LOCK_EX)
f.write('before\n'); f.flush(); os.fsync(f.fileno())
open('/tmp/ready', 'w').close()
while not os.path.exists('/tmp/go'): time.sleep(0.2)
def attempt(what, do):
    try: print(what, do(), flush=True)
    except OSError as e: print(what, e.strerror, flush=True)
def write():
    os.write(f.fileno(), b'after\n'); os.fsync(f.fileno()); return 'ok'
attempt('write to the locked file:', write)
attempt('read another open file:', lambda: os.pread(g.fileno(), 10, 0).decode().strip())
def again():
    with open(f.name, 'r+') as h: fcntl.lockf(h, fcntl.LOCK_EX); h.seek(0, 2); h.write('again\n'); h.flush(); os.fsync(h.fileno()); return 'ok'
attempt('open, lock and write again:', again)
`

// testSleep stops client machines with files open and a lock held, for longer than their leases.
func (w *world) testSleep(t *testing.T) {
	w.share("sleep", 1, nil)
	w.spread(t, w.clients[0], "sleep")
	for _, c := range w.clients[1:] {
		c.mount(t, "/sleep", "nconnect=2")
	}
	w.together(t, "rm -f /tmp/ready /tmp/go; cat > /tmp/sleeper.py << 'EOF'\n"+sleeper+"EOF")(t.Context())
	ended := w.together(t, "python3 /tmp/sleeper.py")
	w.untilReady(t)
	asleep := duration(t, "HOWDAH_KERNELS_SLEEP", time.Minute)
	signalAll(t, w.clients, syscall.SIGSTOP)
	time.Sleep(asleep)
	signalAll(t, w.clients, syscall.SIGCONT)
	w.together(t, "touch /tmp/go")(t.Context())
	for i, r := range ended(t.Context()) {
		t.Logf("Linux %s after a sleep of %v: %s", w.clients[i].kernel, asleep, strings.ReplaceAll(r.output, "\n", ", "))
		for _, want := range []string{"write to the locked file: ok", "read another open file: kept", "open, lock and write again: ok"} {
			if !strings.Contains(r.output, want) {
				t.Errorf("Linux %s after a sleep of %v: want %q", w.clients[i].kernel, asleep, want)
			}
		}
	}
	w.expect(t, "what was written", "cat /mnt/share/a0/file /mnt/share/a0/sleeper-$(uname -r) | tr '\\n' ' '", "kept before after again")
}

// untilReady waits until the program that runs on each client says that it is.
func (w *world) untilReady(t *testing.T) {
	t.Helper()
	for i, r := range w.together(t, "for try in $(seq 300); do test -e /tmp/ready && exit 0; sleep 0.2; done; exit 1")(t.Context()) {
		if r.code != 0 {
			t.Fatalf("Linux %s: the program is not ready after a minute", w.clients[i].kernel)
		}
	}
}

const holder = `import fcntl, os, time
f = open('/mnt/share/a0/taken-' + os.uname().release, 'w+')
fcntl.lockf(f, fcntl.LOCK_EX)
f.write('holder\n'); f.flush(); os.fsync(f.fileno())
open('/tmp/ready', 'w').close()
while not os.path.exists('/tmp/go'): time.sleep(0.2)
try: os.write(f.fileno(), b'unprotected\n'); os.fsync(f.fileno()); print('written')
except OSError as e: print(e.strerror)
`

// taker locks each holder's file as soon as it can, writes, and lets go of it.
const taker = `import fcntl, glob, sys
for name in sorted(glob.glob('/mnt/share/a0/taken-*' if len(sys.argv) < 2 else '/mnt/share/a0/taken-' + sys.argv[1])):
    with open(name, 'r+') as f: fcntl.lockf(f, fcntl.LOCK_EX); f.seek(0, 2); f.write('taker\n')
    print('took', name)
`

// testTakenLock stops client machines that hold a lock, and takes the locks from the machine that stays awake: what the
// holder believes to be protected must not be written.
func (w *world) testTakenLock(t *testing.T) {
	if len(w.clients) < 2 {
		t.Skip("it takes two machines")
	}
	w.share("taken", 1, nil)
	w.spread(t, w.clients[0], "taken")
	for _, c := range w.clients[1:] {
		c.mount(t, "/taken", "nconnect=2")
	}
	w.together(t, "rm -f /tmp/ready /tmp/go; cat > /tmp/holder.py << 'EOF'\n"+holder+"EOF\ncat > /tmp/taker.py << 'EOF'\n"+taker+"EOF")(t.Context())
	all, awake := w.clients, w.clients[0]
	defer func() { w.clients = all }()
	w.clients = all[1:]
	ended := w.together(t, "python3 /tmp/holder.py")
	w.untilReady(t)
	began := time.Now()
	signalAll(t, w.clients, syscall.SIGSTOP)
	t.Logf("Linux %s, awake, %s after %v", awake.kernel, strings.ReplaceAll(awake.must(t, "python3 /tmp/taker.py"), "\n", ", "), time.Since(began).Round(time.Second))
	time.Sleep(duration(t, "HOWDAH_KERNELS_SLEEP", time.Minute) - time.Since(began))
	signalAll(t, w.clients, syscall.SIGCONT)
	w.together(t, "touch /tmp/go")(t.Context())
	for i, r := range ended(t.Context()) {
		if got := strings.TrimSpace(r.output); got != "Input/output error" {
			t.Errorf("Linux %s: a write by a client that has lost its lock: %q", w.clients[i].kernel, got)
		}
	}
	// A program that is started again locks and writes.
	w.expect(t, "the holder's machine afterwards", "python3 /tmp/taker.py $(uname -r) && cat /mnt/share/a0/taken-$(uname -r) | tr '\\n' ' '", "holder taker taker")
}

func signalAll(t *testing.T, clients []*kernelClient, signal syscall.Signal) {
	t.Helper()
	for _, c := range clients {
		if err := c.command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
}
