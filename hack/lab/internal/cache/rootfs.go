package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

const (
	nodeSuite = "trixie"
	// recipe counts up when the steps below change in a way the stamp can't see.
	recipe = "2"
)

var nodePackages = []string{
	"attr", "ca-certificates", "conntrack", "containernetworking-plugins", "crun", "e2fsprogs", "ethtool", "iproute2",
	"iptables", "iputils-ping", "mount", "nfs-common", "procps", "psmisc",
}

// lab-init is what the kernel starts. The program proper comes by hostfs, so that
// a change of the lab's tool needs no new disk.
const labInit = `#!/bin/sh
mount -t hostfs -o hostfs=/lab/node/share none /lab
exec /lab/bin/guest init
`

// RootDir is the nodes' root file system as a folder.
func (c *Cache) RootDir() string {
	return c.Path("rootfs")
}

// RootFS makes the root file system.
func (c *Cache) RootFS() error {
	return c.ensure(product{
		name:  "rootfs",
		files: []string{filepath.Join(c.RootDir(), "usr/bin/crun")},
		stamp: hash(append([]string{nodeSuite, recipe}, nodePackages...)...),
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
	// Where a node mounts the folder it shares with the host, and its second disk.
	for _, dir := range []string{"lab", "data"} {
		if err := os.MkdirAll(filepath.Join(c.RootDir(), dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}
