package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/howdah/howdah/internal/load"
)

// Load is a load (howdah load) in a client pod. It does not need the connection to the pod, which failures may cut.
type Load struct {
	Pod, Name   string
	Directories []string

	cluster *Cluster
}

// loadStopWait is what an operation of a load waits for at most when the load is stopped: servers may need that long to come back.
const loadStopWait = "10m"

// StartLoad starts a load with a name of its own in the pod, and returns when it runs in all directories. flags are those of howdah load.
func (c *Cluster) StartLoad(ctx context.Context, pod, name string, directories []string, flags ...string) (*Load, error) {
	l := &Load{Pod: pod, Name: name, Directories: directories, cluster: c}
	words := append([]string{"howdah", "load", "--json", "--stop-wait", loadStopWait, "--name", name, "--ledger", l.file("ledger")}, append(flags, directories...)...)
	script := fmt.Sprintf(`rm -f %[1]s.*
PATH=$PATH:/opt/howdah
{ %[2]s >%[1]s.json 2>%[1]s.log </dev/null & echo $! >%[1]s.pid; wait $!; echo $? >%[1]s.exit; } >/dev/null 2>&1 &`, l.base(), quoted(words))
	if _, err := c.Shell(ctx, pod, script); err != nil {
		return nil, err
	}
	var ended error
	err := WaitFor(ctx, "the load in "+pod, func(ctx context.Context) error {
		log, err := c.Shell(ctx, pod, fmt.Sprintf("cat %[1]s.log; if test -e %[1]s.exit; then echo ended with $(cat %[1]s.exit); fi", l.base()))
		if err != nil {
			return err
		}
		if strings.Contains(log, "ended with") {
			ended = fmt.Errorf("the load in %s ended: %s", pod, log)
			return nil
		}
		if !strings.Contains(log, "in all directories") {
			return errors.New("it does not run yet")
		}
		return nil
	})
	return l, errors.Join(err, ended)
}

func quoted(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func (l *Load) base() string { return "/tmp/load-" + l.Name }

func (l *Load) file(ending string) string { return l.base() + "." + ending }

// Entries is how many entries the load has written into its ledger: more with each operation.
func (l *Load) Entries(ctx context.Context) (int, error) {
	output, err := l.cluster.Shell(ctx, l.Pod, "wc -l <"+l.file("ledger"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(output))
}

// Mark marks an event: the result has what it did to the random load.
func (l *Load) Mark(ctx context.Context) error {
	_, err := l.cluster.Shell(ctx, l.Pod, fmt.Sprintf("kill -USR1 $(cat %s)", l.file("pid")))
	return err
}

// Ledger is what the load got confirmed.
func (l *Load) Ledger(ctx context.Context) (string, error) {
	return l.cluster.Shell(ctx, l.Pod, "cat "+l.file("ledger"))
}

// Freeze has the load stand still until it is killed, wherever it is, and returns what it got confirmed: for a load whose client is about to be lost.
func (l *Load) Freeze(ctx context.Context) (ledger string, err error) {
	return l.cluster.Shell(ctx, l.Pod, fmt.Sprintf("kill -STOP $(cat %s.pid) && cat %s", l.base(), l.file("ledger")))
}

// Stop ends the load and returns what it found. Errors and wrong data that it found are in the result, not in the error.
func (l *Load) Stop(ctx context.Context) (load.Result, error) {
	if _, err := l.cluster.Shell(ctx, l.Pod, fmt.Sprintf("test -e %[1]s.exit || kill -TERM $(cat %[1]s.pid)", l.base())); err != nil {
		return load.Result{}, err
	}
	if err := WaitFor(ctx, "the end of the load in "+l.Pod, func(ctx context.Context) error {
		_, err := l.cluster.Shell(ctx, l.Pod, "test -e "+l.file("exit"))
		return err
	}); err != nil {
		return load.Result{}, err
	}
	return readResult(l.cluster.Shell(ctx, l.Pod, fmt.Sprintf("cat %[1]s.json; tail -n 20 %[1]s.log >&2; test -s %[1]s.json", l.base())))
}

// Audit compares directories with ledgers in a pod, and returns what it found.
func (c *Cluster) Audit(ctx context.Context, pod string, directories, ledgers []string, flags ...string) (load.Result, error) {
	words := append([]string{"howdah", "load", "--json", "--audit"}, flags...)
	for i, ledger := range ledgers {
		file := fmt.Sprintf("/tmp/audit-%d.ledger", i)
		if _, err := c.ShellInput(ctx, pod, "cat >"+file, strings.NewReader(ledger)); err != nil {
			return load.Result{}, err
		}
		words = append(words, "--ledger", file)
	}
	// What it finds makes it fail; then there is a result all the same.
	const script = `PATH=$PATH:/opt/howdah; %s >/tmp/audit.json 2>/tmp/audit.log; cat /tmp/audit.json; cat /tmp/audit.log >&2; test -s /tmp/audit.json`
	return readResult(c.Shell(ctx, pod, fmt.Sprintf(script, quoted(append(words, directories...)))))
}

func readResult(output string, err error) (load.Result, error) {
	var result load.Result
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal([]byte(output), &result); err != nil {
		return result, fmt.Errorf("howdah load printed %q: %w", output, err)
	}
	return result, nil
}
