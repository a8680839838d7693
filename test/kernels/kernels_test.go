package kernels

import (
	"fmt"
	"testing"
)

// TestKernels is one test, because all its parts share the world: starting it takes longer than most of them.
func TestKernels(t *testing.T) {
	w := newWorld(t, small, func(kernels []string) []string { return kernels })
	t.Run("a directory is used by the command after the one that made it", w.testFreshDirectories)
	t.Run("a directory is entered by many at the same moment", w.testFirstEntries)
	t.Run("a directory of the namespace is one to all tools", w.testDirectories)
	t.Run("a directory is looked at and not entered", w.testUnentered)
	t.Run("everyday tools do what they do on a local disk", w.testEveryday)
	t.Run("many directories are listed", w.testListing)
	t.Run("what was entered is removed", w.testRemoval)
	t.Run("clients wait for an owner that answers late", w.testSlowOwner)
	t.Run("clients wait for an owner that is away", w.testAwayOwner)
	t.Run("access rules change under mounts", w.testAccess)
	t.Run("a share is made again under mounts", w.testMadeAgain)
	t.Run("howdah load finds nothing wrong while a ganesha is killed", w.testLoad)
	t.Run("a data server is replaced on purpose", w.testReplacedServer)
	t.Run("a directory moves to another data server", w.testMoves)
	t.Run("clients follow a directory that both owners serve", w.testFollow)
	t.Run("a directory leaves a data server that clients wait for", w.testLeftWhileDown)
	t.Run("clients go on when their namespace server is lost", w.testLostNamespaceServer)
	t.Run("a data server has two addresses", w.testTrunks)
	t.Run("a directory that many clients enter is found hot", w.testFoundHot)
	t.Run("clients wait for a share that its data server can not serve yet", w.testAwaitedShare)
	t.Run("clients sleep", w.testSleep)
	t.Run("a lock is taken while its holder sleeps", w.testTakenLock)
}

// onEveryKernel runs a part of the tests on each client.
func (w *world) onEveryKernel(t *testing.T, test func(t *testing.T, c *kernelClient)) {
	for _, c := range w.clients {
		t.Run("Linux "+c.kernel, func(t *testing.T) { test(t, c) })
	}
}

// mount mounts a path of the namespace at /mnt/share, until the test ends.
func (c *kernelClient) mount(t *testing.T, path, options string) {
	t.Helper()
	c.must(t, fmt.Sprintf("mount -t nfs4 -o vers=4.1,%s %s:%s /mnt/share", options, source(namespaceServers), path))
	t.Cleanup(func() {
		if r := c.run(t, "cd /; umount -i -l /mnt/share"); r.code != 0 {
			t.Errorf("unmounting: %s", r.output)
		}
	})
}
