package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// ExecError is a command that ended with another code than 0.
type ExecError struct {
	Pod      string
	Command  string
	ExitCode int
	Output   string
}

func (e *ExecError) Error() string {
	return fmt.Sprintf("in %s: %s: exit code %d: %s", e.Pod, e.Command, e.ExitCode, strings.TrimSpace(e.Output))
}

// Shell runs a script by sh in a pod of the run's namespace and returns what it
// printed on standard output. A script that fails gives an *ExecError with both outputs.
func (c *Cluster) Shell(ctx context.Context, pod, script string) (string, error) {
	return c.shell(ctx, pod, script, nil)
}

// ShellInput is Shell with a standard input.
func (c *Cluster) ShellInput(ctx context.Context, pod, script string, input io.Reader) (string, error) {
	return c.shell(ctx, pod, script, input)
}

func (c *Cluster) shell(ctx context.Context, pod, script string, input io.Reader) (string, error) {
	args := []string{"exec", "--namespace", c.Namespace, pod}
	if input != nil {
		args = append(args, "--stdin")
	}
	command := exec.CommandContext(ctx, "kubectl", append(args, "--", "sh", "-c", script)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr, command.Stdin = &stdout, &stderr, input
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return stdout.String(), &ExecError{Pod: pod, Command: script, ExitCode: exit.ExitCode(), Output: stdout.String() + stderr.String()}
	}
	return stdout.String(), err
}

// Kubectl runs kubectl in the run's namespace and returns both outputs.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", c.Namespace}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return string(output), err
}
