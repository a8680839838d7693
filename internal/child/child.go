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
		err := begin(command)
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
		err := command.Wait()
		mutex.Lock()
		defer mutex.Unlock()
		delete(running, command.Process.Pid)
		return err
	}, nil
}

// running are the processes that Start has started and whose wait has not returned.
var (
	mutex   sync.Mutex
	running = map[int]bool{}
)

// begin starts a command, and notes its process before anybody can see that it has ended.
func begin(command *exec.Cmd) error {
	mutex.Lock()
	defer mutex.Unlock()
	err := command.Start()
	if err == nil {
		running[command.Process.Pid] = true
	}
	return err
}

// IsAwaited tells whether this process waits for the end of another one, or will.
func IsAwaited(pid int) bool {
	mutex.Lock()
	defer mutex.Unlock()
	return running[pid]
}
