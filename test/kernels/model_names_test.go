package kernels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/howdah/howdah/test/model"
)

const (
	// modelNames is how many directories each measurement of names makes or enters.
	modelNames = 200
	// smallPercent of a CPU is what each server may use while small files are measured: so little that the servers are the limit, and not
	// the one CPU of the client.
	smallPercent = 5
	// smallProcesses of the client work in each directory at once.
	smallProcesses = 4
)

// measureSmall makes, looks up, reads and removes small files: with little CPU for each server, so that it is they that are measured, and
// on one server with all that there is.
func (b *bench) measureSmall(t *testing.T) {
	b.links(t, true, 0)
	measure := func(by model.Server, percent int, directories []string) {
		b.small(t, model.Way{By: by, Servers: len(directories), Connections: model.UsualConnections, ReadAhead: model.UsualReadAhead, Percent: percent},
			directories)
	}
	measure("", 0, modelDirectories(1))
	for _, s := range b.beside {
		measure(s.by, 0, []string{s.directory})
	}
	if b.cpus == nil {
		return
	}
	b.cpus.limit(t, smallPercent)
	defer b.cpus.limit(t, 0)
	for servers := 1; servers <= modelServers; servers += 2 {
		measure("", smallPercent, modelDirectories(servers))
	}
	for _, s := range b.beside {
		// An emulated machine in a group would be measured, and not its server.
		if s.by != model.KernelServer {
			measure(s.by, smallPercent, []string{s.directory})
		}
	}
}

// small runs the phases of small.py, and keeps the rate of each.
func (b *bench) small(t *testing.T, way model.Way, directories []string) {
	t.Helper()
	before := now(t)
	output := b.c.must(t, fmt.Sprintf("python3 /host/small.py %d %d %s", b.files, smallProcesses, strings.Join(directories, " ")))
	use := now(t).Since(before)
	lines := strings.Split(output, "\n")
	if len(lines) != len(model.SmallFiles) {
		t.Fatalf("%s: %q", way, output)
	}
	for i, kind := range model.SmallFiles {
		way.Kind = kind
		var files, seconds float64
		if _, err := fmt.Sscan(lines[i], &files, &seconds); err != nil || seconds <= 0 {
			t.Fatalf("%s: no figures in %q: %v", way, lines[i], err)
		}
		b.run.Add(way, files/seconds)
		t.Logf("round %d, %s: %.0f in %.2f s; %.0f %% of the CPU idle in all phases", b.round, way, files, seconds, 100*use.Idle)
	}
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
