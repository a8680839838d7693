package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Exit codes of kubectl howdah.
const (
	codeWell    = 0
	codeNotWell = 4
)

// shot is what a command printed in a terminal.
type shot struct {
	text string
	code int
}

var (
	colours     = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	scriptLines = regexp.MustCompile(`(?m)^Script (started|done).*\n`)
)

// take runs a command in a terminal of 110 columns, which script(1) makes, and keeps what it prints in files of the name.
func take(ctx context.Context, name, command string) shot {
	GinkgoHelper()
	raw := filepath.Join(outputFolder, name+".ansi")
	// G204 does not apply: the commands are this suite's own.
	run := exec.CommandContext(ctx, "script", "-qefc", "stty cols 110 rows 50; "+command, raw)
	err := run.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred(), "script(1) runs %s", command)
	}
	recorded, err := os.ReadFile(raw)
	Expect(err).NotTo(HaveOccurred())
	coloured := scriptLines.ReplaceAllString(strings.ReplaceAll(string(recorded), "\r\n", "\n"), "")
	Expect(os.WriteFile(raw, []byte(coloured), 0o644)).To(Succeed())
	s := shot{text: colours.ReplaceAllString(coloured, ""), code: run.ProcessState.ExitCode()}
	shown := fmt.Sprintf("$ %s\n%sexit code %d\n", command, s.text, s.code)
	Expect(os.WriteFile(filepath.Join(outputFolder, name+".txt"), []byte(shown), 0o644)).To(Succeed())
	fmt.Fprintln(GinkgoWriter, shown)
	return s
}

// expectShot takes a shot that must end with a code and contain the texts.
func expectShot(ctx context.Context, name, command string, code int, texts ...string) shot {
	GinkgoHelper()
	s := take(ctx, name, command)
	Expect(s.code).To(Equal(code), "%s:\n%s", command, s.text)
	for _, text := range texts {
		Expect(s.text).To(ContainSubstring(text), "%s", command)
	}
	return s
}

// output is what kubectl howdah prints. kubectl takes no flags before the name of a plugin.
func output(ctx context.Context, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "kubectl", append([]string{"howdah", "--namespace", namespace}, args...)...).CombinedOutput()
	return string(text), err
}

// code runs kubectl howdah without a terminal and returns its exit code.
func code(ctx context.Context, args ...string) int {
	command := exec.CommandContext(ctx, "kubectl", append([]string{"howdah", "--namespace", namespace}, args...)...)
	_ = command.Run()
	return command.ProcessState.ExitCode()
}
