package kernels

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// testLeftWhileDown gives a directory of a data server that is down to another one, as a move with Ceph does, while clients wait to enter it.
// The first one stays down until they are there.
func (w *world) testLeftWhileDown(t *testing.T) {
	w.share("left", 1, nil)
	for i, c := range w.clients {
		if i == 0 {
			w.spread(t, c, "left")
			c.must(t, fmt.Sprintf(`mkdir -p /tmp/direct && mount -t nfs4 -o vers=4.1 %s:%s /tmp/direct &&
				mkdir -p -m 777 /tmp/direct/b0 && echo there >/tmp/direct/b0/where && umount /tmp/direct`, source(ownerAddress(1)), naming.ExportPseudo("left", 0)))
		} else {
			c.mount(t, "/left", "nconnect=2")
		}
	}
	w.together(t, "sync; echo 3 > /proc/sys/vm/drop_caches")(t.Context())
	if err := syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGCONT) }()
	time.Sleep(5 * time.Second) // So that the namespace servers know it.
	waits := w.together(t, "cat /mnt/share/b0/where")
	time.Sleep(5 * time.Second)
	directory := &internalv1.ShareDirectory{}
	w.edit(t, directory, naming.Directory(fileServer, "left", "b0"), func() {
		directory.Spec.DataServerRef.Name, directory.Spec.Identity = naming.DataServer(fileServer, 1), string(uuid.NewUUID())
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, r := range waits(ctx) {
		// The kernel asks again after up to 6 s by then.
		if r.code != 0 || strings.TrimSpace(r.output) != "there" || r.took > 25*time.Second {
			t.Errorf("Linux %s: ended with %d after %v: %s", w.clients[i].kernel, r.code, r.took, r.output)
		}
		t.Logf("Linux %s: there after %v", w.clients[i].kernel, r.took.Round(100*time.Millisecond))
	}
	for _, c := range w.clients {
		if mounts := c.must(t, "grep ' /mnt/share/b0 ' /proc/mounts"); !strings.HasPrefix(mounts, source(ownerAddress(1))+":") {
			t.Errorf("Linux %s has mounted %s", c.kernel, mounts)
		}
	}
}
