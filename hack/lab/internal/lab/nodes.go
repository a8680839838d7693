package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/howdah/howdah/hack/lab/internal/cache"
	"github.com/howdah/howdah/hack/lab/internal/control"
	"github.com/howdah/howdah/hack/lab/internal/guest"
	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
	"github.com/howdah/howdah/hack/lab/internal/uml"
)

const dataSize = "40G" // Sparse.

// ensureNode starts a node's machine unless it runs.
func (l *Lab) ensureNode(plane *control.Plane, node plan.Node) error {
	if l.table().Alive(node.Name) {
		return nil
	}
	share := l.nodeDir(node, "share")
	if node.IsNode() {
		if err := plane.PrepareNode(node, share); err != nil {
			return err
		}
	}
	if err := l.fillShare(node, share); err != nil {
		return err
	}
	if err := ensureDataDisk(l.nodeDir(node, "data.img")); err != nil {
		return err
	}
	memory, err := plan.MemoryMiB(l.rec.Settings.Memory)
	if err != nil {
		return err
	}
	spec := uml.Spec{
		Kernel: (&cache.Cache{Dir: l.rec.Cache}).Kernel(), Dir: l.nodeDir(node), Base: l.rec.Base,
		Memory: memory, Name: node.Name, ClientID: l.Name + "-" + node.Name, Copy: true, Tap: node.Tap, MAC: node.MAC, MTU: plan.MTU,
	}
	args, err := spec.Args()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return l.table().Start(sys.Daemon{
		Name:  node.Name,
		Path:  self,
		Args:  args,
		Log:   l.nodeDir(node, "console.log"),
		NetNS: plan.NetNS(l.Name),
	})
}

func (l *Lab) fillShare(node plan.Node, share string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// The program of a node that was started stays as it was, even when the tool is
	// rebuilt, because building replaces the file.
	if err := sys.LinkOrCopy(self, share+"/bin/guest"); err != nil {
		return err
	}
	if err := sys.LinkOrCopy(filepath.Join(l.rec.Cache, "bin", "provisioner"), share+"/bin/provisioner"); err != nil {
		return err
	}
	if l.rec.Settings.NetworkVolumes {
		if err := sys.LinkOrCopy(filepath.Join(l.rec.Cache, "bin", "network"), share+"/bin/network"); err != nil {
			return err
		}
	}
	for _, dir := range []string{"logs", "inbox"} {
		if err := os.MkdirAll(share+"/"+dir, 0o755); err != nil {
			return err
		}
	}
	config, err := json.Marshal(guest.Config{
		Instance: l.Name, Token: l.rec.Token, Node: node, Peers: l.rec.Settings.NodeList(),
		NetworkVolumes: l.rec.Settings.NetworkVolumes, Family: l.rec.Settings.Family,
	})
	if err != nil {
		return err
	}
	return sys.WriteFile(share+"/config.json", config, 0o600)
}

// ensureDataDisk makes the disk under another name first: a disk with half a
// file system would only show when the node mounts it.
func ensureDataDisk(path string) error {
	if sys.Exists(path) {
		return nil
	}
	temp := path + ".tmp"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := sys.Run("truncate", "-s", dataSize, temp); err != nil {
		return err
	}
	if err := sys.Run("mkfs.ext4", "-q", "-F", "-m", "0", "-N", "400000",
		"-E", "lazy_itable_init=0,lazy_journal_init=0", "-J", "size=32", temp); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// KillNode stops a node as a power cut would.
func (l *Lab) KillNode(name string) error {
	node, err := l.rec.Settings.Node(name)
	if err != nil {
		return err
	}
	return l.table().Stop(node.Name, 0)
}

// StartNode starts a node that was killed or failed.
func (l *Lab) StartNode(name string) error {
	node, err := l.rec.Settings.Node(name)
	if err != nil {
		return err
	}
	plane := l.plane()
	if err := plane.Prepare(); err != nil {
		return err
	}
	if err := l.ensureNetwork(); err != nil {
		return err
	}
	if err := l.ensureNode(plane, node); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
