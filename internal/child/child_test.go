package child

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// A goroutine that returns while it is locked to its thread ends the thread, and the kernel then kills what that thread has started.
func TestAProcessOutlivesTheThreadOfTheGoroutineThatStartedIt(t *testing.T) {
	for range 20 {
		command := exec.Command("cat")
		input, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var output strings.Builder
		command.Stdout = &output
		type started struct {
			wait func() error
			err  error
		}
		result := make(chan started)
		go func() {
			runtime.LockOSThread() // It is never unlocked.
			wait, err := Start(command)
			result <- started{wait, err}
		}()
		s := <-result
		if s.err != nil {
			t.Fatal(s.err)
		}
		for range 10 {
			runtime.Gosched()
		}
		if _, err := input.Write([]byte("alive")); err != nil {
			t.Errorf("write: %v", err)
		}
		_ = input.Close()
		if err := s.wait(); err != nil || output.String() != "alive" {
			t.Fatalf("the process ended with %v and wrote %q", err, output.String())
		}
	}
}

func TestACommandThatCantBeStartedIsAnError(t *testing.T) {
	if _, err := Start(exec.Command(t.TempDir() + "/none")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
