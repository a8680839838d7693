package kernels

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed testdata/everyday.sh
var everydayFunctions []byte

// place is where the commands are tried.
type place struct {
	name string
	mark string // in the names of what is made there
	work string // $W
	// source is $S; unset: on the machine's own disk.
	source string
}

var (
	onDisk = place{name: "on a local disk", mark: "disk", work: "/mnt/disk/work"}
	places = []place{
		{name: "in a share of depth 1", mark: "flat", work: "/mnt/share/flat"},
		{name: "in a share of depth 2", mark: "deep", work: "/mnt/share/deep"},
		{name: "in a distributed directory", mark: "inside", work: "/mnt/share/flat/inside"},
		{name: "from one to another", mark: "across", work: "/mnt/share/flat", source: "/mnt/share/flat/source-$(uname -r)"},
	}
)

const diskSource = "/mnt/disk/source"

// tool is a command that is to do the same everywhere: the exit code, and what there is of $out afterwards.
type tool struct {
	name string
	// prepare makes what the command works on. It has to succeed.
	prepare, command string
	// times: those of the files and directories are compared, too.
	times bool
	// excused are the places where Linux or NFS does not allow it, with the text of docs/use/everyday.md.
	excused map[string]excuse
}

// excuse is what comes instead.
type excuse struct {
	code   int
	output string
}

func (tool *tool) script(p place, number int) string {
	source := p.source
	if source == "" {
		source = diskSource
	}
	times := ""
	if tool.times {
		times = "times"
	}
	prepare := tool.prepare
	if prepare == "" {
		prepare = ":"
	}
	return fmt.Sprintf(`. /host/everyday.sh
W=%[1]s S=%[2]s out=%[1]s/%[3]s-$(uname -r); export W S out
mkdir -p $W; cd $W
(set -e; %[4]s) > /tmp/prepared 2>&1 || { echo "preparing failed"; cat /tmp/prepared; exit 99; }
(set -e; %[5]s)
code=$?
cd /
echo "=== ended with $code"
listing $out %[6]s
exit $code`, p.work, source, fmt.Sprintf("%s%02d", p.mark, number), prepare, tool.command, times)
}

// tried is the outcome of a tool at a place: its output, how it ended, and what there is then.
type tried struct {
	output, ended string
	code          int
}

func (c *kernelClient) try(t *testing.T, tool *tool, p place, number int) tried {
	t.Helper()
	r := c.run(t, tool.script(p, number))
	output, ended, found := strings.Cut(r.output, "=== ended with ")
	if !found {
		t.Fatalf("%s %s: %s", tool.name, p.name, r.output)
	}
	return tried{output: strings.TrimSpace(output), ended: ended, code: r.code}
}

// testEveryday compares what everyday tools do in shares with what they do on a local disk.
func (w *world) testEveryday(t *testing.T) {
	w.share("flat", 1, nil)
	w.share("deep", 2, nil)
	documented, err := os.ReadFile(filepath.Join("..", "..", "docs", "use", "everyday.md"))
	if err != nil {
		t.Fatal(err)
	}
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		if err := os.WriteFile(filepath.Join(c.folder, "everyday.sh"), everydayFunctions, 0o644); err != nil {
			t.Fatal(err)
		}
		c.mount(t, "/", "nconnect=2")
		c.must(t, `. /host/everyday.sh; git config --global user.email a@b.c; git config --global user.name a
git config --global --add safe.directory '*'; make_source `+diskSource)
		if r := c.run(t, ". /host/everyday.sh; cp -a "+diskSource+" /mnt/share/flat/source-$(uname -r)"); r.code != 0 {
			t.Fatalf("copying the source in: %s", r.output)
		}
		for number, tool := range tools {
			t.Run(tool.name, func(t *testing.T) {
				want := c.try(t, &tool, onDisk, number)
				if want.code != 0 {
					t.Fatalf("on a local disk it ended with %d and printed\n%s", want.code, want.output)
				}
				for _, p := range places {
					got := c.try(t, &tool, p, number)
					excuse, excused := tool.excused[p.name]
					switch {
					case excused && (got.code != excuse.code || !strings.Contains(got.output, excuse.output)):
						t.Errorf("%s: is excused with %d and %q, but ended with %d and printed\n%s",
							p.name, excuse.code, excuse.output, got.code, got.output)
					case excused && !strings.Contains(string(documented), "`"+tool.name+"`"):
						t.Errorf("docs/use/everyday.md does not name %s", tool.name)
					case !excused && got.ended != want.ended:
						t.Errorf("%s: it printed\n%s\nand what it left is (- on a local disk, + here)\n%s",
							p.name, got.output, difference(want.ended, got.ended))
					}
				}
			})
		}
	})
}

// difference shows the lines that only one of two texts has.
func difference(want, got string) string {
	var out strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", want, got}, {"+", got, want}} {
		for line := range strings.Lines(side.text) {
			if !strings.Contains("\n"+side.other+"\n", "\n"+strings.TrimRight(line, "\n")+"\n") {
				fmt.Fprintf(&out, "%s %s\n", side.sign, strings.TrimRight(line, "\n"))
			}
		}
	}
	return out.String()
}
