package kernels

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/model"
	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

const (
	modelServers = 5
	// modelMemory is that of the client in MiB. With 512 its kernel found no room for what came in, and hung.
	modelMemory = 2048
	modelShare  = "model"
	// modelFile is the size of each file that is read and written, in pieces of 4 MiB.
	modelFile = 48 << 22
	rawPort   = 5001
	// rawSeconds is how long plain TCP is measured, and randomSeconds each kind of random reads.
	rawSeconds, randomSeconds = 3, 5
	// modelNames is how many directories each measurement of names makes or enters.
	modelNames = 200
)

//go:embed testdata/receive.py
var receiver []byte

// bench is what TestModel measures with.
type bench struct {
	*world
	c   *kernelClient
	run *model.Run
	// round counts from 1.
	round int
}

// TestModel is make bench-model: what N servers give through one mount. It judges nothing itself; the report is in a folder of
// HOWDAH_MODEL_INTO, beside the outcome as an exit code.
func TestModel(t *testing.T) {
	into := os.Getenv("HOWDAH_MODEL_INTO")
	if into == "" {
		t.Skip("a benchmark: make bench-model runs it")
	}
	link, rounds := setting(t, "HOWDAH_MODEL_LINK", 400), setting(t, "HOWDAH_MODEL_ROUNDS", 3)
	w := newWorld(t, size{owners: modelServers, clientMemory: modelMemory}, func(kernels []string) []string { return kernels[len(kernels)-1:] })
	b := &bench{world: w, c: w.clients[0], run: &model.Run{
		When: time.Now(), Kernel: w.clients[0].kernel, CPUs: runtime.NumCPU(), Servers: modelServers, Link: float64(link) * 1e6,
	}}
	b.prepare(t)
	for b.round = 1; b.round <= rounds; b.round++ {
		b.measureRaw(t)
		b.measureReads(t)
		b.measureConnections(t)
		b.measureReadAhead(t)
		b.measureRandom(t)
		b.measureWrites(t)
		b.measureNames(t)
	}
	text, outcome := b.run.Report()
	data, err := json.MarshalIndent(b.run, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"report.txt": []byte(text), "run.json": data, "outcome": []byte(strconv.Itoa(int(outcome))),
	} {
		if err := os.WriteFile(filepath.Join(into, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// setting is a whole number of the environment.
func setting(t *testing.T, variable string, unset int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return unset
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("%s=%q: want a whole number of at least 1", variable, text)
	}
	return number
}

// prepare makes the share with a directory and a file on each server, and the senders of plain TCP.
func (b *bench) prepare(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.c.folder, "receive.py"), receiver, 0o644); err != nil {
		t.Fatal(err)
	}
	b.share(modelShare, 1, nil)
	b.c.mount(t, "/"+modelShare, recommended+",nconnect=16")
	b.fill(t, b.c, modelShare)
	b.remount(t, model.UsualConnections)
	for i := range b.owners {
		b.c.must(t, fmt.Sprintf("dd if=/dev/urandom of=%s/file bs=4M count=%d conv=fsync 2> /dev/null", modelDirectory(i), modelFile>>22))
		b.sender(t, i)
	}
}

// modelDirectory is a directory of a server as the client has it (fill).
func modelDirectory(owner int) string { return fmt.Sprintf("/mnt/share/a%d", owner) }

// sender has something in a server's network that sends as fast as its link takes it.
func (b *bench) sender(t *testing.T, i int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.program("sender"+strconv.Itoa(i), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, []string{envStage + "=" + stageSender},
		"ip", "netns", "exec", ownerNetwork(i), self, fmt.Sprintf("%s:%d", ownerAddress(i), rawPort))
}

// remount ends all mounts of the client and makes the namespace mount with another number of connections.
func (b *bench) remount(t *testing.T, connections int) {
	t.Helper()
	b.c.must(t, fmt.Sprintf("umount -i -R /mnt/share && mount -t nfs4 -o vers=4.1,%s,nconnect=%d %s:/%s /mnt/share && ls /mnt/share/a* > /dev/null",
		recommended, connections, namespaceServers, modelShare))
}

// links shapes what servers send, or what they receive. The client delays what it sends: this machine's kernel may have no netem.
func (b *bench) links(t *testing.T, sending bool, delay time.Duration) {
	t.Helper()
	rate := fmt.Sprintf("tbf rate %.0fbit burst 256kb latency 50ms", b.run.Link)
	inside, outside := rate, "pfifo limit 10000"
	if !sending {
		inside, outside = outside, rate
	}
	for i := range b.owners {
		host(t, "ip netns exec %s tc qdisc replace dev eth0 root %s", ownerNetwork(i), inside)
		host(t, "tc qdisc replace dev %s root %s", ownerNetwork(i), outside)
	}
	late := "pfifo limit 10000"
	if delay > 0 {
		late = fmt.Sprintf("netem limit 20000 delay %dus", delay.Microseconds())
	}
	b.c.must(t, "tc qdisc replace dev vec0 root "+late)
}

// measure runs a script on the client that prints how much it did and in how many seconds, and keeps the rate.
func (b *bench) measure(t *testing.T, way model.Way, script string) {
	t.Helper()
	before, err := spare.Now()
	if err != nil {
		t.Fatal(err)
	}
	output := b.c.must(t, script)
	after, err := spare.Now()
	if err != nil {
		t.Fatal(err)
	}
	var much, seconds float64
	if _, err := fmt.Sscan(output[strings.LastIndexByte(output, '\n')+1:], &much, &seconds); err != nil || much <= 0 || seconds <= 0 {
		t.Fatalf("%s: no figures in %q: %v", way, output, err)
	}
	use := after.Since(before)
	b.run.Add(way, much/seconds)
	if way.IsJudged() {
		b.run.Windows = append(b.run.Windows, verdict.Window{Name: fmt.Sprintf("round %d, %s", b.round, way), Use: use})
	}
	t.Logf("round %d, %s: %.3g in %.2f s, %.0f %% of the CPU idle", b.round, way, much, seconds, 100*use.Idle)
}

// measureRaw finds what the links carry: each alone, and all together.
func (b *bench) measureRaw(t *testing.T) {
	b.links(t, true, 0)
	for _, servers := range []int{1, modelServers} {
		var addresses []string
		for i := range servers {
			addresses = append(addresses, ownerAddress(i))
		}
		b.measure(t, model.Way{Kind: model.RawTCP, Servers: servers},
			fmt.Sprintf(`echo $(python3 /host/receive.py %d %d %s) 1`, rawSeconds, rawPort, strings.Join(addresses, " ")))
	}
}

// onEach is a script that drops the client's caches, does something in the directories of some servers at once, and prints bytes and seconds.
func onEach(directories []string, each string) string {
	return fmt.Sprintf(`set -o pipefail; echo 3 > /proc/sys/vm/drop_caches; rm -f /tmp/failed; begin=$(date +%%s%%N)
for d in %s; do (%s) > /dev/null 2>&1 || touch /tmp/failed & done; wait
end=$(date +%%s%%N); test ! -e /tmp/failed && echo %d $(( (end - begin) / 1000 ))e-6`,
		strings.Join(directories, " "), each, modelFile*len(directories))
}

const (
	readFile  = "dd if=$d/file of=/dev/null bs=4M"
	writeFile = "dd if=/dev/zero of=$d/written bs=4M count=48 conv=fsync,notrunc"
)

func modelDirectories(servers int) (directories []string) {
	for i := range servers {
		directories = append(directories, modelDirectory(i))
	}
	return directories
}

func usual(kind model.Kind, servers int) model.Way {
	return model.Way{Kind: kind, Servers: servers, Connections: model.UsualConnections, ReadAhead: model.UsualReadAhead}
}

func (b *bench) measureReads(t *testing.T) {
	b.remount(t, model.UsualConnections)
	b.readAhead(t, model.UsualReadAhead)
	for servers := 1; servers <= modelServers; servers++ {
		b.measure(t, usual(model.Reads, servers), onEach(modelDirectories(servers), readFile))
	}
	// The same directories, each mounted from its server. A mount of its own has connections of its own only if the others are gone.
	b.c.must(t, "umount -i -R /mnt/share")
	var direct []string
	for i := range b.owners {
		direct = append(direct, fmt.Sprintf("/mnt/direct%d/a%d", i, i))
		b.c.must(t, fmt.Sprintf("mkdir -p /mnt/direct%[1]d && mount -t nfs4 -o vers=4.1,%[2]s,nconnect=16 %[3]s:%[4]s /mnt/direct%[1]d && ls /mnt/direct%[1]d/a%[1]d",
			i, recommended, ownerAddress(i), naming.ExportPseudo(modelShare, 0)))
	}
	b.readAhead(t, model.UsualReadAhead)
	b.measure(t, usual(model.DirectReads, modelServers), onEach(direct, readFile))
	b.c.must(t, fmt.Sprintf("umount -i /mnt/direct*; mount -t nfs4 -o vers=4.1,%s,nconnect=16 %s:/%s /mnt/share && ls /mnt/share/a* > /dev/null",
		recommended, namespaceServers, modelShare))
}

// readAhead sets what the client reads ahead on all its mounts, as Howdah's udev rule does on nodes.
func (b *bench) readAhead(t *testing.T, kilobytes int) {
	t.Helper()
	b.c.must(t, fmt.Sprintf(`for file in /sys/class/bdi/0:*/read_ahead_kb; do echo %d > $file; done`, kilobytes))
}

func (b *bench) measureConnections(t *testing.T) {
	for _, connections := range []int{1, 2, 4, 8, 16} {
		b.remount(t, connections)
		b.readAhead(t, model.UsualReadAhead)
		for _, delay := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond} {
			b.links(t, true, delay)
			b.measure(t, model.Way{Kind: model.Reads, Servers: 2, Connections: connections, Delay: delay, ReadAhead: model.UsualReadAhead},
				onEach(modelDirectories(2), readFile))
		}
	}
	b.links(t, true, 0)
}

func (b *bench) measureReadAhead(t *testing.T) {
	b.links(t, true, time.Millisecond)
	for _, kilobytes := range []int{128, 1024, 4096, 16384} {
		b.readAhead(t, kilobytes)
		b.measure(t, model.Way{Kind: model.Reads, Servers: 2, Connections: model.UsualConnections, Delay: time.Millisecond, ReadAhead: kilobytes},
			onEach(modelDirectories(2), readFile))
	}
	b.readAhead(t, model.UsualReadAhead)
	b.links(t, true, 0)
}

// measureRandom has fio read pieces of 8 KiB, 16 at a time from each server.
func (b *bench) measureRandom(t *testing.T) {
	for kind, options := range map[model.Kind]string{
		model.RandomDirect: "--ioengine=libaio --direct=1 --iodepth=16",
		model.RandomCached: "--ioengine=psync --numjobs=16 --thread",
	} {
		for _, servers := range []int{1, modelServers} {
			b.measure(t, usual(kind, servers), fmt.Sprintf(`echo 3 > /proc/sys/vm/drop_caches
fio --name=random --rw=randread --bs=8k --randrepeat=0 --time_based --runtime=%d --filename=%s --file_service_type=random %s \
  --group_reporting --output-format=json --output=/tmp/fio.json > /dev/null &&
python3 -c 'import json; r = json.load(open("/tmp/fio.json"))["jobs"][0]["read"]; print(r["io_bytes"], r["runtime"] / 1000)'`,
				randomSeconds, strings.Join(modelDirectories(servers), "/file:")+"/file", options))
		}
	}
}

func (b *bench) measureWrites(t *testing.T) {
	b.links(t, false, 0)
	for servers := 1; servers <= modelServers; servers++ {
		b.measure(t, usual(model.Writes, servers), onEach(modelDirectories(servers), writeFile))
	}
	b.links(t, true, 0)
}

// measureNames makes distributed directories, one after the other and four at a time, and enters them after a new mount.
func (b *bench) measureNames(t *testing.T) {
	timed := func(script string) string {
		return fmt.Sprintf("cd /mnt/share; begin=$(date +%%s%%N)\n%s\nend=$(date +%%s%%N); echo %d $(( (end - begin) / 1000 ))e-6", script, modelNames)
	}
	b.measure(t, model.Way{Kind: model.Mkdir}, timed(fmt.Sprintf("for i in $(seq %d); do mkdir one%d-$i || exit 1; done", modelNames, b.round)))
	b.measure(t, model.Way{Kind: model.MkdirMany}, timed(fmt.Sprintf(
		"for p in 1 2 3 4; do (for i in $(seq %d); do mkdir many%d-$p-$i || touch /tmp/failed; done) & done; wait; test ! -e /tmp/failed || exit 1",
		modelNames/4, b.round)))
	b.remount(t, model.UsualConnections)
	b.measure(t, model.Way{Kind: model.Entries}, timed(fmt.Sprintf("for i in $(seq %d); do ls one%d-$i > /dev/null || exit 1; done", modelNames, b.round)))
}
