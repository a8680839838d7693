package cache

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

const (
	// kernelSuite is where the kernel's source comes from. Before Linux 6.16
	// User-mode Linux can catch system calls by ptrace alone, at twice the price of
	// seccomp. Debian's own build of this kernel has neither nftables nor legacy
	// iptables for IPv4, so kube-proxy can't run on it.
	kernelSuite  = "forky"
	kernelRecipe = "1"
)

// Kernel is the User-mode Linux that nodes run, a program of the host.
func (c *Cache) Kernel() string {
	return c.Path("kernel", "linux.uml")
}

// BuildKernel compiles the kernel from Debian's source with the nodes' settings.
func (c *Cache) BuildKernel() error {
	settings, err := hashFiles(c.kernelSettings())
	if err != nil {
		return err
	}
	return c.ensure(product{
		name:  "kernel",
		files: []string{c.Kernel()},
		stamp: hash(kernelSuite, kernelRecipe, settings),
		make:  c.makeKernel,
	})
}

func (c *Cache) kernelSettings() string {
	return filepath.Join(c.Source, "kernel", "config")
}

func (c *Cache) makeKernel() error {
	work := c.Path("tmp", "kernel")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := fetchKernelSource(work); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(work, "usr/src/linux-source-*.tar.xz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("the kernel's source: found %d archives: %w", len(archives), err)
	}
	if err := sys.Run("tar", "-xJf", archives[0], "-C", work); err != nil {
		return err
	}
	tree := strings.TrimSuffix(filepath.Join(work, filepath.Base(archives[0])), ".tar.xz")
	steps := [][]string{
		{"make", "defconfig"},
		{"scripts/kconfig/merge_config.sh", "-m", ".config", c.kernelSettings()},
		{"make", "olddefconfig"},
	}
	for _, step := range steps {
		if err := c.inKernelTree(tree, step...); err != nil {
			return err
		}
	}
	if err := checkSettings(c.kernelSettings(), filepath.Join(tree, ".config")); err != nil {
		return err
	}
	if err := c.inKernelTree(tree, "nice", "make", fmt.Sprintf("-j%d", runtime.NumCPU()+1), "linux"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Kernel()), 0o755); err != nil {
		return err
	}
	return sys.Run("strip", "-o", c.Kernel(), filepath.Join(tree, "linux"))
}

// kernelPackages are Debian's packages with a kernel's source, one for each version.
var kernelPackages = regexp.MustCompile(`^linux-source-[0-9.]+$`)

func fetchKernelSource(dir string) error {
	release, err := openRelease(kernelSuite)
	defer release.close()
	if err != nil {
		return err
	}
	names, err := release.packages(kernelPackages)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no package linux-source-*", kernelSuite)
	}
	return release.unpack(names[len(names)-1], dir)
}

func (c *Cache) inKernelTree(tree string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "ARCH=um", "KBUILD_BUILD_USER=howdah", "KBUILD_BUILD_HOST=lab")
	_, err := sys.Capture(cmd)
	return err
}

// setting is a line of a kernel's configuration, in either of its forms.
var setting = regexp.MustCompile(`^(?:(CONFIG_\w+)=.*|# (CONFIG_\w+) is not set)$`)

// checkSettings finds requested settings that the kernel's configuration did not take: it
// drops without a word what depends on something that is off, or was renamed.
func checkSettings(wanted, got string) error {
	requested, err := os.ReadFile(wanted)
	if err != nil {
		return err
	}
	config, err := os.ReadFile(got)
	if err != nil {
		return err
	}
	have := map[string]string{}
	for line := range strings.Lines(string(config)) {
		line = strings.TrimSpace(line)
		if match := setting.FindStringSubmatch(line); match != nil {
			have[match[1]+match[2]] = line
		}
	}
	var lost []string
	for line := range strings.Lines(string(requested)) {
		line = strings.TrimSpace(line)
		match := setting.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		// What a configuration does not mention is off.
		is, mentioned := have[match[1]+match[2]]
		if mentioned && is != line || !mentioned && match[1] != "" {
			lost = append(lost, line)
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("this kernel does not take these settings of %s: %s", wanted, strings.Join(lost, ", "))
	}
	return nil
}
