package supervisor

import (
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/serverpod"
)

// ask notes that the end of the present process is asked for, and returns its ID.
func (s *Supervisor) ask() (pid int) {
	s.note(func(state *State) {
		if pid = state.PID; pid != 0 {
			state.asked = state.Starts
		}
	})
	return pid
}

// Kill ends a ganesha that does not react; Run starts it again.
func (s *Supervisor) Kill() {
	if pid := s.ask(); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // Fails only if it has just ended.
	}
}

// Restart stops ganesha gracefully, or kills it after StopAllowance; Run starts it again.
func (s *Supervisor) Restart() {
	pid := s.ask()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM) // Fails only if it has just ended.
	time.AfterFunc(serverpod.StopAllowance, func() {
		if s.State().PID == pid {
			s.Log.Error("ganesha did not stop; killing it", "after", serverpod.StopAllowance)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}
