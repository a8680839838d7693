package consistency

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// startAgent runs the agent on this machine.
func startAgent(t *testing.T) *Agent {
	t.Helper()
	program := filepath.Join(t.TempDir(), "agent")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./agent").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	command := exec.Command(program)
	command.Stderr = os.Stderr
	to, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = to.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return NewAgent(to, from)
}

// A local file system is linearizable, so a run on it through the agent must be.
func TestALocalDiskIsConsistent(t *testing.T) {
	agent, root := startAgent(t), t.TempDir()
	for _, name := range []string{"k0", "k1"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	runner := NewRunner()
	var clients []Client
	for range 4 {
		clients = append(clients, &Remote{Agent: agent, Directories: root, Files: root})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int64
	directories := &Directories{Kept: []string{"k0", "k1"}, Names: []string{"x", "y"}}
	files := &Files{Locked: []string{"a"}, Open: []string{"b"}}
	runner.Load(ctx, 1, clients, time.Millisecond, time.Minute, func(random *rand.Rand) Request {
		if asked.Add(1) == 400 {
			cancel()
		}
		if random.IntN(2) == 0 {
			return files.Next(random)
		}
		return directories.Next(random)
	})
	history := runner.History()
	kinds := map[Kind]int{}
	for _, o := range history {
		if o.Error == "" {
			kinds[o.Kind]++
		}
	}
	if len(kinds) != 8 {
		t.Errorf("of the eight kinds, these succeeded: %v", kinds)
	}
	tree, registers, open := Tree(history, []string{"k0", "k1"}, Promise{}, limit), Registers(history, limit), CloseToOpen(history)
	if err := errors.Join(tree.Err(), registers.Err(), open.Err()); err != nil {
		t.Error(err)
	}
}

func TestErrorsHaveTheirNames(t *testing.T) {
	agent, root := startAgent(t), t.TempDir()
	c := &Remote{Agent: agent, Directories: root, Files: root}
	for _, step := range []struct {
		request Request
		want    string
	}{
		{Request{Kind: Mkdir, Path: "p"}, ""},
		{Request{Kind: Mkdir, Path: "p"}, Exists},
		{Request{Kind: Mkdir, Path: "p/q"}, ""},
		{Request{Kind: Rmdir, Path: "p"}, NotEmpty},
		{Request{Kind: List, Path: "q"}, Missing},
		{Request{Kind: Rename, Path: "q", To: "r"}, Missing},
		{Request{Kind: Write, Path: "p", Value: "x"}, "EISDIR"},
	} {
		if answer, _, err := c.Do(t.Context(), step.request); err != nil || answer.Error != step.want {
			t.Errorf("%s: %q, %v; want %q", step.request, answer.Error, err, step.want)
		}
	}
}
