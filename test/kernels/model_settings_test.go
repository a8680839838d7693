package kernels

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/test/model"
)

const (
	// settingsIndex is the number of the first server of a comparison: each has two of its own.
	settingsIndex = 20
	// manyFiles are in the directory of the comparison of ganesha's cache.
	manyFiles = 3000
	// settingsLease is in seconds, and silence how long a client is cut off.
	settingsLease = 5
	silence       = 10 * time.Second
)

// comparison is a setting of a data server with two values, on two ganeshas of Howdah's build with Howdah's configuration.
type comparison struct {
	// name chooses it; one name may have several.
	name string
	model.Comparison
	// delay is what is added to a round trip, connections is nconnect, capped has the link of the model.
	delay       time.Duration
	connections int
	capped      bool
	// block and option are where ganesha's configuration has it.
	block, option string
	// sysctls of the server's network have the value; with a %s in it, that is what is set.
	sysctls []string
	// prepare is done before the server is started, in the folder that becomes its volume, and before it is mounted.
	prepare func(b *bench, t *testing.T, s *settingServer, value string)
	// fill makes what is measured; nothing is a file to read.
	fill string
	// measure gives the value.
	measure func(b *bench, t *testing.T, s *settingServer) float64
}

// settingServer is one of the two.
type settingServer struct {
	index              int
	folder, directory  string
	address, mountedAt string
}

// randomReads are 8 KiB each, some at a time.
func randomReads(inFlight int) func(*bench, *testing.T, *settingServer) float64 {
	return func(b *bench, t *testing.T, s *settingServer) float64 {
		return b.rate(t, fmt.Sprintf(`echo 3 > /proc/sys/vm/drop_caches
fio --name=random --rw=randread --bs=8k --randrepeat=0 --time_based --runtime=%d --filename=%s/file --ioengine=libaio --direct=1 --iodepth=%d \
  --output-format=json --output=/tmp/fio.json > /dev/null &&
python3 -c 'import json; r = json.load(open("/tmp/fio.json"))["jobs"][0]["read"]; print(r["io_bytes"], r["runtime"] / 1000)'`,
			randomSeconds, s.directory, inFlight)) / 1e6
	}
}

// wholeReads are of a whole file, in pieces of 4 MiB.
func wholeReads(b *bench, t *testing.T, s *settingServer) float64 {
	output := lastLine(b.c.must(t, onEach([]string{s.directory}, readFile)))
	var begin, end int64
	if _, err := fmt.Sscan(output, &begin, &end); err != nil || end <= begin {
		t.Fatalf("no figures in %q: %v", output, err)
	}
	return float64(readFile.bytes) / 1e6 / (float64(end-begin) / 1e9)
}

// coldReads are those of files that the server has not in its page cache.
func coldReads(b *bench, t *testing.T, s *settingServer) float64 {
	file, err := os.Open(filepath.Join(s.folder, "volume", "files", "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	return wholeReads(b, t, s)
}

// bursts are reads of 8 MiB with pauses that are longer than TCP's retransmission timeout.
func bursts(b *bench, t *testing.T, s *settingServer) float64 {
	return b.rate(t, fmt.Sprintf(`python3 - %s/file <<'end'
import mmap, os, sys, time
file, buffer, took = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 8 << 20), 0
for n in range(8):
    time.sleep(1)
    begin = time.monotonic()
    os.preadv(file, [buffer], n * (8 << 20))
    took += time.monotonic() - begin
print(8 * (8 << 20), took)
end`, s.directory)) / 1e6
}

// lookups are of many files, which the client has no longer in its cache.
func lookups(b *bench, t *testing.T, s *settingServer) float64 {
	return b.rate(t, fmt.Sprintf(`echo 3 > /proc/sys/vm/drop_caches
python3 -c 'import os, time; b = time.monotonic(); [os.stat("%s/many/%%d" %% n) for n in range(%[2]d)]; print(%[2]d, time.monotonic() - b)'`,
		s.directory, manyFiles))
}

// recovery is how long a read waits of a file that was open while the client was cut off for longer than its lease.
func recovery(b *bench, t *testing.T, s *settingServer) float64 {
	ended := b.c.start(t, fmt.Sprintf(`exec 3< %s/file; head -c 1 <&3 > /dev/null; sleep %d
b=$(date +%%s%%N); dd bs=1M count=1 iflag=direct,skip_bytes skip=1M <&3 > /dev/null 2>&1 || exit 1; echo $(( $(date +%%s%%N) - b ))`,
		s.directory, int(silence.Seconds())+2))
	time.Sleep(time.Second)
	cut(t, b.c.address, s.address)
	cut(t, s.address, b.c.address)
	time.Sleep(silence)
	heal(t)
	r := ended(t.Context())
	var nanoseconds float64
	if _, err := fmt.Sscan(r.output, &nanoseconds); r.code != 0 || err != nil {
		t.Fatalf("the read after the silence ended with %d: %q: %v", r.code, r.output, err)
	}
	return nanoseconds / 1e9
}

// ownDisk gives a server a disk of its own, whose device reads ahead as much as value says, in KiB.
func ownDisk(b *bench, t *testing.T, s *settingServer, value string) {
	image := s.folder + ".img"
	host(t, "truncate -s 512M %s", image)
	host(t, "mkfs.ext4 -q -F -m 0 %s", image)
	output, err := exec.Command("losetup", "--find", "--show", "--direct-io=on", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	device := strings.TrimSpace(string(output))
	host(t, "mount %s %s", device, filepath.Join(s.folder, "volume"))
	host(t, "losetup --detach %s", device) // When it is unmounted.
	if err := os.WriteFile(filepath.Join("/sys/block", filepath.Base(device), "queue/read_ahead_kb"), []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host(t, "umount -l %s", filepath.Join(s.folder, "volume")) })
}

// sessionSlots has the client ask for as many slots as the server is to give.
func sessionSlots(b *bench, t *testing.T, _ *settingServer, value string) {
	b.c.must(t, "echo "+value+" > /sys/module/nfs/parameters/max_session_slots")
}

var comparisons = []comparison{
	{
		name: "threads", Comparison: model.Comparison{Setting: "RPC_Ioq_ThrdMax", Usual: "200", Other: "1024", What: "random reads of 8 KiB, 64 at a time", Unit: "MB/s"},
		connections: 16, block: "NFS_CORE_PARAM", option: "RPC_Ioq_ThrdMax", measure: randomReads(64),
	},
	{
		name: "threads", Comparison: model.Comparison{Setting: "RPC_Ioq_ThrdMax", Usual: "200", Other: "16", What: "random reads of 8 KiB, 64 at a time", Unit: "MB/s"},
		connections: 16, block: "NFS_CORE_PARAM", option: "RPC_Ioq_ThrdMax", measure: randomReads(64),
	},
	{
		name: "slots", Comparison: model.Comparison{
			Setting: "Slot_Table_Size, and the client's nfs.max_session_slots", Usual: "64", Other: "256",
			What: "random reads of 8 KiB, 256 at a time, 20 ms of delay", Unit: "MB/s",
		},
		connections: 16, delay: 20 * time.Millisecond, block: "NFSv4", option: "Slot_Table_Size", prepare: sessionSlots, measure: randomReads(256),
	},
	{
		name: "tcp", Comparison: model.Comparison{
			Setting: "the largest tcp_wmem and tcp_rmem of the server", Usual: "4194304", Other: "67108864",
			What: "reads of 4 MiB, nconnect=1, 20 ms of delay", Unit: "MB/s",
		},
		connections: 1, delay: 20 * time.Millisecond, sysctls: []string{"net.ipv4.tcp_wmem=4096 16384 %s", "net.ipv4.tcp_rmem=4096 131072 %s"}, measure: wholeReads,
	},
	{
		name: "tcp", Comparison: model.Comparison{
			Setting: "the largest tcp_wmem and tcp_rmem of the server", Usual: "4194304", Other: "67108864",
			What: "reads of 4 MiB, nconnect=16, 2 ms of delay", Unit: "MB/s",
		},
		connections: 16, delay: 2 * time.Millisecond, sysctls: []string{"net.ipv4.tcp_wmem=4096 16384 %s", "net.ipv4.tcp_rmem=4096 131072 %s"}, measure: wholeReads,
	},
	{
		name: "idle", Comparison: model.Comparison{
			Setting: "tcp_slow_start_after_idle of the server", Usual: "1", Other: "0",
			What: "bursts of 8 MiB with pauses of 1 s, 2 ms of delay", Unit: "MB/s",
		},
		connections: 16, delay: 2 * time.Millisecond, capped: true, sysctls: []string{"net.ipv4.tcp_slow_start_after_idle=%s"}, measure: bursts,
	},
	{
		name: "idle", Comparison: model.Comparison{
			Setting: "tcp_slow_start_after_idle of the server", Usual: "1", Other: "0",
			What: "bursts of 8 MiB with pauses of 1 s, nconnect=1, 20 ms of delay", Unit: "MB/s",
		},
		connections: 1, delay: 20 * time.Millisecond, capped: true, sysctls: []string{"net.ipv4.tcp_slow_start_after_idle=%s"}, measure: bursts,
	},
	{
		name: "cache", Comparison: model.Comparison{
			Setting: "Entries_HWMark of MDCACHE", Usual: "100000", Other: "1000",
			What: fmt.Sprintf("%d files looked up one after the other", manyFiles), Unit: "/s",
		},
		connections: 16, block: "MDCACHE", option: "Entries_HWMark", measure: lookups,
		fill: fmt.Sprintf(`mkdir $d/many && python3 -c 'import sys; [open("%%s/many/%%d" %% (sys.argv[1], n), "w").close() for n in range(%d)]' $d`, manyFiles),
	},
	{
		name: "expired", Comparison: model.Comparison{
			Setting: "Expired_Client_Threshold", Usual: "4096", Other: "0",
			What: fmt.Sprintf("the first read after %s without network, lease %d s", silence, settingsLease), Unit: model.Seconds,
		},
		connections: 16, block: "NFSv4", option: "Expired_Client_Threshold", measure: recovery,
	},
	{
		name: "disk", Comparison: model.Comparison{
			Setting: "read_ahead_kb of the server's disk", Usual: "128", Other: "4096",
			What: "reads of 4 MiB that the server has not in memory", Unit: "MB/s",
		},
		connections: 16, prepare: ownDisk, measure: coldReads,
	},
}

// chosenSettings are the names that HOWDAH_MODEL_SETTINGS has; unset is none.
func chosenSettings(t *testing.T) []string {
	t.Helper()
	if os.Getenv("HOWDAH_MODEL_SETTINGS") == "" {
		return nil
	}
	var names []string
	for _, c := range comparisons {
		names = append(names, c.name)
	}
	return chosen(t, "HOWDAH_MODEL_SETTINGS", slices.Compact(names))
}

// rate runs a script that prints how much it did and in how many seconds.
func (b *bench) rate(t *testing.T, script string) float64 {
	t.Helper()
	output := b.c.must(t, script)
	var much, seconds float64
	if _, err := fmt.Sscan(lastLine(output), &much, &seconds); err != nil || seconds <= 0 {
		t.Fatalf("no figures in %q: %v", output, err)
	}
	return much / seconds
}

// compareSettings measures each setting with one value and with the other, in turns that begin with the other one each time.
func (b *bench) compareSettings(t *testing.T, names []string, rounds int) {
	b.delay(t, 0)
	index := settingsIndex
	for _, c := range comparisons {
		if !slices.Contains(names, c.name) {
			continue
		}
		// What a comparison starts ends with it.
		t.Run(c.Setting+", "+c.Other, func(t *testing.T) { b.compare(t, c, index, rounds) })
		index += 2
	}
}

func (b *bench) compare(t *testing.T, c comparison, index, rounds int) {
	ours := *b.world
	ours.t = t
	b = &bench{world: &ours, c: b.c, run: b.run}
	values := []string{c.Usual, c.Other}
	var servers []*settingServer
	for i, value := range values {
		servers = append(servers, b.startSetting(t, c, index+i, value))
	}
	result := c.Comparison
	into := []*[]float64{&result.OfUsual, &result.OfOther}
	b.delay(t, c.delay)
	defer b.delay(t, 0)
	for round := 1; round <= rounds; round++ {
		for turn := range servers {
			which := (turn + round + 1) % 2
			got := c.measure(b, t, servers[which])
			*into[which] = append(*into[which], got)
			t.Logf("round %d, %s = %s, %s: %.4g %s", round, c.Setting, values[which], c.What, got, c.Unit)
		}
	}
	b.run.Settings = append(b.run.Settings, result)
}

// startSetting starts a ganesha with Howdah's configuration and a value of the setting, and mounts its export.
func (b *bench) startSetting(t *testing.T, c comparison, index int, value string) *settingServer {
	t.Helper()
	name := ownerNetwork(index)
	s := &settingServer{index: index, folder: filepath.Join(b.scratch, name), address: ownerAddress(index), mountedAt: "/mnt/" + name}
	s.directory = s.mountedAt + "/files"
	if err := os.MkdirAll(filepath.Join(s.folder, "volume"), 0o755); err != nil {
		t.Fatal(err)
	}
	layServerNetwork(t, name, s.address)
	if c.capped {
		shapeNetwork(t, name, fmt.Sprintf("tbf rate %.0fbit burst 256kb latency 50ms", b.run.Link), unshaped)
	}
	for _, text := range c.sysctls {
		output, err := exec.Command("ip", "netns", "exec", name, "sysctl", "-qw", fmt.Sprintf(text, value)).CombinedOutput()
		if err != nil {
			t.Fatalf("sysctl %s: %v: %s", text, err, output)
		}
	}
	if c.prepare != nil {
		c.prepare(b, t, s, value)
	}
	config := settingsConfig(t, name)
	if c.option != "" {
		config = withOption(config, c.block, c.option, value)
	}
	b.startGanesha(t, name, index, b.ganesha, config)
	fill := c.fill
	if fill == "" {
		fill = fmt.Sprintf("dd if=/dev/urandom of=$d/file bs=4M count=%d conv=fsync 2> /dev/null", modelPieces)
	}
	b.c.must(t, fmt.Sprintf(`mkdir -p %[1]s; for i in $(seq 60); do mount -t nfs4 -o vers=4.1,%[2]s,nconnect=%[3]d %[4]s:/settings %[1]s && break; sleep 1; done
d=%[5]s; mkdir $d && chmod 777 $d && %[6]s`, s.mountedAt, recommended, c.connections, s.address, s.directory, fill))
	b.readAhead(t, model.UsualReadAhead)
	t.Cleanup(func() { b.c.must(t, "umount -i "+s.mountedAt) })
	return s
}

// settingsConfig is Howdah's own configuration, with one export for the clients. Two servers of one owner are one to a client.
func settingsConfig(t *testing.T, owner string) string {
	t.Helper()
	text, err := ganesha.Render(ganesha.Config{
		ServerScope: scope, ServerOwner: owner, LeaseSeconds: settingsLease, GraceSeconds: settingsLease, RecoveryRoot: "/run/recovery",
		Exports: []ganesha.Export{{ID: 1, Path: plainVolume, Pseudo: "/settings", Clients: []ganesha.Client{{
			Addresses: []netip.Prefix{netip.MustParsePrefix(clientsRange)}, Access: ganesha.ReadWrite, Squash: ganesha.SquashNone,
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withOption is a configuration with an option of a block set, in place of what it is there.
func withOption(config, block, option, value string) string {
	var lines []string
	found, within := false, false
	for line := range strings.Lines(config) {
		if words := strings.Fields(line); within && len(words) > 1 && words[0] == option && words[1] == "=" {
			continue
		}
		lines = append(lines, line)
		switch strings.TrimRight(line, "\n") {
		case block + " {":
			found, within = true, true
			lines = append(lines, fmt.Sprintf("  %s = %s;\n", option, value))
		case "}":
			within = false
		}
	}
	if !found {
		lines = append(lines, fmt.Sprintf("%s {\n  %s = %s;\n}\n", block, option, value))
	}
	return strings.Join(lines, "")
}

func TestAnOptionIsSetInItsBlock(t *testing.T) {
	const config = "A {\n  One = 1;\n  Two = 2;\n}\nB {\n  Two = 3;\n}\n"
	for want, got := range map[string]string{
		"A {\n  One = 7;\n  Two = 2;\n}\nB {\n  Two = 3;\n}\n":                       withOption(config, "A", "One", "7"),
		"A {\n  Two = 7;\n  One = 1;\n}\nB {\n  Two = 3;\n}\n":                       withOption(config, "A", "Two", "7"),
		"A {\n  One = 1;\n  Two = 2;\n}\nB {\n  Two = 3;\n}\nC {\n  Three = 7;\n}\n": withOption(config, "C", "Three", "7"),
	} {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
