package ceph

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/test/cluster"
)

var (
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
	// auditor is the pod of the second client, seenAt are the paths of the directories there.
	auditor string
	seenAt  []string
	// forget makes the second client drop its caches; nil if it has read nothing yet.
	forget func(ctx context.Context)
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
	loads := make([]*cluster.Load, len(users))
	for i, u := range users {
		var err error
		loads[i], err = c.StartLoad(ctx, u.pod, run, u.directories, "--do", "records,files", "--bytes", "16Mi", "--pause", "100ms")
		Expect(err).NotTo(HaveOccurred(), u.what)
	}
	results := make([]load.Result, len(users))
	var once sync.Once
	stop := func() {
		once.Do(func() {
			var wait sync.WaitGroup
			for i, running := range loads {
				wait.Go(func() {
					defer GinkgoRecover()
					var err error
					results[i], err = running.Stop(ctx)
					Expect(err).NotTo(HaveOccurred(), users[i].what)
				})
			}
			wait.Wait()
		})
	}
	defer stop() // Also when do fails.
	time.Sleep(5 * time.Second)
	do()
	time.Sleep(5 * time.Second)
	stop()

	all := map[string][]felt{}
	for i, u := range users {
		Expect(results[i].Directories).To(HaveLen(len(u.directories)))
		if u.forget != nil {
			u.forget(ctx)
		}
		for _, d := range results[i].Directories {
			f := feltIn(d)
			Expect(f.records).To(BeNumerically(">", 0), "%s: %s", u.what, results[i].Text())
			Expect(d.Wrong()).To(BeZero(), "%s: %s", u.what, results[i].Text())
			all[u.what] = append(all[u.what], f)
		}
		ledger, err := loads[i].Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audit, err := c.Audit(ctx, u.auditor, u.seenAt, []string{ledger})
		Expect(err).NotTo(HaveOccurred())
		Expect(audit.Verdict(0)).To(Succeed(), "%s: %s", u.what, audit.Text())
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
	average, err := os.ReadFile("/proc/loadavg")
	Expect(err).NotTo(HaveOccurred())
	AddReportEntry(run+": load of the machine that has the lab, at the end", strings.Join(strings.Fields(string(average))[:3], " "), ReportEntryVisibilityAlways)
	return all
}

// feltIn is what was measured in one directory.
func feltIn(d load.Directory) felt {
	seconds := func(timing load.Timing) time.Duration { return time.Duration(timing.Longest * float64(time.Second)) }
	records, files := d.Kinds[load.Append], d.Kinds[load.Make]
	return felt{
		write: seconds(records), make: seconds(files), records: int(records.Count), made: int(files.Count),
		errors: int(d.ErrorCount()), first: d.FirstError,
	}
}

func errorsOf(all []felt) (count int) {
	for _, f := range all {
		count += f.errors
	}
	return count
}
