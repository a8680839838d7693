package child

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Start starts a command that is killed when this process ends. The caller must call wait, once: it returns when the process has ended, as
// exec.Cmd.Wait does.
//
// The kernel sends the signal when the thread ends that started the process (PR_SET_PDEATHSIG, prctl(2)), and the Go runtime ends threads: that
// of a goroutine which returns while it is locked to it. So the process is started from a thread that belongs to it until wait returns.
func Start(command *exec.Cmd) (wait func() error, err error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			<-ended
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	release := sync.OnceFunc(func() { close(ended) })
	return func() error {
		defer release()
		return command.Wait()
	}, nil
}
