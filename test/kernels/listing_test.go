package kernels

import (
	"strings"
	"testing"
)

const manyDirectories = 1000

// testListing lists many directories with all that ls shows: nothing is mounted for it.
func (w *world) testListing(t *testing.T) {
	w.share("many", 1, nil)
	w.clients[0].mount(t, "/many", "nconnect=2")
	made := w.clients[0].run(t, `python3 -c "
import os
for i in range(1000): os.mkdir('/mnt/share/d%04d' % i)"`)
	if made.code != 0 {
		t.Fatal(made.output)
	}
	t.Logf("Linux %s made %d directories in %v", w.clients[0].kernel, manyDirectories, made.took)
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		if c != w.clients[0] {
			c.mount(t, "/many", "nconnect=2")
		}
		for _, what := range []string{"the first time", "again"} {
			r := c.run(t, "ls -la /mnt/share > /tmp/list; code=$?; grep -c ' d[0-9]*$' /tmp/list; exit $code")
			if r.code != 0 || r.output != "1000" {
				t.Errorf("ls -la ended with %d and lists %s directories", r.code, r.output)
			}
			t.Logf("ls -la of %d directories %s: %v", manyDirectories, what, r.took)
		}
		if mounts := strings.Count(c.must(t, "cat /proc/mounts"), " /mnt/share"); mounts != 1 {
			t.Errorf("there are %d mounts after ls -la, want the share's alone", mounts)
		}
		t.Logf("what is not entered looks like this:\n%s", c.must(t, "ls -la /mnt/share | sed -n '2p;4p'"))
	})
}

// testRemoval is the way out for what is busy: Linux unmounts what was not used for some time, and rmdir enters nothing.
func (w *world) testRemoval(t *testing.T) {
	w.share("removal", 1, nil)
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		c.must(t, "echo 2 > /proc/sys/fs/nfs/nfs_mountpoint_timeout")
		t.Cleanup(func() { c.must(t, "echo 500 > /proc/sys/fs/nfs/nfs_mountpoint_timeout") })
		c.mount(t, "/removal", "nconnect=2")
		c.must(t, `cd /mnt/share; mkdir a-$(uname -r); touch a-$(uname -r)/f; ! rm -rf a-$(uname -r); test -z "$(ls -A a-$(uname -r))"`)
		c.must(t, `cd /mnt/share; for i in $(seq 60); do rmdir a-$(uname -r) && exit 0; sleep 1; done; exit 1`)
		c.must(t, `cd /mnt/share; mkdir b-$(uname -r); touch b-$(uname -r)/f; rm b-$(uname -r)/f; umount -i /mnt/share/b-$(uname -r); rmdir b-$(uname -r)`)
	})
}
