package kernels

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// stale is what the kernel says of what it knew and is not there for it any more.
const stale = "Stale file handle"

// duration is how long something lasts: shorter than what a user may meet, unless the environment says otherwise.
func duration(t *testing.T, variable string, unset time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return unset
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// spread mounts a share and fills it.
func (w *world) spread(t *testing.T, c *kernelClient, share string) {
	t.Helper()
	c.mount(t, "/"+share, "nconnect=2")
	w.fill(t, c, share)
}

// fill makes directories in a share that a client has mounted until each owner has two: those that are entered, with a file in
// them, are a0 and a1, those that were not entered b0 and b1; the number is that of the owner.
func (w *world) fill(t *testing.T, c *kernelClient, share string) {
	t.Helper()
	have := map[string]bool{}
	for i := 0; i < 40 && len(have) < 2*len(w.owners); i++ {
		name := fmt.Sprintf("new%d", i)
		c.must(t, "mkdir /mnt/share/"+name)
		var directories internalv1.ShareDirectoryList
		if err := w.api.List(t.Context(), &directories, client.InNamespace(kubeNamespace)); err != nil {
			t.Fatal(err)
		}
		for _, r := range directories.Items {
			if r.Spec.FileShareRef.Name != share || r.Spec.Path != name {
				continue
			}
			owner := r.Spec.DataServerRef.Name[len(fileServer)+1:]
			for _, letter := range []string{"a", "b"} {
				if !have[letter+owner] {
					have[letter+owner] = true
					c.must(t, fmt.Sprintf("mv /mnt/share/%s /mnt/share/%s%s", name, letter, owner))
					break
				}
			}
		}
	}
	if len(have) < 2*len(w.owners) {
		t.Fatalf("40 new directories are not on all data servers; there are %v", slices.Sorted(maps.Keys(have)))
	}
	c.must(t, "cd /mnt/share; for d in a*; do echo kept > $d/file; done; sync; ls")
}

// ganeshaProcess is the process of a data server's ganesha: the child of its supervisor.
func (w *world) ganeshaProcess(t *testing.T, owner int) int {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(w.owners[owner].Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(out))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// together starts a script on every client and gives a function that waits for all ends.
func (w *world) together(t *testing.T, script string) func(ctx context.Context) []result {
	t.Helper()
	var waits []func(context.Context) result
	for _, c := range w.clients {
		waits = append(waits, c.start(t, script))
	}
	return func(ctx context.Context) (out []result) {
		for _, wait := range waits {
			out = append(out, wait(ctx))
		}
		return out
	}
}

// testSlowOwner stops a data server for a while: clients of it wait, and none gets an error.
func (w *world) testSlowOwner(t *testing.T) {
	w.share("slow", 1, nil)
	for i, c := range w.clients {
		if i == 0 {
			w.spread(t, c, "slow")
		} else {
			c.mount(t, "/slow", "nconnect=2")
			c.must(t, "cat /mnt/share/a*/file")
		}
	}
	w.together(t, "sync; echo 3 > /proc/sys/vm/drop_caches")(t.Context())
	w.waitOut(t, "slow", duration(t, "HOWDAH_KERNELS_SLOW", 30*time.Second), func() {
		if err := syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}, func() {
		if err := syscall.Kill(w.ganeshaProcess(t, 0), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	})
}

// testAwayOwner cuts a data server off. Its clients' leases end meanwhile.
func (w *world) testAwayOwner(t *testing.T) {
	w.share("away", 1, nil)
	for i, c := range w.clients {
		if i == 0 {
			w.spread(t, c, "away")
		} else {
			c.mount(t, "/away", "nconnect=2")
			c.must(t, "cat /mnt/share/a*/file")
		}
	}
	w.together(t, "sync; echo 3 > /proc/sys/vm/drop_caches")(t.Context())
	w.waitOut(t, "away", duration(t, "HOWDAH_KERNELS_AWAY", 3*time.Minute),
		func() { host(t, "ip link set %s down", ownerNetwork(0)) },
		func() { host(t, "ip link set %s up", ownerNetwork(0)) })
}

// waitOut uses directories of owner 0 while it is away, and others.
func (w *world) waitOut(t *testing.T, share string, away time.Duration, leave, comeBack func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), away+2*time.Minute)
	defer cancel()
	leave()
	back := time.AfterFunc(away, comeBack)
	defer back.Stop()
	time.Sleep(2500 * time.Millisecond) // So that nothing is answered that was under way, and no mkdir is placed there (probes: 1 s, and 1 s for an answer).
	waiting := map[string]func(context.Context) []result{
		"read a file":       w.together(t, twice("cat /mnt/share/a0/file")),
		"write a file":      w.together(t, twice("echo new > /mnt/share/a0/$(uname -r) && cat /mnt/share/a0/$(uname -r)")),
		"enter a directory": w.together(t, twice("ls /mnt/share/b0 && touch /mnt/share/b0/$(uname -r)")),
		"mount a directory by itself": w.together(t, twice(fmt.Sprintf(
			"mkdir -p /mnt/own; mount -t nfs4 -o vers=4.1 %s:/%s/b0 /mnt/own && ls /mnt/own && umount /mnt/own", source(namespaceServers), share))),
		"make and remove a directory there": w.together(t, twice("d=/mnt/share/b0/d-$(uname -r); mkdir -p $d && rmdir $d")),
	}
	others := map[string]func(context.Context) []result{
		"read a file":       w.together(t, "cat /mnt/share/a1/file"),
		"enter a directory": w.together(t, "ls /mnt/share/b1"),
		"list the share":    w.together(t, "ls /mnt/share"),
		"make directories":  w.together(t, "cd /mnt/share; for i in 1 2 3 4 5 6; do mkdir other-$(uname -r)-$i || exit 1; done"),
	}
	for what, wait := range others {
		for i, r := range wait(ctx) {
			if r.code != 0 || r.took > away-3*time.Second {
				t.Errorf("Linux %s: %s of another data server ended with %d after %v: %s",
					w.clients[i].kernel, what, r.code, r.took, r.output)
			}
		}
	}
	for what, wait := range waiting {
		for i, r := range wait(ctx) {
			if r.code != 0 || r.took < away-3*time.Second {
				t.Errorf("Linux %s: %s ended with %d after %v: %s", w.clients[i].kernel, what, r.code, r.took, r.output)
			}
			t.Logf("Linux %s: %s took %v %s", w.clients[i].kernel, what, r.took.Round(time.Second), firstTry(r.output))
		}
	}
}

// twice tries a command a second time. The client's lease ends while its server stands still, and what was under way just
// then may end with an error on its return: seen as EIO from creating a file (7.2) and ENOENT from entering a directory (5.10).
func twice(command string) string {
	return fmt.Sprintf("{ %[1]s; } || { echo '(not at the first try)'; sleep 1; %[1]s; }", command)
}

// firstTry is the output of a command whose first try failed.
func firstTry(output string) string {
	if !strings.Contains(output, "(not at the first try)") {
		return ""
	}
	return output
}

// editShare changes a share as a user would, and the data servers' exports as the operator would.
func (w *world) editShare(t *testing.T, name string, rules []v1alpha1.AccessRule) {
	t.Helper()
	s := &v1alpha1.FileShare{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: kubeNamespace, Name: name}, s); err != nil {
		t.Fatal(err)
	}
	before := s.DeepCopy()
	s.Spec.Access = rules
	if err := w.api.Patch(t.Context(), s, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	for i := range w.owners {
		export := w.export(i, name)
		before := export.DeepCopy()
		export.Spec.Access = rules
		if err := w.api.Patch(t.Context(), export, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		w.eventually("the owner has loaded the export", func() bool {
			o := w.export(i, name)
			return o.Status.ObservedGeneration != nil && *o.Status.ObservedGeneration == o.Generation
		})
	}
	time.Sleep(2 * time.Second) // The namespace server watches, too.
}

// export is the object of a share on a data server.
func (w *world) export(i int, share string) *internalv1.ShareExport {
	w.t.Helper()
	o := &internalv1.ShareExport{}
	key := client.ObjectKey{Namespace: kubeNamespace, Name: naming.ShareExport(share, naming.DataServer(fileServer, int32(i)))}
	if err := w.api.Get(w.t.Context(), key, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// testAccess changes what clients may do while they have the share mounted and files of it open.
func (w *world) testAccess(t *testing.T) {
	w.share("ruled", 1, nil)
	w.spread(t, w.clients[0], "ruled")
	for _, c := range w.clients[1:] {
		c.mount(t, "/ruled", "nconnect=2")
		c.must(t, "cat /mnt/share/a*/file")
	}
	readOnly := []v1alpha1.AccessRule{{Clients: []string{clientsRange}, AccessType: v1alpha1.AccessReadOnly}}
	outsiders := []v1alpha1.AccessRule{{Clients: []string{"192.0.2.0/24"}}}
	tries := map[string]string{
		"read":  "echo 3 > /proc/sys/vm/drop_caches; cat /mnt/share/a0/file",
		"write": "echo x > /mnt/share/a0/w-$(uname -r)",
		"mkdir": "mkdir /mnt/share/m-$(uname -r) && rmdir /mnt/share/m-$(uname -r)",
		"list":  "ls /mnt/share > /dev/null",
	}
	for _, step := range []struct {
		name  string
		rules []v1alpha1.AccessRule
		says  map[string]string // unset: it works
	}{
		{"read-only", readOnly, map[string]string{"write": "Read-only file system", "mkdir": "Read-only file system"}},
		{"read-write again", everybody, nil},
		{"excluded", outsiders, map[string]string{"read": stale, "write": stale, "mkdir": stale, "list": stale}},
		{"let in again", everybody, nil},
	} {
		w.editShare(t, "ruled", step.rules)
		for what, script := range tries {
			for i, r := range w.together(t, script)(t.Context()) {
				want := step.says[what]
				if (r.code != 0) != (want != "") || !strings.Contains(r.output, want) {
					t.Errorf("%s: Linux %s: %s ended with %d: %s, want %q",
						step.name, w.clients[i].kernel, what, r.code, r.output, want)
				}
			}
		}
	}
}

// testMadeAgain deletes a share under its mounts and makes another of its name.
func (w *world) testMadeAgain(t *testing.T) {
	w.share("again", 1, nil)
	w.spread(t, w.clients[0], "again")
	for _, c := range w.clients[1:] {
		c.mount(t, "/again", "nconnect=2")
		c.must(t, "cat /mnt/share/a*/file")
	}
	w.deleteShare(t, "again")
	time.Sleep(2 * time.Second) // The namespace server watches.
	read := "echo 3 > /proc/sys/vm/drop_caches; cat /mnt/share/a0/file"
	w.expect(t, "the share is deleted: list it", "ls /mnt/share", stale)
	w.expect(t, "the share is deleted: read", read, stale)
	w.share("again", 1, nil)
	w.expect(t, "there is a share of that name again: list it through the old mount", "ls /mnt/share", stale)
	w.expect(t, "there is a share of that name again: read through the old mount", read, stale)
	w.expect(t, "there is a share of that name again: mount it again", "umount -i -l /mnt/share; mount -t nfs4 -o vers=4.1 "+
		source(namespaceServers)+":/again /mnt/share; "+read, "kept")
}

// deleteShare deletes all objects of a share at once.
func (w *world) deleteShare(t *testing.T, name string) {
	t.Helper()
	s := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: name}}
	if err := w.api.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var directories internalv1.ShareDirectoryList
	if err := w.api.List(t.Context(), &directories, client.InNamespace(kubeNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, r := range directories.Items {
		if r.Spec.FileShareRef.Name == name {
			if err := w.api.Delete(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range w.owners {
		if err := w.api.Delete(t.Context(), w.export(i, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// expect runs a script on every client; all have to say the same.
func (w *world) expect(t *testing.T, what, script, want string) {
	t.Helper()
	for i, r := range w.together(t, script)(t.Context()) {
		if !strings.Contains(r.output, want) {
			t.Errorf("Linux %s: %s: ended with %d and printed %q, want %q", w.clients[i].kernel, what, r.code, r.output, want)
		}
	}
}
