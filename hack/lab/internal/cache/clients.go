package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// clientSuites are the Debian releases whose User-mode Linux packages are tried as NFS clients: 5.10, 6.1 and 6.12. The
// nodes' own kernel, which is newer than all, is tried beside them.
var clientSuites = []string{"bullseye", "bookworm", "trixie"}

// clientPackages are what users copy, pack and check out trees with, and fio for random reads.
var clientPackages = []string{
	"attr", "e2fsprogs", "fio", "git", "iproute2", "kmod", "nfs-common", "procps", "python3", "rsync", "strace", "unzip", "zip",
}

// clientRecipe counts up when the steps below change in a way the stamp can't see.
const clientRecipe = "1"

// Clients makes the root file system that client machines of test/kernels share, read-only, and returns the folder.
// It has the kernels as /boot/linux-VERSION and their modules.
func (c *Cache) Clients() (string, error) {
	if err := c.BuildKernel(); err != nil {
		return "", err
	}
	kernel, err := os.ReadFile(c.Path("stamps", "kernel"))
	if err != nil {
		return "", err
	}
	root := c.Path("roots", "clients")
	parts := append([]string{nodeSuite, clientRecipe, string(kernel)}, clientSuites...)
	return root, c.ensure(product{
		name:  "root-clients",
		files: []string{filepath.Join(root, "boot")},
		stamp: hash(append(parts, clientPackages...)...),
		make:  func() error { return c.makeClients(root) },
	})
}

func (c *Cache) makeClients(root string) error {
	if err := makeMachineRoot(root, clientPackages); err != nil {
		return err
	}
	for _, suite := range clientSuites {
		if err := c.addClientKernel(root, suite); err != nil {
			return fmt.Errorf("the kernel of %s: %w", suite, err)
		}
	}
	return addKernel(root, c.Kernel())
}

// makeMachineRoot makes a root file system for machines without a disk of their own, with some packages.
func makeMachineRoot(root string, packages []string) error {
	mirror, err := Mirror()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	// With an empty cache nothing has made it yet.
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	err = sys.Run("mmdebstrap", "--variant=minbase", "--include="+strings.Join(packages, ","),
		"--aptopt=APT::Install-Recommends \"false\"",
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*", nodeSuite, root, fmt.Sprintf("deb %s %s main", mirror, nodeSuite))
	if err != nil {
		return err
	}
	for _, dir := range []string{"boot", "host", "usr/lib/modules"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// addKernel puts a kernel that we built into a root, by its version.
func addKernel(root, kernel string) error {
	version, err := sys.Output(kernel, "--version")
	if err != nil {
		return err
	}
	return sys.Run("cp", kernel, filepath.Join(root, "boot", "linux-"+strings.TrimSpace(version)))
}

// addClientKernel takes a kernel out of its package. Its modules' folder has the version as its name.
func (c *Cache) addClientKernel(root, suite string) error {
	work := c.Path("tmp", "kernel-"+suite)
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	release, err := openRelease(suite)
	defer release.close()
	if err != nil {
		return err
	}
	if err := release.unpack("user-mode-linux", work); err != nil {
		return err
	}
	modules, err := filepath.Glob(filepath.Join(work, "usr/lib/uml/modules/*"))
	if err != nil || len(modules) != 1 {
		return fmt.Errorf("found %d folders of modules: %w", len(modules), err)
	}
	version := filepath.Base(modules[0])
	if err := sys.Run("cp", filepath.Join(work, "usr/bin/linux.uml"), filepath.Join(root, "boot", "linux-"+version)); err != nil {
		return err
	}
	return sys.Run("cp", "-a", modules[0], filepath.Join(root, "usr/lib/modules", version))
}
