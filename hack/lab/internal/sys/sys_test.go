package sys

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const line = "42 (a) b (c)) S 1 42 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 200"
	stat, ok := parseStat(line)
	if !ok || stat.state != 'S' || stat.session != 77 || stat.start != 123456 {
		t.Errorf("parseStat = %+v, %t", stat, ok)
	}
	if _, ok := parseStat("42 (x) S 1"); ok {
		t.Error("half a line was taken")
	}
}

func TestDaemon(t *testing.T) {
	dir := t.TempDir()
	table := Table{Instance: "test", Dir: filepath.Join(dir, "run")}
	daemon := Daemon{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "sleep 60 & sleep 60"}, Log: filepath.Join(dir, "log")}
	if err := table.Start(daemon); err != nil {
		t.Fatal(err)
	}
	pid := table.PID("sleeper")
	if pid == 0 {
		t.Fatal("the daemon does not run")
	}
	if err := table.Start(daemon); err != nil || table.PID("sleeper") != pid {
		t.Errorf("a second start is not the first daemon: %v", err)
	}
	if err := table.Stop("sleeper", time.Second); err != nil {
		t.Fatal(err)
	}
	if found := table.session(pidFile{PID: pid}, true); len(found) != 0 {
		t.Errorf("of its session %v still run", found)
	}
	if names := table.Names(); len(names) != 0 {
		t.Errorf("they still have files: %v", names)
	}
}

// A number that belongs to another process by now must not be touched.
func TestStopSparesOtherProcesses(t *testing.T) {
	dir := t.TempDir()
	table := Table{Instance: "test", Dir: dir}
	other := Table{Instance: "other", Dir: t.TempDir()}
	daemon := Daemon{Name: "other", Path: "/bin/sleep", Args: []string{"60"}, Log: filepath.Join(dir, "log")}
	if err := other.Start(daemon); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Stop("other", 0) }()
	data, err := os.ReadFile(other.path("other"))
	if err != nil {
		t.Fatal(err)
	}
	stale := append([]byte(`{"startTime":1,`), data[len(`{`):]...)
	// The later of two equal keys wins, so put the wrong time last.
	stale = append(stale[:len(stale)-1], []byte(`,"startTime":1}`)...)
	if err := os.WriteFile(table.path("other"), stale, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := table.Stop("other", 0); err != nil {
		t.Fatal(err)
	}
	if !other.Alive("other") {
		t.Error("another process was stopped")
	}
}

func TestSweepFindsProcessesWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	table := Table{Instance: "sweep-" + filepath.Base(dir), Dir: dir}
	if err := table.Start(Daemon{Name: "lost", Path: "/bin/sleep", Args: []string{"60"}, Log: filepath.Join(dir, "log")}); err != nil {
		t.Fatal(err)
	}
	pid := table.PID("lost")
	if err := os.Remove(table.path("lost")); err != nil {
		t.Fatal(err)
	}
	if err := table.Sweep(); err != nil {
		t.Fatal(err)
	}
	if stat, ok := readStat(pid); ok && stat.state != 'Z' {
		t.Error("a process without a file still runs")
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("read %q, %v, want %q", got, err, text)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
