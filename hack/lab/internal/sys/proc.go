package sys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// marker is in the environment of every process the lab starts. It lets `down`
// find one whose file was never written because `up` was killed in between.
const marker = "HOWDAH_LAB_INSTANCE="

// Daemon says how to start a process that outlives the command.
type Daemon struct {
	Name  string
	Path  string
	Args  []string
	Env   []string
	Log   string
	NetNS string
	Files []*os.File
}

// Table is what is known of an instance's daemons, one small file each.
type Table struct {
	Instance string
	Dir      string
}

// pidFile is what the file of a daemon holds. It identifies a process for good: the number alone may have been reused.
type pidFile struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"startTime"`
}

// Start starts the daemon unless it runs.
func (t Table) Start(d Daemon) error {
	if t.Alive(d.Name) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(d.Log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(d.Path, d.Args...)
	cmd.Env = append(append(os.Environ(), marker+t.Instance), d.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, d.Files
	// A session of its own: the daemon survives the terminal and the command, and
	// whatever it forks can be recognized by its session.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := cmd.Start
	if d.NetNS != "" {
		start = func() error { return InNetNS(d.NetNS, cmd.Start) }
	}
	if err := start(); err != nil {
		return fmt.Errorf("start %s: %w", d.Name, err)
	}
	go func() { _ = cmd.Wait() }() // Only to see its end while this command runs.
	began, _ := startTime(cmd.Process.Pid)
	data, err := json.Marshal(pidFile{PID: cmd.Process.Pid, Start: began})
	if err != nil {
		return err
	}
	return WriteFile(t.path(d.Name), data, 0o644)
}

func (t Table) path(name string) string {
	return filepath.Join(t.Dir, name+".json")
}

func (t Table) read(name string) (pidFile, bool) {
	var f pidFile
	data, err := os.ReadFile(t.path(name))
	if err != nil || json.Unmarshal(data, &f) != nil || f.PID <= 1 {
		return pidFile{}, false
	}
	return f, true
}

// PID returns the process of a daemon that runs, else 0.
func (t Table) PID(name string) int {
	f, ok := t.read(name)
	if !ok {
		return 0
	}
	began, state := startTime(f.PID)
	if began != f.Start || state == 'Z' {
		return 0
	}
	return f.PID
}

// Alive reports whether the process of the file still runs.
func (t Table) Alive(name string) bool {
	return t.PID(name) != 0
}

// Names lists the daemons that have a file.
func (t Table) Names() []string {
	files, _ := filepath.Glob(filepath.Join(t.Dir, "*.json"))
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names
}

// Stop ends one daemon and everything in its session.
func (t Table) Stop(name string, grace time.Duration) error {
	f, ok := t.read(name)
	if !ok {
		return nil
	}
	// Seen once is enough: the number stays taken while its session has members.
	leader := t.Alive(name)
	if leader && grace > 0 {
		_ = syscall.Kill(f.PID, syscall.SIGTERM)
		for end := time.Now().Add(grace); time.Now().Before(end) && t.Alive(name); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	err := killUntilGone(func() []int {
		return t.session(f, leader)
	})
	if err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return os.Remove(t.path(name))
}

// Sweep ends every process that carries the instance's mark, with a file or without.
func (t Table) Sweep() error {
	return killUntilGone(t.marked)
}

func killUntilGone(find func() []int) error {
	for range 200 {
		pids := find()
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("processes %v do not end", find())
}

// session lists the members of the session of a file. When its leader has gone,
// the number may have been reused, so members then need the mark, too.
func (t Table) session(f pidFile, leaderSeen bool) []int {
	var found []int
	for _, pid := range allPIDs() {
		stat, ok := readStat(pid)
		if !ok || stat.session != f.PID || stat.state == 'Z' {
			continue
		}
		if leaderSeen || t.hasMark(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func (t Table) marked() []int {
	var found []int
	for _, pid := range allPIDs() {
		if stat, ok := readStat(pid); ok && stat.state != 'Z' && pid != os.Getpid() && t.hasMark(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func (t Table) hasMark(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for _, entry := range bytes.Split(environ, []byte{0}) {
		if string(entry) == marker+t.Instance {
			return true
		}
	}
	return false
}

func allPIDs() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

type processStat struct {
	state   byte
	session int
	start   uint64
}

// readStat reads /proc/PID/stat. The name in it may hold spaces and brackets, so
// the fields are counted from its last closing bracket.
func readStat(pid int) (processStat, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, false
	}
	return parseStat(string(data))
}

func parseStat(text string) (processStat, bool) {
	_, rest, found := cutLast(text, ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return processStat{}, false
	}
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		return processStat{}, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return processStat{}, false
	}
	return processStat{state: fields[0][0], session: session, start: start}, true
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

func startTime(pid int) (uint64, byte) {
	stat, ok := readStat(pid)
	if !ok {
		return 0, 0
	}
	return stat.start, stat.state
}
