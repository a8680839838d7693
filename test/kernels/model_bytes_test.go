package kernels

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/model"
)

const (
	// modelPieces of 4 MiB are in each file that is read and written, shortPieces in what many ways read, and randomPieces
	// in the file that is written at random.
	modelPieces, shortPieces, randomPieces = 48, 24, 16
	// rawSeconds is how long plain TCP is measured, and randomSeconds each kind of random reads and writes.
	rawSeconds, randomSeconds = 3, 3
	// inFlight is how many random reads or writes are under way on each server: by one thread, or by threads that wait for each.
	inFlight, inThreads = 16, 4
)

// each is what is done in each directory: a script with the directory as $d, and the bytes that it reads or writes.
type each struct {
	script string
	bytes  int
}

var (
	readFile  = each{fmt.Sprintf("dd if=$d/file of=/dev/null bs=4M count=%d", modelPieces), modelPieces << 22}
	readShort = each{fmt.Sprintf("dd if=$d/file of=/dev/null bs=4M count=%d", shortPieces), shortPieces << 22}
	writeFile = each{fmt.Sprintf("dd if=/dev/zero of=$d/written bs=4M count=%d conv=fsync,notrunc", modelPieces), modelPieces << 22}
)

// onEach is a script that drops the client's caches, does something in some directories at once, and prints when it began and ended, in
// nanoseconds.
func onEach(directories []string, do each) string {
	return fmt.Sprintf(`set -o pipefail; echo 3 > /proc/sys/vm/drop_caches; rm -f /tmp/failed; begin=$(date +%%s%%N)
for d in %s; do (%s) > /dev/null 2>&1 || touch /tmp/failed & done; wait
end=$(date +%%s%%N); test ! -e /tmp/failed && echo $begin $end`,
		strings.Join(directories, " "), do.script)
}

// stream measures something in some directories at once, from one client.
func (b *bench) stream(t *testing.T, way model.Way, directories []string, do each) {
	t.Helper()
	b.streams(t, way, b.clients[:1], directories, do)
}

// streams measures it from several clients at once.
func (b *bench) streams(t *testing.T, way model.Way, clients []*kernelClient, directories []string, do each) {
	t.Helper()
	b.measured(t, way, func() (much, seconds float64) {
		lines := b.fromAll(t, clients, func(int) string { return onEach(directories, do) })()
		return float64(do.bytes * len(directories) * len(clients)), span(t, lines)
	})
}

// span is how many seconds it is from the first beginning to the last end.
func span(t *testing.T, lines []string) float64 {
	t.Helper()
	first, last := int64(math.MaxInt64), int64(0)
	for _, line := range lines {
		var begin, end int64
		if _, err := fmt.Sscan(line, &begin, &end); err != nil {
			t.Fatalf("no times in %q: %v", line, err)
		}
		first, last = min(first, begin), max(last, end)
	}
	return float64(last-first) / 1e9
}

// fromAll starts a script on each of some clients. What it gives waits for all, and gives the last line of each.
func (b *bench) fromAll(t *testing.T, clients []*kernelClient, script func(client int) string) func() []string {
	t.Helper()
	var waits []func(context.Context) result
	for i, c := range clients {
		waits = append(waits, c.start(t, script(i)))
	}
	return func() (lines []string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), scriptLimit)
		defer cancel()
		for i, wait := range waits {
			r := wait(ctx)
			if r.code != 0 {
				t.Fatalf("%s: %s\nended with %d: %q", clients[i].name, script(i), r.code, r.output)
			}
			lines = append(lines, lastLine(r.output))
		}
		return lines
	}
}

func modelDirectories(servers int) (directories []string) {
	for i := range servers {
		directories = append(directories, modelDirectory(i))
	}
	return directories
}

func usual(kind model.Kind, servers int) model.Way {
	return model.Way{Kind: kind, Servers: servers, Connections: model.UsualConnections, ReadAhead: model.UsualReadAhead}
}

// measureLinks is what the goals are about: plain TCP, reads by the namespace mount and by direct mounts, and writes.
func (b *bench) measureLinks(t *testing.T) {
	b.measureRaw(t)
	b.measureReads(t)
	b.measureWrites(t)
}

// measureRaw finds what the links carry: each alone, and all together.
func (b *bench) measureRaw(t *testing.T) {
	b.rawRound = b.round
	b.rawTCP(t, 1)
	b.rawTCP(t, modelServers)
}

// rawTCP has one client receive from some servers at once.
func (b *bench) rawTCP(t *testing.T, servers int) {
	t.Helper()
	b.links(t, true, 0)
	var addresses []string
	for i := range servers {
		addresses = append(addresses, ownerAddress(i))
	}
	b.measure(t, model.Way{Kind: model.RawTCP, Servers: servers},
		fmt.Sprintf(`echo $(python3 /host/receive.py %d %d %s) 1`, rawSeconds, rawPort, strings.Join(addresses, " ")))
}

func (b *bench) measureReads(t *testing.T) {
	b.remount(t, model.UsualConnections)
	b.readAhead(t, model.UsualReadAhead)
	for servers := 1; servers <= modelServers; servers++ {
		b.stream(t, usual(model.Reads, servers), modelDirectories(servers), readFile)
	}
	for _, s := range b.beside {
		b.stream(t, s.way(model.Reads), []string{s.directory}, readFile)
	}
	// The same directories, each mounted from its server. A mount of its own has connections of its own only if the others are gone.
	b.c.must(t, "umount -i -R /mnt/share")
	var direct []string
	for i := range b.owners {
		direct = append(direct, fmt.Sprintf("/mnt/direct%d/a%d", i, i))
		b.c.must(t, fmt.Sprintf("mkdir -p /mnt/direct%[1]d && mount -t nfs4 -o vers=4.1,%[2]s,nconnect=16 %[3]s:%[4]s /mnt/direct%[1]d && ls /mnt/direct%[1]d/a%[1]d",
			i, recommended, source(ownerAddress(i)), naming.ExportPseudo(modelShare, 0)))
	}
	b.readAhead(t, model.UsualReadAhead)
	b.stream(t, usual(model.DirectReads, modelServers), direct, readFile)
	b.c.must(t, "umount -i /mnt/direct*; "+mountShare(model.UsualConnections))
	b.readAhead(t, model.UsualReadAhead)
}

// readAhead sets what the client reads ahead on all its mounts, as Howdah's udev rule does on nodes.
func (b *bench) readAhead(t *testing.T, kilobytes int) {
	t.Helper()
	for _, c := range b.clients {
		c.must(t, fmt.Sprintf(`for file in /sys/class/bdi/0:*/read_ahead_kb; do [ ! -e $file ] || echo %d > $file; done`, kilobytes))
	}
}

func (b *bench) measureConnections(t *testing.T) {
	for _, connections := range []int{1, 2, 4, 8, 16} {
		b.remount(t, connections)
		b.readAhead(t, model.UsualReadAhead)
		for _, delay := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond} {
			b.links(t, true, delay)
			way := model.Way{Kind: model.ShortReads, Servers: 2, Connections: connections, Delay: delay, ReadAhead: model.UsualReadAhead}
			b.stream(t, way, modelDirectories(2), readShort)
		}
	}
	b.links(t, true, 0)
}

func (b *bench) measureReadAhead(t *testing.T) {
	b.links(t, true, time.Millisecond)
	for _, kilobytes := range []int{128, 1024, 4096, 16384} {
		b.readAhead(t, kilobytes)
		way := model.Way{Kind: model.ShortReads, Servers: 2, Connections: model.UsualConnections, Delay: time.Millisecond, ReadAhead: kilobytes}
		b.stream(t, way, modelDirectories(2), readShort)
	}
	b.readAhead(t, model.UsualReadAhead)
	b.links(t, true, 0)
}

// randomKinds are what fio does, in the order in which it is measured.
var randomKinds = []struct {
	kind          model.Kind
	direction     string
	file, options string
}{
	{model.RandomDirect, "read", "file", "--ioengine=libaio --direct=1"},
	{model.RandomCached, "read", "file", "--ioengine=psync"},
	{model.RandomDirectWrites, "write", "random", "--ioengine=libaio --direct=1"},
	{model.RandomCachedWrites, "write", "random", "--ioengine=psync --end_fsync=1"},
}

// measureRandom has fio read and write pieces of 8 KiB.
func (b *bench) measureRandom(t *testing.T) {
	for _, r := range randomKinds {
		b.links(t, r.direction == "read", 0)
		measure := func(way model.Way, directories []string) {
			depth := fmt.Sprintf("--iodepth=%d", inFlight*len(directories))
			if strings.Contains(r.options, "psync") {
				depth = fmt.Sprintf("--numjobs=%d --thread", inThreads*len(directories))
			}
			b.measure(t, way, fmt.Sprintf(`echo 3 > /proc/sys/vm/drop_caches
fio --name=random --rw=rand%[1]s --bs=8k --randrepeat=0 --time_based --runtime=%[2]d --filename=%[3]s --file_service_type=random %[4]s %[5]s \
  --group_reporting --output-format=json --output=/tmp/fio.json > /dev/null &&
python3 -c 'import json; r = json.load(open("/tmp/fio.json"))["jobs"][0]["%[1]s"]; print(r["io_bytes"], r["runtime"] / 1000)'`,
				r.direction, randomSeconds, strings.Join(directories, "/"+r.file+":")+"/"+r.file, r.options, depth))
		}
		for _, servers := range []int{1, modelServers} {
			measure(usual(r.kind, servers), modelDirectories(servers))
		}
		for _, s := range b.beside {
			measure(s.way(r.kind), []string{s.directory})
		}
	}
	b.links(t, true, 0)
}

// unwritten is how much of its memory a client holds before its programs wait for writes, in percent. Linux has 20, which is little of a machine
// with 2 GiB: the writers of five servers waited for each other.
const unwritten, usuallyUnwritten = 60, 20

func (b *bench) measureWrites(t *testing.T) {
	hold := func(percent int) { b.c.must(t, fmt.Sprintf("echo %d > /proc/sys/vm/dirty_ratio", percent)) }
	hold(unwritten)
	defer hold(usuallyUnwritten)
	b.links(t, false, 0)
	for servers := 1; servers <= modelServers; servers++ {
		b.stream(t, usual(model.Writes, servers), modelDirectories(servers), writeFile)
	}
	for _, s := range b.beside {
		b.stream(t, s.way(model.Writes), []string{s.directory}, writeFile)
	}
	b.links(t, true, 0)
}

// measureClients has two clients read everything at once, each through a mount of its own.
func (b *bench) measureClients(t *testing.T) {
	b.links(t, true, 0)
	second := b.clients[1]
	second.must(t, "mountpoint -q /mnt/share || "+mountShare(model.UsualConnections))
	b.readAhead(t, model.UsualReadAhead)
	for servers := 1; servers <= modelServers; servers += 2 {
		way := usual(model.ShortReads, servers)
		way.Clients = 2
		b.streams(t, way, b.clients[:2], modelDirectories(servers), readShort)
	}
}
