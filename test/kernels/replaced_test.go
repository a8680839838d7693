package kernels

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// ledAway is how long Kubernetes takes to lead new connections elsewhere, podAway how long there is no process: from the end of one pod to
	// the start of the next one's program. Both are less than any cluster needs; what is longer in the end is Howdah's.
	ledAway, podAway = 500 * time.Millisecond, time.Second
	// replacedWithin bounds what clients wait for a replacement on purpose.
	replacedWithin = 15 * time.Second
)

var (
	// dataService is the address of a data server's Service: no server has it.
	dataService = addresses.services + "2"
	// goneAddress is that of a pod that is gone: nothing answers.
	goneAddress = addresses.machine(99)
)

func ownerPort(owner int, port int32) string {
	return net.JoinHostPort(ownerAddress(owner), strconv.Itoa(int(port)))
}

// serveBehind gives a data server the address of a Service. What it returns leads new connections elsewhere, as kube-proxy does.
func (w *world) serveBehind(t *testing.T, owner int) (leadTo func(to string)) {
	t.Helper()
	host(t, "%s -t nat -N DATA", addresses.iptables)
	host(t, "%s -t nat -I PREROUTING -d %s -p tcp -j DATA", addresses.iptables, dataService)
	host(t, "%s -t nat -A DATA -p tcp --dport %d -j DNAT --to-destination %s", addresses.iptables, v1alpha1.NFSPort, ownerPort(owner, v1alpha1.NFSPort))
	host(t, "%s -t nat -A DATA -p tcp --dport %d -j DNAT --to-destination %s", addresses.iptables, v1alpha1.NFSTLSPort, ownerPort(owner, v1alpha1.NFSTLSPort))
	for i := range fronts {
		host(t, "ip -n %s route add %s via %s", namespaceNetwork(i), dataService, testAddress)
	}
	give := func(address string) {
		server := &internalv1.DataServer{}
		// The context of this part has ended when it cleans up.
		w.edit(w.t, server, naming.DataServer(fileServer, int32(owner)), func() { server.Spec.Address = address })
	}
	give(dataService)
	t.Cleanup(func() {
		give(ownerAddress(owner)) // The parts that follow use this data server, too.
		host(t, "%s -t nat -D PREROUTING -d %s -p tcp -j DATA", addresses.iptables, dataService)
		host(t, "%s -t nat -F DATA", addresses.iptables)
		host(t, "%s -t nat -X DATA", addresses.iptables)
	})
	return func(to string) {
		host(t, "%s -t nat -R DATA 1 -p tcp --dport %d -j DNAT --to-destination %s", addresses.iptables, v1alpha1.NFSPort, to)
	}
}

// leadReservedPortsAway leads new connections to the data server's Service to a pod that is gone if they come from reserved ports. So does, for those that
// a client has tried lately, the connection tracking of its node, for two minutes from the last try (docs/design/2026-11-27-client-ports.md).
func leadReservedPortsAway(t *testing.T) (lift func()) {
	t.Helper()
	rule := fmt.Sprintf("PREROUTING -d %s -p tcp --sport :1023 --dport %d -j DNAT --to-destination %s", dataService, v1alpha1.NFSPort, goneAddress)
	host(t, "%s -t nat -I %s", addresses.iptables, rule)
	lift = sync.OnceFunc(func() { host(t, "%s -t nat -D %s", addresses.iptables, rule) })
	t.Cleanup(lift)
	return lift
}

// testReplacedServer stops a data server in order and starts it again, as another pod, while clients work in its directory. They find it by the
// address of a Service, which leads to a waiting room meanwhile. The last client has the directory mounted, and does nothing.
func (w *world) testReplacedServer(t *testing.T) {
	leadTo := w.serveBehind(t, 0)
	w.share("replaced", 1, nil)
	for i, c := range w.clients {
		if i == 0 {
			c.mount(t, "/replaced", recommended+",nconnect=16")
			w.fill(t, c, "replaced")
		} else {
			c.mount(t, "/replaced", recommended+",nconnect=16")
			c.must(t, "cat /mnt/share/a0/file")
		}
		host(t, "cp %s %s", w.binary, filepath.Join(c.folder, "howdah"))
	}
	working := w.clients[:max(len(w.clients)-1, 1)]
	const times, between = 3, 12 * time.Second
	var ends []func() result
	for _, c := range working {
		wait := c.start(t, fmt.Sprintf(loadCommand, "replaced-"+c.name, "--do random,records,opens,lock --pause 50ms --random-pause 20ms --bytes 8Mi", 3*time.Second+times*(between+5*time.Second), "/mnt/share/a0"))
		ends = append(ends, func() result { return wait(t.Context()) })
	}
	time.Sleep(3 * time.Second)
	lift := leadReservedPortsAway(t)
	for range times {
		w.replaceOwner(t, 0, leadTo)
		time.Sleep(between)
	}
	lift() // So that a client that waits comes back, and tells how long it has.
	for i, c := range working {
		found := loadResult(t, c, ends[i]())
		for _, stall := range found.Directories[0].Stalls {
			t.Logf("Linux %s: %s", c.kernel, stall)
		}
		if err := found.Verdict(replacedWithin); err != nil {
			t.Errorf("Linux %s: %v\n%s", c.kernel, err, found.Text())
		}
	}
}

// replaceOwner stops a data server in order and starts the next one, and logs when what happened, from the end of the first ganesha on.
func (w *world) replaceOwner(t *testing.T, owner int, leadTo func(to string)) {
	t.Helper()
	log := filepath.Join(w.scratch, naming.DataServer(fileServer, int32(owner))+".log")
	before := w.dataServer(owner).Status
	written, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.owners[owner].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(ledAway)
	leadTo(net.JoinHostPort(namespaceAddress(0), strconv.Itoa(v1alpha1.WaitingRoomPort)))
	_ = w.owners[owner].Wait()
	ended := time.Now()
	time.Sleep(podAway)
	w.startOwner(owner)
	w.eventually("the data server says that it starts", func() bool {
		status := w.dataServer(owner).Status
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		return status.PodUID != before.PodUID && ready.Reason != internalv1.ReasonStopping
	})
	t.Logf("the next one reports %.2f s after the end of the process", time.Since(ended).Seconds())
	w.eventually("the data server is ready", func() bool {
		response, err := http.Get("http://" + ownerPort(owner, v1alpha1.ManagerPort) + serverpod.ReadyPath)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	t.Logf("ready %.2f s after the end of the process", time.Since(ended).Seconds())
	leadTo(ownerPort(owner, v1alpha1.NFSPort))
	time.Sleep(time.Second)
	logTimes(t, log, written.Size(), ended)
}

func (w *world) dataServer(owner int) *internalv1.DataServer {
	w.t.Helper()
	server := &internalv1.DataServer{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: kubeNamespace, Name: naming.DataServer(fileServer, int32(owner))}, server); err != nil {
		w.t.Fatal(err)
	}
	return server
}

// logTimes logs the lines of a data server's log that say how far it is, by the time since its end.
func logTimes(t *testing.T, log string, from int64, since time.Time) {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(from, 0); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		at, _, _ := strings.Cut(strings.TrimPrefix(line, `{"time":"`), `"`)
		if when, err := time.Parse(time.RFC3339Nano, at); err == nil {
			t.Logf("%+.2f s: %.200s", when.Sub(since).Seconds(), line[len(at):])
		}
	}
}
