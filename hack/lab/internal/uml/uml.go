// Package uml starts User-mode Linux: a kernel that is an ordinary process.
package uml

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// RunCommand is the hidden command of the lab's tool that becomes a UML.
const RunCommand = "__uml"

// Spec is one virtual machine.
type Spec struct {
	Root   string `json:"root"`   // The root file system that UML itself runs in.
	Dir    string `json:"dir"`    // The machine's own folder: disks, share, logs.
	Base   string `json:"base"`   // The base disk.
	Memory int    `json:"memory"` // MiB.
	Name   string `json:"name"`
	// Copy makes the root disk a copy-on-write layer over Base; else Base itself is
	// written to.
	Copy bool   `json:"copy"`
	Tap  string `json:"tap,omitempty"`
	MAC  string `json:"mac,omitempty"`
}

// Args are the arguments by which the lab's tool becomes this machine.
func (s Spec) Args() ([]string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return []string{RunCommand, string(data)}, nil
}

// kernelArgs is the kernel's command line. Paths are those inside Root.
func (s Spec) kernelArgs() []string {
	args := []string{
		"linux.uml",
		fmt.Sprintf("mem=%dM", s.Memory),
		"umid=" + s.Name, "uml_dir=/dev/shm/",
		"root=/dev/ubda", "rootfstype=ext4", "rw", "init=/sbin/lab-init",
		"con=null", "ssl=null", "con0=null,fd:1",
		"quiet", "panic=-1",
		// The faster way to catch system calls, from 6.16 on; earlier kernels hand the
		// unknown word to init, which ignores it.
		"seccomp=auto",
	}
	if s.Copy {
		args = append(args, "ubda=/lab/node/root.cow,/lab/base.img", "ubdb=/lab/node/data.img")
	} else {
		args = append(args, "ubda=/lab/base.img")
	}
	if s.Tap != "" {
		args = append(args, fmt.Sprintf("vec0:transport=tap,ifname=%s,depth=128,gro=1,mac=%s", s.Tap, s.MAC))
	}
	return args
}

// Become turns this process into the machine. All mounts are made in a mount
// namespace of its own, so they vanish with the process, however it ends.
func Become(text string) error {
	var s Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	runtime.LockOSThread() // Namespace and root belong to this thread until exec.
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, bind := range [][2]string{
		{s.Dir, "lab/node"}, {s.Base, "lab/base.img"}, {"/dev", "dev"}, {"/proc", "proc"},
	} {
		if err := unix.Mount(bind[0], filepath.Join(s.Root, bind[1]), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", bind[0], err)
		}
	}
	// The guest's memory is a file there that it maps executable.
	size := fmt.Sprintf("size=%dM", s.Memory+64)
	if err := unix.Mount("tmpfs", filepath.Join(s.Root, "dev/shm"), "tmpfs", 0, size); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if err := unix.Chroot(s.Root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	env := append(os.Environ(), "TMPDIR=/dev/shm", "HOME=/root")
	return unix.Exec("/usr/bin/linux.uml", s.kernelArgs(), env)
}
