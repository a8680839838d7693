package kernels

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/load"
)

const (
	// outage is how long a network is bad.
	outage = 20 * time.Second
	// afterwards is how much longer than the network is bad an operation may take.
	afterwards = 15 * time.Second
)

//go:embed testdata/namespace.py
var namespaceLoad []byte

// TestNetworks is about bad networks. It takes longer than TestKernels and says nothing about a kernel's tools, so it has a target of its own.
func TestNetworks(t *testing.T) {
	w := newWorld(t, small, twoNewest)
	t.Run("clients go on when their namespace server is lost", w.testLostNamespaceServer)
	w.share("networks", 1, nil)
	for i, c := range w.clients {
		c.mount(t, "/networks", recommended+",nconnect=4")
		if i == 0 {
			w.fill(t, c, "networks")
		}
		host(t, "cp %s %s", w.binary, filepath.Join(c.folder, "howdah"))
		if err := os.WriteFile(filepath.Join(c.folder, "namespace.py"), namespaceLoad, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, bad := range badNetworks() {
		t.Run(bad.name, func(t *testing.T) { w.testBadNetwork(t, fmt.Sprintf("bad%02d", i), bad) })
	}
	t.Run("what was written is there", func(t *testing.T) {
		for i, r := range w.together(t, "echo 3 > /proc/sys/vm/drop_caches; /host/howdah load --audit /mnt/share/a0 /mnt/share/a1")(t.Context()) {
			if r.code != 0 {
				t.Errorf("%s: the audit ended with %d:\n%s", w.clients[i].name, r.code, r.output)
			}
		}
	})
	t.Run("no connection sticks with unread data", w.testUnreadData)
}

// twoNewest are clients of the newest kernel that starts here, and of the one before, if there is one.
func twoNewest(kernels []string) []string {
	newest := kernels[len(kernels)-1]
	return []string{newest, kernels[max(0, len(kernels)-2)]}
}

// badNetwork is what is wrong for a time.
type badNetwork struct {
	name string
	// loss is the part of the packets that are dropped, ways are those from one address to another that all are dropped on.
	loss float64
	ways [][2]string
	// The clients' own side is changed by scripts on them.
	script, undo string
	// lasts is outage unless set.
	lasts time.Duration
	// lapses: a client's lease is over by then, so the server may give its lock to a rival. The holder has to notice.
	lapses bool
	// spares is a directory that has nothing to do with it.
	spares string
}

// badNetworks are those of the test. What drops packets is where they pass the bridge, or reach the API server.
func badNetworks() []badNetwork {
	clients, owner, servers := []string{clientAddress(0), clientAddress(1)}, []string{ownerAddress(0)}, []string{namespaceAddress(0), namespaceAddress(1)}
	oneWay := func(from, to []string) (ways [][2]string) {
		for _, f := range from {
			for _, t := range to {
				ways = append(ways, [2]string{f, t})
			}
		}
		return ways
	}
	return []badNetwork{
		{name: "1 % of packets are lost", loss: 0.01},
		{name: "10 % of packets are lost", loss: 0.1},
		{name: "packets are late and out of order", script: "tc qdisc add dev vec0 root netem delay 100ms 20ms reorder 25% 50%", undo: "tc qdisc del dev vec0 root"},
		{name: "nothing from clients reaches a data server", ways: oneWay(clients, owner), lapses: true, spares: "/mnt/share/a1"},
		{name: "nothing from a data server reaches clients", ways: oneWay(owner, clients), lapses: true, spares: "/mnt/share/a1"},
		{name: "nothing from one client reaches a data server", ways: oneWay(clients[:1], owner), lapses: true, spares: "/mnt/share/a1"},
		{name: "nothing from one client reaches a data server for less than a lease", ways: oneWay(clients[:1], owner), lasts: 6 * time.Second, spares: "/mnt/share/a1"},
		{name: "nothing from clients reaches the namespace server", ways: oneWay(clients, servers)},
		{name: "nothing from the namespace server reaches clients", ways: oneWay(servers, clients)},
		{name: "nothing from namespace servers reaches a data server", ways: oneWay(servers, owner), spares: "/mnt/share/a1"},
		{name: "nothing from a data server reaches namespace servers", ways: oneWay(owner, servers), spares: "/mnt/share/a1"},
		{name: "nothing from namespace servers reaches the API server", ways: oneWay(servers, []string{testAddress}), spares: "/mnt/share/a0"},
		{name: "nothing from a data server reaches the API server", ways: oneWay(owner, []string{testAddress}), spares: "/mnt/share/a0"},
	}
}

func (b badNetwork) begin(t *testing.T, w *world) {
	t.Helper()
	for _, way := range b.ways {
		cut(t, way[0], way[1])
	}
	if b.loss > 0 {
		host(t, "%s -A FORWARD -m statistic --mode random --probability %f -j DROP", addresses.iptables, b.loss)
	}
	if b.script != "" {
		w.together(t, b.script)(t.Context())
	}
}

func (b badNetwork) end(t *testing.T, w *world) {
	t.Helper()
	heal(t)
	if b.undo != "" {
		w.together(t, b.undo)(t.Context())
	}
}

// limit is how long an operation may take.
func (b badNetwork) limit() time.Duration { return b.lasts + afterwards }

// testBadNetwork loads data and namespace from two clients while the network is bad, and a while before and after.
func (w *world) testBadNetwork(t *testing.T, run string, bad badNetwork) {
	const before, after = 5 * time.Second, 20 * time.Second
	bad.lasts = cmp.Or(bad.lasts, outage)
	length := before + bad.lasts + after
	var data, names []func(context.Context) result
	for i, c := range w.clients {
		name, rival := run+"-"+c.name, run+"-"+w.clients[1-i].name
		data = append(data, c.start(t, fmt.Sprintf(loadCommand, name, "--rival "+rival+" --do files,records,opens,lock --bytes 8Mi", length, "/mnt/share/a0 /mnt/share/a1")))
		names = append(names, c.start(t, fmt.Sprintf("python3 /host/namespace.py /mnt/share %s %f", name, length.Seconds())))
	}
	time.Sleep(before)
	bad.begin(t, w)
	time.Sleep(bad.lasts)
	bad.end(t, w)
	for i, c := range w.clients {
		bad.judgeData(t, c, data[i](t.Context()))
		bad.judgeNames(t, c, names[i](t.Context()))
	}
}

// loadCommand runs howdah load with a name, flags and directories for a time; its result is all that it prints.
const loadCommand = `/host/howdah load --name %[1]s %[2]s --for %[3]v --stop-wait 1m --json %[4]s 2> /tmp/load.err || { tail -3 /tmp/load.err; false; }`

// loadResult is what howdah load printed.
func loadResult(t *testing.T, c *kernelClient, r result) (found load.Result) {
	t.Helper()
	begin := strings.IndexByte(r.output, '{')
	if begin < 0 || json.NewDecoder(strings.NewReader(r.output[begin:])).Decode(&found) != nil {
		t.Fatalf("%s: howdah load ended with %d: %s", c.name, r.code, r.output)
	}
	for _, d := range found.Directories {
		t.Logf("%s: %s: %d operations, the longest %s", c.name, d.Path, d.Operations, d.Longest)
	}
	return found
}

func (b badNetwork) judgeData(t *testing.T, c *kernelClient, r result) {
	t.Helper()
	found := loadResult(t, c, r)
	own := time.Duration(found.OwnPause * float64(time.Second))
	for i := range found.Directories {
		d := &found.Directories[i]
		if d.Path == b.spares && d.Longest.Seconds > (b.lasts/2+own).Seconds() {
			t.Errorf("%s: %s has nothing to do with it and waited %s", c.name, d.Path, d.Longest)
		}
		// What a client learns that has lost its lock: no error of anything else, and no wrong data.
		if b.lapses && d.StolenLocks > 0 {
			t.Logf("%s: %s: the lock was given away after the lease: %s", c.name, d.Path, strings.Join(d.Findings, "; "))
			if d.ErrorCount() > 0 && d.ErrorCount() == d.Errors["EIO"] && strings.HasPrefix(d.FirstError, "lock ") {
				d.Errors, d.FirstError = nil, ""
			}
			d.StolenLocks = 0
		}
	}
	if err := found.Verdict(b.limit() + own); err != nil {
		t.Errorf("%s: %v\n%s", c.name, err, found.Text())
	}
}

// namespaceFound is what namespace.py prints.
type namespaceFound struct {
	Operations, Doubtful int
	Longest, At          float64
	Operation            string
	Errors               []string
}

func (b badNetwork) judgeNames(t *testing.T, c *kernelClient, r result) {
	t.Helper()
	var found namespaceFound
	if err := json.Unmarshal([]byte(r.output[strings.LastIndexByte(r.output, '\n')+1:]), &found); err != nil {
		t.Fatalf("%s: namespace.py ended with %d: %s", c.name, r.code, r.output)
	}
	t.Logf("%s: namespace: %d operations, %d done before, the longest: %s of %.1f s, %.0f s after the start",
		c.name, found.Operations, found.Doubtful, found.Operation, found.Longest, found.At)
	if len(found.Errors) > 0 {
		t.Errorf("%s: namespace: %d errors: %s", c.name, len(found.Errors), found.Errors[0])
	}
	if limit := b.limit().Seconds(); found.Longest > limit {
		t.Errorf("%s: namespace: %s took %.1f s, want %.0f s at most", c.name, found.Operation, found.Longest, limit)
	}
}
