package cache

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/guest"
	"github.com/howdah/howdah/hack/lab/internal/image"
	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
	"github.com/howdah/howdah/hack/lab/internal/uml"
)

// CoreDNSImage is in every node from the start, as guest.PauseImage is.
const CoreDNSImage = "docker.io/howdah-lab/coredns:v1.15.0"

const (
	baseSize   = "24G" // Sparse: it takes what is in it.
	bakeMemory = 1200
	// A minute, on a machine that does nothing else.
	bakeLimit = 15 * time.Minute
)

// nodePrograms are copied into the base disk.
var nodePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "hyperkube", "loader"}

// Base makes the disk that all nodes start from and returns its path. The name
// says what is in it: labs that run keep the one they started with.
func (c *Cache) Base() (string, error) {
	var parts []string
	for _, name := range []string{"hyperkube", "containerd", "coredns", "pause", "loader", "rootfs"} {
		stamp, err := os.ReadFile(c.Path("stamps", name))
		if err != nil {
			return "", err
		}
		parts = append(parts, string(stamp))
	}
	stamp := hash(append(parts, baseSize, recipe, labInit)...)
	path := c.Path("base-" + stamp[:12] + ".img")
	return path, c.ensure(product{
		// Disks of two checkouts are there side by side.
		name:  "base-disk-" + stamp[:12],
		files: []string{path},
		stamp: stamp,
		make:  func() error { return c.bake(path) },
	})
}

// systemImages assembles the images of the cluster's own pods into the store.
func (c *Cache) systemImages(store string) (all []image.Parts, err error) {
	for _, spec := range []image.Spec{
		{Name: guest.PauseImage, Files: map[string]string{"pause": c.Bin("pause")}, Entrypoint: []string{"/pause"}, User: "65535"},
		{Name: CoreDNSImage, Files: map[string]string{"coredns": c.Bin("coredns")}, Entrypoint: []string{"/coredns"}},
	} {
		parts, err := image.Make(spec, store)
		if err != nil {
			return nil, err
		}
		all = append(all, parts)
	}
	return all, nil
}

// bake makes a file system out of the root folder and boots it once, so that
// containerd itself imports the images, with the kernel that will use them.
func (c *Cache) bake(path string) error {
	work := c.Path("tmp", "bake")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	share := filepath.Join(work, "share")
	if err := c.fillShare(share); err != nil {
		return err
	}
	if err := sys.WriteFile(filepath.Join(c.RootDir(), "sbin/lab-init"), []byte(labInit), 0o755); err != nil {
		return err
	}
	disk := filepath.Join(work, "base.img")
	if err := sys.Run("truncate", "-s", baseSize, disk); err != nil {
		return err
	}
	// With lazy initialisation every node would spend its first minute zeroing
	// tables into its copy-on-write layer.
	if err := sys.Run("mkfs.ext4", "-q", "-F", "-d", c.RootDir(), "-N", "400000", "-m", "0",
		"-E", "lazy_itable_init=0,lazy_journal_init=0", "-J", "size=32", disk); err != nil {
		return err
	}
	spec := uml.Spec{Kernel: c.Kernel(), Dir: work, Base: disk, Memory: bakeMemory, Name: "bake"}
	console := filepath.Join(work, "console.log")
	if err := runToEnd(spec, console); err != nil {
		return err
	}
	if !sys.Exists(filepath.Join(share, "baked")) {
		text, _ := os.ReadFile(console)
		logged, _ := os.ReadFile(filepath.Join(share, "logs", "containerd.log"))
		return fmt.Errorf("the node that prepares the disk failed; its console:\n%s\ncontainerd:\n%s", text, logged)
	}
	if err := os.Rename(disk, path); err != nil {
		return err
	}
	return c.dropOldBases(path)
}

// dropOldBases removes base disks but the current one. A lab that runs holds the
// file open; one that is stopped can't start nodes from it any more, so disks that
// a lab has on record stay.
func (c *Cache) dropOldBases(current string) error {
	disks, err := filepath.Glob(c.Path("base-*.img"))
	if err != nil {
		return err
	}
	for _, disk := range disks {
		// Another `up` may be about to use a disk of a moment ago.
		info, err := os.Stat(disk)
		if err != nil || disk == current || time.Since(info.ModTime()) < time.Hour || c.BaseInUse(disk) {
			continue
		}
		if err := os.Remove(disk); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) fillShare(share string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	files := map[string]string{filepath.Join(share, "bin", "guest"): self}
	for _, name := range nodePrograms {
		files[filepath.Join(share, "programs", name)] = c.Bin(name)
	}
	store := c.Path("images", "parts")
	images, err := c.systemImages(store)
	if err != nil {
		return err
	}
	for _, parts := range images {
		if err := parts.Place(store, filepath.Join(share, "inbox", parts.ID())); err != nil {
			return err
		}
	}
	for to, from := range files {
		if err := sys.LinkOrCopy(from, to); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(share, "logs"), 0o755); err != nil {
		return err
	}
	config, err := json.Marshal(guest.Config{Instance: "bake", Bake: true, Node: plan.Node{Name: "bake"}})
	if err != nil {
		return err
	}
	return sys.WriteFile(filepath.Join(share, "config.json"), config, 0o644)
}

// runToEnd runs a machine until it switches itself off.
func runToEnd(spec uml.Spec, console string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args, err := spec.Args()
	if err != nil {
		return err
	}
	log, err := os.Create(console)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(bakeLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	_ = cmd.Wait() // UML's exit status says nothing about the guest; the caller looks for its result.
	return nil
}
