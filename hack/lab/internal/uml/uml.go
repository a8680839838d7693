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
	Kernel string `json:"kernel"` // The kernel, a program of the host.
	Dir    string `json:"dir"`    // The machine's own folder: disks, share, logs.
	Base   string `json:"base"`   // The base disk.
	Memory int    `json:"memory"` // MiB.
	Name   string `json:"name"`
	// ClientID is what the machine's NFS client is to call itself.
	ClientID string `json:"clientID,omitempty"`
	// Copy makes the root disk a copy-on-write layer over Base; else Base itself is
	// written to.
	Copy bool   `json:"copy"`
	Tap  string `json:"tap,omitempty"`
	MAC  string `json:"mac,omitempty"`
	MTU  int    `json:"mtu,omitempty"` // Of the link, in bytes.
}

// Args are the arguments by which the lab's tool becomes this machine.
func (s Spec) Args() ([]string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return []string{RunCommand, string(data)}, nil
}

// kernelArgs is the kernel's command line. Paths are those of the root that enterRoot makes.
func (s Spec) kernelArgs() []string {
	args := []string{
		"linux.uml",
		fmt.Sprintf("mem=%dM", s.Memory),
		"umid=" + s.Name, "uml_dir=/dev/shm/",
		"root=/dev/ubda", "rootfstype=ext4", "rw", "init=/sbin/lab-init",
		"con=null", "ssl=null", "con0=null,fd:1",
		"quiet", "panic=-1",
		"log_buf_len=1M", // What an NFS client says is gone within minutes otherwise: the bridge has six lines for each pod.
		// The way to catch system calls that costs half of ptrace's.
		"seccomp=on",
		// The NFSv4 client names itself by this; two nodes of one name would take each
		// other's locks and sessions away at the server.
		"nfs.nfs4_unique_id=" + s.ClientID,
	}
	if s.Copy {
		args = append(args, "ubda=/lab/node/root.cow,/lab/base.img", "ubdb=/lab/node/data.img")
	} else {
		args = append(args, "ubda=/lab/base.img")
	}
	if s.Tap != "" {
		args = append(args, fmt.Sprintf("vec0:transport=tap,ifname=%s,depth=64,gro=1,mtu=%d,mac=%s", s.Tap, s.MTU, s.MAC))
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
	if err := allowMappings(mapCountFile); err != nil {
		// A host that does not let us may have a higher limit by other ways, and small guests need none.
		fmt.Fprintf(os.Stderr, "lab: processes of %s that have more than 256 MiB in lone pages may hang: %v\n", s.Name, err)
	}
	runtime.LockOSThread() // Namespace and root belong to this thread until exec.
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := s.enterRoot(); err != nil {
		return err
	}
	env := append(os.Environ(), "TMPDIR=/dev/shm", "HOME=/root")
	return unix.Exec("/"+kernelName, s.kernelArgs(), env)
}

const (
	newRoot    = "/mnt" // Every Debian has it; in this mount namespace it is ours.
	kernelName = "linux.uml"
)

// enterRoot makes a root of the machine's own of the host's libraries and the
// machine's files. It gives all machines the same short paths, which the kernel
// also writes into the copy-on-write layer of its disk.
func (s Spec) enterRoot() error {
	if err := unix.Mount("tmpfs", newRoot, "tmpfs", 0, "size=1M"); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	// A copy-on-write layer's base can't be in the root folder: its kernel changes to
	// the folder, and takes that one for "".
	if err := os.Mkdir(filepath.Join(newRoot, "lab"), 0o755); err != nil {
		return err
	}
	for _, file := range []string{kernelName, "lab/base.img"} {
		if err := os.WriteFile(filepath.Join(newRoot, file), nil, 0o755); err != nil {
			return err
		}
	}
	binds := [][2]string{{s.Dir, "lab/node"}, {s.Base, "lab/base.img"}, {s.Kernel, kernelName}, {"/dev", "dev"}, {"/proc", "proc"}}
	for _, dir := range []string{"usr", "lib", "lib64"} {
		link, err := os.Readlink("/" + dir)
		switch {
		case err == nil:
			if err := os.Symlink(link, filepath.Join(newRoot, dir)); err != nil {
				return err
			}
		case !os.IsNotExist(err):
			binds = append(binds, [2]string{"/" + dir, dir})
		}
	}
	for _, bind := range binds {
		target := filepath.Join(newRoot, bind[1])
		if _, err := os.Lstat(target); err != nil {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(bind[0], target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", bind[0], err)
		}
	}
	// The guest's memory is a file there that it maps executable.
	size := fmt.Sprintf("size=%dM", s.Memory+64)
	if err := unix.Mount("tmpfs", filepath.Join(newRoot, "dev/shm"), "tmpfs", 0, size); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if err := unix.Chroot(newRoot); err != nil {
		return err
	}
	return os.Chdir("/")
}
