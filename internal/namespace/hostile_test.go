package namespace

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/client-go/rest"

	"github.com/howdah/howdah/internal/namespace/ownertest"
)

const (
	// hostileServer makes the test binary a namespace server: a process of its own has memory of its own to measure.
	hostileServer = "HOWDAH_HOSTILE_SERVER"
	// hostileAttack makes it an attacker, which the machine lets compute after all others: real ones compute elsewhere.
	hostileAttack = "HOWDAH_HOSTILE_ATTACK"
	// hostileSeconds is how long each attack lasts; make bench-hostile sets it, and holds the goals to it.
	hostileSeconds = "HOWDAH_HOSTILE_SECONDS"

	stallGoal  = time.Second
	memoryGoal = 128 << 20
	// listed is how many directories a listing has: not more than may be made at once.
	listed = 240
	// busy is how much longer a stall may be in make test, on a machine that does other things, too.
	busy = 10
)

// hostileOptions has the options of the server's process.
type hostileOptions struct {
	Host                        string
	TLS                         rest.TLSClientConfig
	Namespace, Address, Manager string
	Certificate, Replica        string
}

// serveHostile is the server's process.
func serveHostile() int {
	var o hostileOptions
	if err := json.Unmarshal([]byte(os.Getenv(hostileServer)), &o); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := Run(ctx, &rest.Config{Host: o.Host, TLSClientConfig: o.TLS}, Options{
		FileServer: fileServer, KubeNamespace: o.Namespace, Replica: o.Replica, Listen: o.Address, Manager: o.Manager, Certificate: o.Certificate,
		Memory: 512 << 20, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// attackOptions has the options of an attacker's process.
type attackOptions struct {
	Attack, Round int
	Address       string
	Length        time.Duration
}

// runAttack is the attacker's process.
func runAttack() int {
	var o attackOptions
	if err := json.Unmarshal([]byte(os.Getenv(hostileAttack)), &o); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Length)
	defer cancel()
	report := slices.Concat(attacks, floods)[o.Attack].run(ctx, &target{address: o.Address, attacks: o.Round})
	fmt.Fprint(os.Stdout, report)
	return 0
}

// suffer lets an attack happen, and gives what it tells.
func (s *target) suffer(attack int, length time.Duration) string {
	s.Helper()
	given, err := json.Marshal(attackOptions{Attack: attack, Round: s.attacks, Address: s.address, Length: length})
	if err != nil {
		s.Fatal(err)
	}
	process := exec.Command("nice", "-n", "19", os.Args[0], "-test.run=^$")
	process.Env = append(os.Environ(), hostileAttack+"="+string(given))
	process.Stderr = os.Stderr
	report, err := process.Output()
	if err != nil {
		s.Fatal(err)
	}
	return string(report)
}

// target is a namespace server in a process of its own.
type target struct {
	*testing.T
	address, manager string
	pid              int
	// attacks is how many there have been.
	attacks int
}

func (w *world) serveProcess() *target {
	w.t.Helper()
	s := &target{T: w.t, address: freeAddress(w.t), manager: freeAddress(w.t)}
	given, err := json.Marshal(hostileOptions{
		Host: config.Host, TLS: config.TLSClientConfig, Namespace: w.namespace, Address: s.address, Manager: s.manager,
		Certificate: ownertest.Certificate(w.t), Replica: "hostile",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	process := exec.Command(os.Args[0], "-test.run=^$")
	process.Env = append(os.Environ(), hostileServer+"="+string(given))
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		w.t.Fatal(err)
	}
	s.pid = process.Process.Pid
	w.t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		if err := process.Wait(); err != nil {
			w.t.Errorf("the server ended with %v", err)
		}
	})
	w.eventually("the namespace server is ready", s.ready)
	return s
}

func (s *target) ready() bool {
	res, err := http.Get("http://" + s.manager + "/readyz")
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// forgetPeak makes the most memory that the process has had that of now.
func (s *target) forgetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0)
}

// peak is the most memory that the process has had since, in bytes (VmHWM of proc(5)).
func (s *target) peak() int {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		s.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.TrimSpace(after[:strings.Index(after, "kB")]))
	if err != nil {
		s.Fatal(err)
	}
	return kilobytes << 10
}

// TestHostileClients prints for each attack from other addresses the longest stall of well-behaved clients, one with a session
// and newcomers, and the server's memory. The API server and the kernel's sockets are real, data servers are not.
func TestHostileClients(t *testing.T) {
	w := newWorld(t, 2)
	w.share("data", 2)
	s := w.serveProcess()
	maker := boot(t, s.address)
	for i := range listed { // Long names, so that a listing is long.
		if status := maker.mkdir(user, fmt.Sprintf("/data/%03d-%s", i, strings.Repeat("x", 200))); status != nfsv4.NFS4_OK {
			t.Fatal(status)
		}
	}
	length, goal, memoryGoal := 2*time.Second, stallGoal*busy, memoryGoal*2
	if seconds, err := strconv.Atoi(os.Getenv(hostileSeconds)); err == nil {
		length, goal = time.Duration(seconds)*time.Second, stallGoal
		memoryGoal /= 2
	}
	calm := watchWellBehaved(s)
	time.Sleep(time.Second)
	quiet, trouble := calm.end()
	t.Logf("FIGURE no attack: longest stall %s, memory %d MiB%s", quiet.Round(time.Millisecond), s.peak()>>20, trouble)
	for i, attack := range attacks {
		if os.Getenv(hostileSeconds) == "" && attack.long {
			continue
		}
		t.Logf("BEGINS %d of %d: %s, %s", i+1, len(attacks), attack.name, length)
		s.forgetPeak()
		s.attacks++
		share := toSpare(t)
		watching := watchWellBehaved(s)
		report := s.suffer(i, length)
		stall, trouble := watching.end()
		share = min(share, toSpare(t))
		memory := s.peak()
		t.Logf("FIGURE %s: longest stall %s, memory %d MiB%s", attack.name, stall.Round(time.Millisecond), memory>>20, report)
		if trouble != "" {
			t.Errorf("%s: a well-behaved client had an error: %s", attack.name, trouble)
		}
		hold(t, attack.name, stall, goal, share)
		if memory > memoryGoal {
			t.Errorf("%s: the server took %d MiB, the goal is %d", attack.name, memory>>20, memoryGoal>>20)
		}
		if !s.ready() {
			t.Errorf("%s: the server is not ready", attack.name)
		}
	}
}
