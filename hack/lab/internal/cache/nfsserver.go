package cache

import "path/filepath"

// nfsServerPackages are what a machine needs whose kernel serves NFS.
var nfsServerPackages = []string{"e2fsprogs", "iproute2", "kmod", "nfs-kernel-server", "procps"}

// nfsServerRecipe counts up when the steps below change in a way the stamp can't see.
const nfsServerRecipe = "1"

// NFSServer makes the root file system of a machine whose kernel serves NFS (make bench-model measures Howdah beside it), and returns the
// folder. It has Debian's own build of the nodes' kernel as /boot/linux-VERSION, with NFSD and all other modules.
func (c *Cache) NFSServer() (string, error) {
	root := c.Path("roots", "nfs-server")
	return root, c.ensure(product{
		name:  "root-nfs-server",
		files: []string{filepath.Join(root, "boot")},
		stamp: hash(append([]string{nodeSuite, kernelSuite, nfsServerRecipe}, nfsServerPackages...)...),
		make: func() error {
			if err := makeMachineRoot(root, nfsServerPackages); err != nil {
				return err
			}
			return c.addClientKernel(root, kernelSuite)
		},
	})
}
