package ceph

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	//go:embed testdata/load.pl
	loadScript string
	//go:embed testdata/audit.pl
	auditScript string
	// nodeExec is a command that runs a command on a node: the node's name, "--" and the command to run are appended.
	// nodeOff and nodeOn switch a node off and on. hack/e2e.sh sets them for the lab.
	nodeExec = os.Getenv("HOWDAH_E2E_NODE_EXEC")
	nodeOff  = os.Getenv("HOWDAH_E2E_NODE_OFF")
	nodeOn   = os.Getenv("HOWDAH_E2E_NODE_ON")
)

// onNode runs a script on a node, outside all pods.
func onNode(ctx context.Context, node, script string) string {
	GinkgoHelper()
	words := append(strings.Fields(nodeExec), node, "--", "sh", "-c", script)
	output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "on %s: %s: %s", node, script, output)
	return string(output)
}

func switchNode(ctx context.Context, command, node string) {
	GinkgoHelper()
	words := append(strings.Fields(command), node)
	output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", words, output)
}

// user is a pod that uses directories. A second client, which has nothing of them in its cache, checks what was written.
type user struct {
	what, pod   string
	directories []string // Their paths in the pod.
	// forget makes the second client drop its caches; nil if it has read nothing yet. audit runs a script in the second
	// client with the ledger on standard input, and returns its output.
	forget func(ctx context.Context)
	audit  func(ctx context.Context, script, ledger string) string
}

// felt is what a user measured during a failure: the longest write of a record, the longest creation of a file, and the
// number of records, files and errors. first is the first error.
type felt struct {
	write, make           time.Duration
	records, made, errors int
	first                 string
}

func (f felt) String() string {
	text := fmt.Sprintf("longest write %.1f s, longest creation of a file %.1f s, %d errors", f.write.Seconds(), f.make.Seconds(), f.errors)
	if f.first != "" {
		text += " (" + f.first + ")"
	}
	return fmt.Sprintf("%s; %d records and %d files", text, f.records, f.made)
}

// under runs do while users write into all their directories. It returns what they measured, by user and directory, and
// checks that all acknowledged data is there.
func under(ctx context.Context, run string, users []user, do func()) map[string][]felt {
	GinkgoHelper()
	const start = `set -e; rm -f /tmp/stop; cat >/tmp/load.pl
		for i in $(seq 0 %[3]d); do
			set -- %[2]s; shift $i
			perl /tmp/load.pl $1 %[1]s /tmp/ledger-%[1]s-$i >/tmp/out-%[1]s-$i 2>&1 &
		done
		wait; for i in $(seq 0 %[3]d); do cat /tmp/out-%[1]s-$i; done`
	outputs := make([]string, len(users))
	var wait sync.WaitGroup
	for i, u := range users {
		wait.Go(func() {
			defer GinkgoRecover()
			script := fmt.Sprintf(start, run, strings.Join(u.directories, " "), len(u.directories)-1)
			output, err := c.ShellInput(ctx, u.pod, script, strings.NewReader(loadScript))
			Expect(err).NotTo(HaveOccurred(), u.what)
			outputs[i] = output
		})
	}
	stop := func() {
		for _, u := range users {
			sh(ctx, u.pod, "touch /tmp/stop")
		}
		wait.Wait()
	}
	defer stop() // Also when do fails.
	time.Sleep(5 * time.Second)
	do()
	time.Sleep(5 * time.Second)
	stop()

	all := map[string][]felt{}
	for i, u := range users {
		lines := strings.Split(strings.TrimSpace(outputs[i]), "\n")
		Expect(lines).To(HaveLen(len(u.directories)), outputs[i])
		if u.forget != nil {
			u.forget(ctx)
		}
		for at, line := range lines {
			var f felt
			var write, made int
			_, err := fmt.Sscan(line, &write, &made, &f.records, &f.made, &f.errors)
			Expect(err).NotTo(HaveOccurred(), line)
			f.write, f.make = time.Duration(write)*time.Millisecond, time.Duration(made)*time.Millisecond
			if fields := strings.SplitN(line, " ", 6); len(fields) == 6 {
				f.first = strings.TrimSpace(fields[5])
			}
			Expect(f.records).To(BeNumerically(">", 0), "%s: %s", u.what, line)
			all[u.what] = append(all[u.what], f)
			ledger := sh(ctx, u.pod, "cat /tmp/ledger-%s-%d", run, at)
			output := u.audit(ctx, fmt.Sprintf("perl /tmp/audit.pl %s %s", u.directories[at], run), ledger)
			Expect(output).To(Equal(fmt.Sprintf("looked at %d\n", f.records+f.made)), u.what)
		}
		worst := felt{}
		for _, f := range all[u.what] {
			worst.write, worst.make = max(worst.write, f.write), max(worst.make, f.make)
			worst.records, worst.made, worst.errors = worst.records+f.records, worst.made+f.made, worst.errors+f.errors
			if worst.first == "" {
				worst.first = f.first
			}
		}
		AddReportEntry(run+": "+u.what, worst.String(), ReportEntryVisibilityAlways)
	}
	load, err := os.ReadFile("/proc/loadavg")
	Expect(err).NotTo(HaveOccurred())
	AddReportEntry(run+": load of the machine that has the lab, at the end", strings.Join(strings.Fields(string(load))[:3], " "), ReportEntryVisibilityAlways)
	return all
}

func errorsOf(all []felt) (count int) {
	for _, f := range all {
		count += f.errors
	}
	return count
}
