package kernels

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/test/model"
	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

const (
	modelServers = 5
	// modelMemory is that of each client in MiB. With 512 its kernel found no room for what came in, and hung.
	modelMemory = 2048
	modelShare  = "model"
	rawPort     = 5001
)

//go:embed testdata/receive.py
var receiver []byte

//go:embed testdata/small.py
var smallFiles []byte

//go:embed testdata/flat.py
var flatReader []byte

// bench is what TestModel measures with.
type bench struct {
	*world
	c   *kernelClient
	run *model.Run
	// round counts from 1.
	round int
	// ownerProcesses are the supervisor and the ganesha of each data server.
	ownerProcesses [][]int
	// beside are the servers that Howdah is measured beside.
	beside []*besideServer
	cpus   *cpuGroups
	// files is how many small files are made on each server.
	files int
	// hot is how many clients and data servers the hot directory has at most; 0 without it.
	hot int
	// rawRound is the round in which plain TCP was measured last.
	rawRound int
}

// sections are the parts of a run in their order; HOWDAH_MODEL_SECTIONS chooses among them.
var sections = []struct {
	name    string
	measure func(*bench, *testing.T)
}{
	{"links", (*bench).measureLinks},
	{"connections", (*bench).measureConnections},
	{"readahead", (*bench).measureReadAhead},
	{"random", (*bench).measureRandom},
	{"clients", (*bench).measureClients},
	{"hot", (*bench).measureHot},
	{"small", (*bench).measureSmall},
	{"names", (*bench).measureNames},
}

// TestModel is make bench-model: what N servers give through one mount. It judges nothing itself; the report is in a folder of
// HOWDAH_MODEL_INTO, beside the outcome as an exit code.
func TestModel(t *testing.T) {
	into := os.Getenv("HOWDAH_MODEL_INTO")
	if into == "" {
		t.Skip("a benchmark: make bench-model runs it")
	}
	link, rounds := setting(t, "HOWDAH_MODEL_LINK", 400), setting(t, "HOWDAH_MODEL_ROUNDS", 3)
	measured := chosen(t, "HOWDAH_MODEL_SECTIONS", sectionNames())
	compared := chosenSettings(t)
	clients := 1
	if slices.Contains(measured, "clients") {
		clients = 2
	}
	hot := 0
	if slices.Contains(measured, "hot") {
		hot = hotServers(t)
		clients = max(clients, hot)
	}
	w := newWorld(t, size{owners: modelServers, clientMemory: modelMemory}, func(kernels []string) []string {
		return slices.Repeat(kernels[len(kernels)-1:], clients)
	})
	processor, cpus := processors(t)
	mine := usableCPUs(t)
	b := &bench{world: w, c: w.clients[0], files: setting(t, "HOWDAH_MODEL_FILES", 400), hot: hot, run: &model.Run{
		When: time.Now(), Kernel: w.clients[0].kernel, Processor: processor, CPUs: mine, MachineCPUs: cpus, Servers: modelServers,
		Link: float64(link) * 1e6,
	}}
	b.prepare(t)
	b.startBeside(t)
	for b.round = 1; b.round <= rounds; b.round++ {
		for _, section := range sections {
			if slices.Contains(measured, section.name) {
				section.measure(b, t)
			}
		}
		b.run.CPUs = min(b.run.CPUs, usableCPUs(t))
	}
	b.compareSettings(t, compared, rounds)
	text, outcome := b.run.Report()
	data, err := json.MarshalIndent(b.run, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"report.txt": []byte(text), "run.json": append(data, '\n'), "outcome": []byte(strconv.Itoa(int(outcome))),
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

// chosen are the names that a variable of the environment has, of all that there are; unset, or "all", is all of them, and "none" none.
func chosen(t *testing.T, variable string, all []string) []string {
	t.Helper()
	text := strings.TrimSpace(os.Getenv(variable))
	switch text {
	case "", "all":
		return all
	case "none":
		return nil
	}
	names := strings.Fields(strings.ReplaceAll(text, ",", " "))
	for _, name := range names {
		if !slices.Contains(all, name) {
			t.Fatalf("%s=%q: there is no %q, but %s", variable, text, name, strings.Join(all, ", "))
		}
	}
	return names
}

func sectionNames() (names []string) {
	for _, section := range sections {
		names = append(names, section.name)
	}
	return names
}

// processors are this machine's: what they are, and how many. This process may be kept from using them all.
func processors(t *testing.T) (name string, cpus int) {
	t.Helper()
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		switch field, value, _ := strings.Cut(line, ":"); strings.TrimSpace(field) {
		case "processor":
			cpus++
		case "model name":
			name = strings.TrimSpace(value)
		}
	}
	return name, cpus
}

// usableCPUs is how many of them this process may use now: others may change that while it runs.
func usableCPUs(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	return set.Count()
}

// prepare makes the share with a directory and files on each server, and the senders of plain TCP.
func (b *bench) prepare(t *testing.T) {
	t.Helper()
	for _, c := range b.clients {
		for name, script := range map[string][]byte{"receive.py": receiver, "small.py": smallFiles, "flat.py": flatReader} {
			if err := os.WriteFile(filepath.Join(c.folder, name), script, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.share(modelShare, 1, nil)
	b.c.mount(t, "/"+modelShare, recommended+",nconnect=16")
	b.fill(t, b.c, modelShare)
	b.remount(t, model.UsualConnections)
	for i := range b.owners {
		b.layFiles(t, modelDirectory(i))
		b.sender(t, i)
	}
	b.groupOwners(t)
	if b.hot > 0 {
		b.prepareHot(t)
	}
}

// layFiles makes what is read and written in a directory of a server.
func (b *bench) layFiles(t *testing.T, directory string) {
	t.Helper()
	b.c.must(t, fmt.Sprintf("for f in file:%d written:%d random:%d; do dd if=/dev/urandom of=%s/${f%%:*} bs=4M count=${f#*:} conv=fsync 2> /dev/null; done",
		modelPieces, modelPieces, randomPieces, directory))
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
		"ip", "netns", "exec", ownerNetwork(i), self, net.JoinHostPort(ownerAddress(i), strconv.Itoa(rawPort)))
}

// remount ends all mounts of the share and makes the namespace mount with another number of connections.
func (b *bench) remount(t *testing.T, connections int) {
	t.Helper()
	b.c.must(t, "umount -i -R /mnt/share && "+mountShare(connections))
}

func mountShare(connections int) string {
	return fmt.Sprintf("mount -t nfs4 -o vers=4.1,%s,nconnect=%d %s:/%s /mnt/share && ls /mnt/share/a* > /dev/null",
		recommended, connections, source(namespaceServers), modelShare)
}

const unshaped = "pfifo limit 10000"

// links shapes what servers send, or what they receive. The client delays what it sends: this machine's kernel may have no netem.
func (b *bench) links(t *testing.T, sending bool, delay time.Duration) {
	t.Helper()
	rate := fmt.Sprintf("tbf rate %.0fbit burst 256kb latency 50ms", b.run.Link)
	inside, outside := rate, unshaped
	if !sending {
		inside, outside = outside, rate
	}
	for i := range b.owners {
		shapeNetwork(t, ownerNetwork(i), inside, outside)
	}
	for _, s := range b.beside {
		s.shape(t, inside, outside)
	}
	b.delay(t, delay)
}

// shapeNetwork shapes what a network namespace sends and receives.
func shapeNetwork(t *testing.T, network, inside, outside string) {
	t.Helper()
	host(t, "ip netns exec %s tc qdisc replace dev eth0 root %s", network, inside)
	host(t, "tc qdisc replace dev %s root %s", network, outside)
}

func (b *bench) delay(t *testing.T, delay time.Duration) {
	t.Helper()
	late := unshaped
	if delay > 0 {
		late = fmt.Sprintf("netem limit 20000 delay %dus", delay.Microseconds())
	}
	b.c.must(t, "tc qdisc replace dev vec0 root "+late)
}

// measure runs a script on the client that prints how much it did and in how many seconds, and keeps the rate.
func (b *bench) measure(t *testing.T, way model.Way, script string) {
	t.Helper()
	b.measured(t, way, func() (much, seconds float64) {
		output := b.c.must(t, script)
		if _, err := fmt.Sscan(lastLine(output), &much, &seconds); err != nil {
			t.Fatalf("%s: no figures in %q: %v", way, output, err)
		}
		return much, seconds
	})
}

func lastLine(output string) string { return output[strings.LastIndexByte(output, '\n')+1:] }

// measured keeps what something did: how much, and in how many seconds; and what became of CPUs meanwhile.
func (b *bench) measured(t *testing.T, way model.Way, do func() (much, seconds float64)) {
	t.Helper()
	serving := b.serving(way)
	servedBefore, before := cpuSeconds(t, serving), now(t)
	much, seconds := do()
	use, served := now(t).Since(before), cpuSeconds(t, serving)-servedBefore
	if much <= 0 || seconds <= 0 {
		t.Fatalf("%s: %v in %v s", way, much, seconds)
	}
	b.run.Add(way, much/seconds)
	if way.Kind.IsBytes() && way.Kind != model.RawTCP && served > 0 {
		b.run.AddCPU(way, served/(much/1e9))
	}
	if way.IsJudged() {
		b.run.Windows = append(b.run.Windows, verdict.Window{Name: fmt.Sprintf("round %d, %s", b.round, way), Use: use})
	}
	t.Logf("round %d, %s: %.3g in %.2f s, %.0f %% of the CPU idle", b.round, way, much, seconds, 100*use.Idle)
}

func now(t *testing.T) spare.Times {
	t.Helper()
	times, err := spare.Now()
	if err != nil {
		t.Fatal(err)
	}
	return times
}
