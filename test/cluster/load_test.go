package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubectl stands for a pod's shell: it runs what comes after "--" here.
const kubectl = `#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`

func TestALoadInAPodIsStartedStoppedAndAudited(t *testing.T) {
	programs, data := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(programs, "howdah"), "../../cmd/howdah").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	name := filepath.Base(data) + "-cluster-test"
	t.Cleanup(func() {
		for _, ending := range []string{"log", "json", "pid", "exit", "ledger"} {
			_ = os.Remove("/tmp/load-" + name + "." + ending)
		}
	})
	c := &Cluster{Namespace: "none"}
	l, err := c.StartLoad(t.Context(), "pod", name, []string{data}, "--pause", "1ms")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := l.Entries(t.Context())
	if err != nil || entries == 0 {
		t.Errorf("%d entries, %v", entries, err)
	}
	result, err := l.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Verdict(0); err != nil || result.Run != name || result.Directories[0].Operations == 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	ledger, err := l.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--nothing-else"}} {
		result, err := c.Audit(t.Context(), "pod", []string{data}, []string{ledger}, flags...)
		if err != nil || result.Verdict(0) != nil {
			t.Errorf("the audit with %v: %+v, %v", flags, result, err)
		}
	}
	if err := os.Remove(filepath.Join(data, name, "records")); err != nil {
		t.Fatal(err)
	}
	result, err = c.Audit(t.Context(), "pod", []string{data}, []string{ledger})
	if err != nil || result.Directories[0].LostNames == 0 {
		t.Errorf("the audit of a lost file: %+v, %v", result, err)
	}
	if _, err := c.StartLoad(t.Context(), "pod", name, []string{data}); err == nil || !strings.Contains(err.Error(), "file exists") {
		t.Errorf("a second load of the same name: %v", err)
	}
}
