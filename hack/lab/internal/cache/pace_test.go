package cache

import (
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

func TestALongStepSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		c := &Cache{Dir: t.TempDir(), Say: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
		err := c.ensure(product{name: "kernel", stamp: "1", make: func() error {
			time.Sleep(15 * time.Second)
			c.pace.hear("CC init/main.o")
			c.pace.hear("CC fs/nfs/dir.o")
			time.Sleep(10 * time.Second)
			c.pace.expect(1893)
			c.pace.hear("go: downloading k8s.io/api v0.1.0")
			c.pace.hear(strings.Repeat("x", 90))
			time.Sleep(10 * time.Second)
			return nil
		}})
		want := []string{
			"making kernel",
			"still making kernel after 10s",
			"still making kernel after 20s: 2 lines of output, now CC fs/nfs/dir.o",
			"still making kernel after 30s: 1 of at most 1893 packages, now " + strings.Repeat("x", 80) + "...",
			"made kernel in 35s",
		}
		if err != nil || !reflect.DeepEqual(lines, want) {
			t.Errorf("%v, lines %q", err, lines)
		}
	})
}

func TestCommandsAreHeardLineByLine(t *testing.T) {
	p := &pace{}
	sys.Listen(p.hear)
	defer sys.Listen(nil)
	out, err := sys.Capture(exec.Command("sh", "-c", `printf 'one\ntw'; printf 'o\n50 %%\r100 %%\r\n\n' >&2; printf 'three\n'`))
	if err != nil || out != "one\ntwthree\n" {
		t.Errorf("%q, %v", out, err)
	}
	if p.lines < 4 || !strings.HasPrefix(p.String(), ": ") {
		t.Errorf("heard %d lines; %s", p.lines, p)
	}
}

// A build that is killed leaves its working container and a folder for its layers.
func TestWhatAKilledBuildLeftIsCleared(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip("no buildah here: make packages installs it")
	}
	c := &Cache{Dir: t.TempDir(), Say: t.Logf}
	t.Cleanup(func() { _, _ = c.buildah("rm", "--all") })
	if _, err := c.buildah("from", "scratch"); err != nil {
		t.Skipf("buildah does not run here: %v", err)
	}
	if err := sys.WriteFile(c.Path("tmp", "buildah123", "layer"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sys.WriteFile(c.Path("tmp", "kernel", "linux"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // The second time there is nothing to do.
		if err := c.clearLeftovers(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := c.buildah("containers", "--quiet"); err != nil || left != "" {
		t.Errorf("left: %q, %v", left, err)
	}
	if sys.Exists(c.Path("tmp", "buildah123")) {
		t.Error("its folder is still there")
	}
	if !sys.Exists(c.Path("tmp", "kernel", "linux")) {
		t.Error("what another command is making has gone")
	}
}
