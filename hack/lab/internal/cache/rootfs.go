package cache

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

const (
	nodeSuite = "trixie"
	// kernelSuite is where User-mode Linux comes from. The later one of forky
	// (7.2) has neither legacy iptables nor nftables for IPv4, so kube-proxy can't
	// run on it.
	kernelSuite = "trixie"
	// recipe counts up when the steps below change in a way the stamp can't see.
	recipe = "1"
)

var nodePackages = []string{
	"attr", "ca-certificates", "conntrack", "containernetworking-plugins", "e2fsprogs", "ethtool", "iproute2",
	"iptables", "iputils-ping", "kmod", "mount", "nfs-common", "procps", "psmisc", "runc",
}

// lab-init is what the kernel starts. The program proper comes by hostfs, so that
// a change of the lab's tool needs no new disk.
const labInit = `#!/bin/sh
mount -t hostfs -o hostfs=/lab/node/share none /lab
exec /lab/bin/guest init
`

// RootDir is the nodes' root file system as a folder; UML itself runs in it,
// because it needs a newer C library than the host's.
func (c *Cache) RootDir() string {
	return c.Path("rootfs")
}

// RootFS makes the root file system with kernel and modules.
func (c *Cache) RootFS() error {
	return c.ensure(product{
		name:  "rootfs",
		files: []string{filepath.Join(c.RootDir(), "usr/bin/linux.uml")},
		stamp: hash(append([]string{nodeSuite, kernelSuite, recipe}, nodePackages...)...),
		make:  c.makeRootFS,
	})
}

func (c *Cache) makeRootFS() error {
	mirror, err := Mirror()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(c.RootDir()); err != nil {
		return err
	}
	source := fmt.Sprintf("deb %s %s main", mirror, nodeSuite)
	err = sys.Run("mmdebstrap", "--variant=minbase", "--include="+strings.Join(nodePackages, ","),
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*", nodeSuite, c.RootDir(), source)
	if err != nil {
		return err
	}
	if err := c.addKernel(); err != nil {
		return err
	}
	// The kernel has no nftables for IPv4, the default behind Debian's iptables.
	for _, name := range []string{"iptables", "ip6tables"} {
		if err := c.inRoot("update-alternatives", "--set", name, "/usr/sbin/"+name+"-legacy"); err != nil {
			return err
		}
	}
	// Targets of the mounts that a node's UML makes in its own mount namespace.
	for _, dir := range []string{"lab/node", "data"} {
		if err := os.MkdirAll(filepath.Join(c.RootDir(), dir), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.RootDir(), "lab/base.img"), nil, 0o644)
}

func (c *Cache) addKernel() error {
	work := c.Path("tmp", "uml")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := c.fetchPackage(kernelSuite, "user-mode-linux", work); err != nil {
		return err
	}
	modules, err := filepath.Glob(filepath.Join(work, "usr/lib/uml/modules/*"))
	if err != nil || len(modules) != 1 {
		return fmt.Errorf("package user-mode-linux: found %d module folders: %w", len(modules), err)
	}
	if err := os.MkdirAll(filepath.Join(c.RootDir(), "usr/lib/modules"), 0o755); err != nil {
		return err
	}
	commands := [][]string{
		{"cp", "-a", filepath.Join(work, "usr/bin/linux.uml"), filepath.Join(c.RootDir(), "usr/bin/linux.uml")},
		{"cp", "-a", modules[0], filepath.Join(c.RootDir(), "usr/lib/modules/")},
	}
	for _, command := range commands {
		if err := sys.Run(command[0], command[1:]...); err != nil {
			return err
		}
	}
	return c.inRoot("depmod", filepath.Base(modules[0]))
}

func (c *Cache) inRoot(args ...string) error {
	cmd := exec.Command("chroot", append([]string{c.RootDir()}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	_, err := sys.Capture(cmd)
	return err
}
