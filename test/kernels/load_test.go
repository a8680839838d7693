package kernels

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testLoad runs howdah load on all clients in the same directories, and each is the rival of all others. A ganesha is killed
// meanwhile. No client may have an error, and each client finds everything that all have written.
func (w *world) testLoad(t *testing.T) {
	w.share("loaded", 1, nil)
	var names []string
	for i, c := range w.clients {
		names = append(names, c.kernel)
		if i == 0 {
			w.spread(t, c, "loaded")
		} else {
			c.mount(t, "/loaded", "nconnect=2")
		}
		host(t, "cp %s %s", w.binary, filepath.Join(c.folder, "howdah"))
	}
	script := `rivals=
for rival in ` + strings.Join(names, " ") + `; do if [ $rival != $(uname -r) ]; then rivals="$rivals --rival $rival"; fi; done
/host/howdah load --name $(uname -r) --for 20s --do files,records,opens,lock,random,tree --bytes 8Mi --stop-wait 2m --contest both $rivals /mnt/share/a0 /mnt/share/a1`
	ended := w.together(t, script)
	time.Sleep(8 * time.Second)
	if err := syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, r := range ended(t.Context()) {
		t.Logf("Linux %s:\n%s", w.clients[i].kernel, r.output)
		if r.code != 0 {
			t.Errorf("Linux %s: the load ended with %d", w.clients[i].kernel, r.code)
		}
	}
	// What a client has cached of a directory is not what others see there.
	for i, r := range w.together(t, "echo 3 > /proc/sys/vm/drop_caches; /host/howdah load --audit /mnt/share/a0 /mnt/share/a1")(t.Context()) {
		if r.code != 0 {
			t.Errorf("Linux %s: the audit ended with %d:\n%s", w.clients[i].kernel, r.code, r.output)
		}
	}
	first := w.clients[0]
	if r := first.run(t, fmt.Sprintf("rm /mnt/share/a0/%[1]s/records && /host/howdah load --audit /mnt/share/a0 /mnt/share/a1", first.kernel)); r.code == 0 {
		t.Errorf("Linux %s: an audit misses no file that was removed:\n%s", first.kernel, r.output)
	}
}
