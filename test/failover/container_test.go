package failover

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The test starts itself again for what is to be done in a container's namespaces before its program takes over.
const (
	envContainer = "HOWDAH_FAILOVER_CONTAINER"
	serviceToken = "/run/secrets/kubernetes.io/serviceaccount"
	entrypoint   = "/usr/local/bin/howdah"
)

// container is what a container's process must know.
type container struct {
	// Folder is of this container alone, Lower the image's root.
	Folder, Lower string
	Hostname      string
	Mounts        []mount
	Args, Env     []string
	User, Group   int64
}

// mount is a volume in a container. Source is a file or directory to bind; none: an empty directory in memory.
type mount struct {
	Source, Target string
	Writable       bool
}

func (c *container) write() error {
	text, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Folder, "container.json"), text, 0o600)
	}
	return err
}

// become turns this process into the one of the container in a folder. It returns only if that fails.
func become(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "container.json"))
	if err != nil {
		return err
	}
	var c container
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	root := filepath.Join(c.Folder, "root")
	if err := c.enter(root); err != nil {
		return err
	}
	args := []string{
		"/usr/bin/setpriv", "--reuid", fmt.Sprint(c.User), "--regid", fmt.Sprint(c.Group), "--clear-groups",
		"--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all", entrypoint,
	}
	return syscall.Exec(args[0], append(args, c.Args...), c.Env)
}

func (c *container) enter(root string) error {
	for _, name := range []string{"root", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(c.Folder, name), 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", c.Lower, filepath.Join(c.Folder, "upper"), filepath.Join(c.Folder, "work"))
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{"overlay", root, "overlay", 0, layers},
		{"proc", root + "/proc", "proc", 0, ""},
		{"tmpfs", root + "/dev", "tmpfs", 0, "mode=755"},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for device, minor := range map[string]int{"null": 3, "zero": 5, "random": 8, "urandom": 9} {
		path := filepath.Join(root, "dev", device)
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	for _, m := range c.Mounts {
		if err := c.mount(root, m); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	for _, step := range []func() error{
		func() error {
			return syscall.Mount("none", root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
		},
		func() error { return syscall.Sethostname([]byte(c.Hostname)) },
		func() error { return syscall.Chroot(root) },
		func() error { return os.Chdir("/") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// mount makes a volume, and the place for it in the image's root.
func (c *container) mount(root string, m mount) error {
	target := filepath.Join(root, strings.TrimPrefix(m.Target, "/"))
	if m.Source == "" {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		return syscall.Mount("tmpfs", target, "tmpfs", 0, fmt.Sprintf("mode=2770,gid=%d", c.Group))
	}
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var file *os.File
		if file, err = os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return err
	}
	if err := syscall.Mount(m.Source, target, "", syscall.MS_BIND, ""); err != nil || m.Writable {
		return err
	}
	return syscall.Mount("none", target, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}
