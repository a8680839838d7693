package kernels

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// writeOpen appends to a file that stays open, and has a working directory there, until /tmp/stop exists.
const writeOpen = `rm -f /tmp/stop; cd /mnt/share/a0 && exec 3>open || exit 1
i=0; while ! test -e /tmp/stop; do echo line >&3 || exit 2; test "$(cat where)" = 0 || exit 3; i=$((i+1)); sleep 0.1; done
exec 3>&- || exit 4; test $(wc -l <open) = $i || exit 5; echo $i`

// testFollow gives a directory to another data server while both serve it, as with Ceph, in the way in which clients follow
// (placement.Follow). What is at the two owners differs here, so that it shows which one a client uses.
func (w *world) testFollow(t *testing.T) {
	w.share("followed", 1, nil)
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		give := func(owner int) {
			directory := &internalv1.ShareDirectory{}
			w.edit(t, directory, naming.Directory(fileServer, "followed", "a0"), func() {
				directory.Spec.DataServerRef.Name, directory.Spec.Identity = naming.DataServer(fileServer, int32(owner)), string(uuid.NewUUID())
			})
		}
		// The options that shares recommend (status.mount.options).
		c.mount(t, "/followed", "nconnect=2,acdirmin=1,acdirmax=2")
		if c == w.clients[0] {
			w.fill(t, c, "followed")
			for owner := range w.owners {
				c.must(t, fmt.Sprintf(`mkdir -p /tmp/direct && mount -t nfs4 -o vers=4.1 %s:%s /tmp/direct &&
					mkdir -p -m 777 /tmp/direct/a0 && echo %d >/tmp/direct/a0/where && umount /tmp/direct`, source(ownerAddress(owner)), naming.ExportPseudo("followed", 0), owner))
			}
		}
		if got := c.must(t, "cat /mnt/share/a0/where"); strings.TrimSpace(got) != "0" {
			t.Fatalf("before: owner %s", got)
		}
		stays := c.start(t, writeOpen)
		c.must(t, "for try in $(seq 600); do test -s /mnt/share/a0/open && exit 0; sleep 0.1; done; exit 1")
		give(1)
		defer give(0)
		// The other owner, within seconds; without an error meanwhile.
		took := c.must(t, `start=$(date +%s%N); while owner=$(cat /mnt/share/a0/where) || exit 1; test $owner = 0; do
			test $(($(date +%s%N) - start)) -lt 30000000000 || exit 2; sleep 0.1; done; echo $((($(date +%s%N) - start) / 1000000)) ms`)
		if mounts := c.must(t, "grep ' /mnt/share/a0 ' /proc/mounts"); !strings.HasPrefix(mounts, source(ownerAddress(1))+":") || strings.Contains(strings.TrimSpace(mounts), "\n") {
			t.Errorf("mounted:\n%s", mounts)
		}
		c.must(t, "sleep 3; touch /tmp/stop")
		if r := stays(context.Background()); r.code != 0 {
			t.Errorf("what was open when the owner changed ended with %d: %s", r.code, r.output)
		} else {
			t.Logf("it followed after %s, with %s lines written to what was open", strings.TrimSpace(took), strings.TrimSpace(r.output))
		}
		c.must(t, "cd /; umount /mnt/share/a0")
	})
}
