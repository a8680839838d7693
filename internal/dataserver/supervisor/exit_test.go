package supervisor

import (
	"os/exec"
	"testing"
)

func TestHowGaneshaEndedIsReported(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":        "ended by itself with exit status 0",
		"exit 3":        "ended with exit status 3",
		"kill -SEGV $$": "was killed by signal SIGSEGV",
		"kill -KILL $$": "was killed by signal SIGKILL",
	} {
		if got := describeExit(exec.Command("/bin/sh", "-c", script).Run()); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if got, want := describeExit(exec.Command("/nowhere/ganesha.nfsd").Run()), "failed: fork/exec /nowhere/ganesha.nfsd: no such file or directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
