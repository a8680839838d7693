package client

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// An exception that the program did not catch aborted it, and its user saw no reason.
func TestEveryExceptionBecomesAnAnswer(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("needs g++ (hack/host-packages.sh)")
	}
	binary := filepath.Join(t.TempDir(), "failure_test")
	build := exec.Command("g++", "-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "../helper/failure_test.cc", "-o", binary)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, output)
	}
	if output, err := exec.Command(binary).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
