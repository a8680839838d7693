package supervisor

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// describeExit is how a process ended, after its name: "was killed by signal SIGSEGV".
func describeExit(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "ended by itself with exit status 0"
	case !errors.As(err, &exit):
		return "failed: " + err.Error()
	}
	if signal := signalName(err); signal != noSignal {
		return "was killed by signal " + signal
	}
	return "ended with " + exit.String()
}

// noSignal stands for the name of a signal if a process ended without one.
const noSignal = "exit"

// signalName is the name of the signal that killed a process, or noSignal.
func signalName(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return unix.SignalName(status.Signal())
		}
	}
	return noSignal
}
