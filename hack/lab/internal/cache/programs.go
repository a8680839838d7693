package cache

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

const (
	kubernetesVersion = "v1.36.3"
	containerdVersion = "v2.4.2"
	// kubernetesTags leave out tracing code and test helpers: 17 MB less.
	kubernetesTags = "grpcnotrace,notest"
	// containerdTags leave out what a node has no use for.
	containerdTags = "no_btrfs no_devmapper no_zfs no_tracing"
)

// Names under which the one Kubernetes binary is called.
var kubernetesNames = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}

// Assets builds what envtest needs and returns the folder.
func (c *Cache) Assets() (string, error) {
	for _, p := range []func() error{c.kubernetes, c.etcd} {
		if err := p(); err != nil {
			return "", err
		}
	}
	dir := c.Path("assets")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubectl", "etcd"} {
		if err := relink("../bin/"+name, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Programs builds what every lab runs.
func (c *Cache) Programs() error {
	if _, err := c.Assets(); err != nil {
		return err
	}
	for _, p := range []func() error{c.containerd, c.loader, c.coredns, c.provisioner, c.pause} {
		if err := p(); err != nil {
			return err
		}
	}
	return nil
}

// NetworkPrograms builds what only a lab with network volumes runs.
func (c *Cache) NetworkPrograms() error {
	for _, p := range []func() error{c.network, c.attacher} {
		if err := p(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) kubernetes() error {
	const pkg = "k8s.io/component-base/version"
	flags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=36 -X %[1]s.gitTreeState=clean",
		pkg, kubernetesVersion)
	if err := c.goBuild("kubernetes", "hyperkube", "-tags", kubernetesTags, "-ldflags", flags); err != nil {
		return err
	}
	for _, name := range kubernetesNames {
		if err := relink("hyperkube", c.Bin(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) etcd() error {
	return c.goBuild("etcd", "etcd", "-ldflags", "-s -w")
}

// Etcdutl builds what makes a data directory of a copy of etcd's database.
func (c *Cache) Etcdutl() error {
	return c.goBuild("etcdutl", "etcdutl", "-ldflags", "-s -w")
}

func (c *Cache) coredns() error {
	return c.goBuild("coredns", "coredns", "-ldflags", "-s -w")
}

func (c *Cache) provisioner() error {
	// The same tags, or client-go would be compiled twice.
	return c.goBuild("provisioner", "provisioner", "-tags", kubernetesTags, "-ldflags", "-s -w")
}

// network makes and serves the volumes that every node can use, and is their CSI driver.
func (c *Cache) network() error {
	return c.goBuild("network", "network", "-tags", kubernetesTags, "-ldflags", "-s -w")
}

// attacher is Kubernetes' own: it calls the CSI driver for each VolumeAttachment.
func (c *Cache) attacher() error {
	return c.goBuildPackage("attacher", "csi-attacher", "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher", "-ldflags", "-s -w")
}

func (c *Cache) loader() error {
	return c.goBuild("loader", "loader", "-tags", containerdTags, "-ldflags", "-s -w")
}

func (c *Cache) pause() error {
	return c.goBuild("pause", "pause", "-ldflags", "-s -w")
}

// goBuild builds the module in a folder of hack/lab into bin/name.
func (c *Cache) goBuild(folder, name string, flags ...string) error {
	return c.goBuildPackage(folder, name, ".", flags...)
}

// goBuildPackage builds a package that the module in a folder of hack/lab names, with the versions of that module.
func (c *Cache) goBuildPackage(folder, name, pkg string, flags ...string) error {
	dir := filepath.Join(c.Source, folder)
	var sources []string
	for _, pattern := range []string{"*.go", "go.mod", "go.sum"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		sources = append(sources, found...)
	}
	sum, err := hashFiles(sources...)
	if err != nil {
		return err
	}
	return c.ensure(product{
		name:  name,
		files: []string{c.Bin(name)},
		stamp: hash(append([]string{sum}, flags...)...),
		make: func() error {
			c.pace.expect(countPackages(dir, pkg, flags))
			args := append([]string{"build", "-v", "-trimpath", "-o", c.Bin(name)}, flags...)
			return c.goRun(dir, nil, append(args, pkg)...)
		},
	})
}

func (c *Cache) containerd() error {
	names := []string{"containerd", "ctr", "containerd-shim-runc-v2"}
	args := []string{"install", "-v", "-trimpath", "-ldflags", "-s -w", "-tags", containerdTags}
	var files []string
	for _, name := range names {
		args = append(args, "github.com/containerd/containerd/v2/cmd/"+name+"@"+containerdVersion)
		files = append(files, c.Bin(name))
	}
	return c.ensure(product{
		name:  "containerd",
		files: files,
		stamp: hash(args...),
		make: func() error {
			// Outside every module, so that no go.mod has a say in containerd's build.
			return c.goRun("/", []string{"GOBIN=" + c.Path("bin")}, args...)
		},
	})
}

// goRun runs the Go tool; static programs run in any root file system.
func (c *Cache) goRun(dir string, env []string, args ...string) error {
	if err := os.MkdirAll(c.Path("bin"), 0o755); err != nil {
		return err
	}
	run := func(args []string) error {
		cmd := exec.Command("nice", append([]string{"go"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"), env...)
		_, err := sys.Capture(cmd)
		return err
	}
	err := run(args)
	if i := slices.Index(args, "-v"); err != nil && i >= 0 {
		// Once more without the names of packages, among which the error is lost.
		return run(slices.Delete(slices.Clone(args), i, i+1))
	}
	return err
}

// countPackages is how many packages a build may have to compile, 0 if Go can't tell.
func countPackages(dir, pkg string, flags []string) int {
	cmd := exec.Command("go", append(append([]string{"list", "-deps"}, flags...), pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	out, err := sys.Capture(cmd)
	if err != nil {
		return 0
	}
	return strings.Count(out, "\n")
}

func relink(target, path string) error {
	if current, err := os.Readlink(path); err == nil && current == target {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}
