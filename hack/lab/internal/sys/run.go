// Package sys is what the lab needs from the host's operating system.
package sys

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Run runs a command; its output is kept for the error alone.
func Run(name string, args ...string) error {
	_, err := Output(name, args...)
	return err
}

// Output runs a command and returns what it wrote to standard output.
func Output(name string, args ...string) (string, error) {
	return Capture(exec.Command(name, args...))
}

// Capture runs cmd and returns its standard output; the error of a failure
// has the end of the output of the command.
func Capture(cmd *exec.Cmd) (string, error) {
	var out, all bytes.Buffer
	heard := &lines{}
	everything := io.MultiWriter(&all, heard)
	cmd.Stdout = io.MultiWriter(&out, everything)
	cmd.Stderr = everything
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(all.String(), 30))
	}
	return out.String(), nil
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

// WriteFile writes a file whole or not at all, because an interrupted lab must
// never find half a certificate or half a record.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // Gone already after a good rename.
	if _, err := temp.Write(data); err != nil {
		temp.Close()
		return err
	}
	if err := temp.Chmod(mode); err != nil {
		temp.Close()
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// LinkOrCopy makes dst the same file as src, or a copy if they are on different
// file systems. An existing dst is replaced.
func LinkOrCopy(src, dst string) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	if err := os.Remove(dst); err != nil && !os.IsNotExist(err) {
		return err
	}
	if os.Link(src, dst) == nil {
		return nil
	}
	return Run("cp", "--sparse=always", src, dst)
}

// Exists reports whether path exists.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
