package guest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Init is process 1 of a node. It mounts what every program expects, and then
// only starts the keeper (again) and collects orphans; the rest is in a second
// process because a loop that collects all children would steal the keeper's.
func Init() {
	if err := mountBasics(); err != nil {
		say("mount: %v", err)
	}
	for {
		started := time.Now()
		keeper, err := os.StartProcess(Share+"/bin/guest", []string{"guest", "keep"}, &os.ProcAttr{
			Env:   environment(),
			Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		})
		if err != nil {
			say("start the keeper: %v", err)
			time.Sleep(time.Second)
			continue
		}
		collectUntil(keeper.Pid)
		say("the keeper ended after %s, starting it again", time.Since(started).Round(time.Second))
		time.Sleep(time.Second)
	}
}

func collectUntil(pid int) {
	for {
		got, err := unix.Wait4(-1, nil, 0, nil)
		if got == pid || (err != nil && err != unix.EINTR) {
			return
		}
	}
}

// PowerOff writes everything to the disks and stops the machine.
func PowerOff() error {
	unix.Sync()
	return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func say(format string, args ...any) {
	fmt.Printf("lab: "+format+"\n", args...)
}

func environment() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root",
		"TERM=dumb",
	}
}

func run(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}

type mountPoint struct {
	source, target, kind, data string
	flags                      uintptr
}

func mountBasics() error {
	const quiet = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	points := []mountPoint{
		{"proc", "/proc", "proc", "", quiet},
		{"sysfs", "/sys", "sysfs", "", quiet},
		{"devtmpfs", "/dev", "devtmpfs", "mode=0755", syscall.MS_NOSUID},
		{"devpts", "/dev/pts", "devpts", "gid=5,mode=620,ptmxmode=666", syscall.MS_NOSUID | syscall.MS_NOEXEC},
		{"tmpfs", "/dev/shm", "tmpfs", "mode=1777", syscall.MS_NOSUID | syscall.MS_NODEV},
		{"mqueue", "/dev/mqueue", "mqueue", "", quiet},
		{"tmpfs", "/run", "tmpfs", "mode=0755", syscall.MS_NOSUID | syscall.MS_NODEV},
		{"tmpfs", "/tmp", "tmpfs", "mode=1777", syscall.MS_NOSUID | syscall.MS_NODEV},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", "", quiet},
		{"bpf", "/sys/fs/bpf", "bpf", "mode=0700", quiet},
	}
	for _, p := range points {
		_ = os.MkdirAll(p.target, 0o755) // sysfs and cgroup2 bring theirs along.
		if err := syscall.Mount(p.source, p.target, p.kind, p.flags, p.data); err != nil && err != syscall.EBUSY {
			say("mount %s: %v", p.target, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		_ = os.Symlink(target, "/dev/"+name) // They exist after a restart of process 1's loop.
	}
	// Kubernetes hands mounts made on the node to pods (HostToContainer).
	return syscall.Mount("", "/", "", syscall.MS_SHARED|syscall.MS_REC, "")
}
