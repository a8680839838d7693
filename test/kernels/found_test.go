package kernels

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

const (
	foundShare = "found"
	foundMount = "/mnt/" + foundShare
	// foundClients make a directory hot, and foundServers then serve it. Each machine is a client with an address of its own; with foundMachines each data
	// server gets as many.
	foundClients, foundServers = 2, 3
	foundMachines              = foundClients * foundServers
	foundFiles, foundBytes     = 24, 96 << 10
	// foundLists is how often each client lists the directory above, foundListed after it has changed: the kernel looks every two seconds.
	foundLists  = 3
	foundListed = 2200 * time.Millisecond
)

// testFoundHot has clients enter directories of a share that looks for hot ones (spec.findHotDirectories), one client after the other. Data servers have
// one local file system below them that stands for CephFS (oneStorage), and there is one more of them for as long.
func (w *world) testFoundHot(t *testing.T) {
	machines := w.foundMachines(t)
	w.addOwner(t)
	defer w.dropOwner(t)
	flats := map[string]string{}
	for _, name := range []string{"flat0", "flat1"} {
		flats[name] = w.oneStorage(t, foundShare, name)
		layFlat(t, flats[name], foundFiles, foundBytes)
	}
	w.shareStorage(t, true)
	defer w.shareStorage(t, false)
	w.share(foundShare, 1, func(spec *v1alpha1.FileShareSpec) {
		spec.FindHotDirectories = v1alpha1.HotDirectorySearch{Clients: foundClients, DataServers: foundServers}
	})
	defer w.deleteShare(t, foundShare)
	defer func() {
		for _, c := range machines {
			if r := c.run(t, "cd /; ! mountpoint -q "+foundMount+" || umount -i -R "+foundMount); r.code != 0 {
				t.Errorf("Linux %s: unmounting: %s", c.kernel, r.output)
			}
		}
	}()
	t.Run("who lists the directory above does not count", func(t *testing.T) {
		for _, c := range machines {
			c.mountFound(t)
		}
		for name := range flats {
			w.eventually(name+" has an owner", func() bool { return w.directoryOwner(t, foundShare, name) != "" })
		}
		// While others make directories beside it, Linux asks again for each list.
		for i := range foundLists {
			machines[0].must(t, fmt.Sprintf("mkdir %s/beside%d", foundMount, i))
			time.Sleep(foundListed)
			all := *w
			all.clients = machines
			for j, r := range all.together(t, fmt.Sprintf("ls -la %s", foundMount))(t.Context()) {
				if r.code != 0 || !strings.Contains(r.output, " flat0\n") || !strings.Contains(r.output, fmt.Sprintf(" beside%d\n", i)) {
					t.Fatalf("Linux %s: ls ended with %d: %s", machines[j].kernel, r.code, r.output)
				}
			}
		}
		for name := range flats {
			w.notFound(t, name)
		}
	})
	first, second := machines, slices.Clone(machines)
	slices.Reverse(second[:foundMachines-2])
	t.Run("who comes when it is hot gets other data servers", func(t *testing.T) {
		f := w.findHot(t, "flat0", first)
		f.enter(t, first[foundClients:])
		f.even(t)
		f.use(t, flats["flat0"], first)
	})
	// The other namespace server has sent no client there, and knows from the ShareDirectory that the directory is hot.
	t.Run("namespace servers have one record", func(t *testing.T) {
		f := w.findHot(t, "flat1", second)
		f.enter(t, second[foundClients:foundMachines-2])
		lead(t, 1)
		defer lead(t, 0)
		last := second[foundMachines-2:]
		for _, c := range last {
			c.must(t, "umount -i -R "+foundMount)
			c.mountFound(t)
			if !hasConnection(t, 1, c) {
				t.Fatalf("%s, Linux %s, has no connection to the other namespace server", c.name, c.kernel)
			}
		}
		time.Sleep(time.Second) // That one watches.
		f.enter(t, last)
		if a, b := f.from[last[0]], f.from[last[1]]; a == b {
			t.Errorf("another namespace server sends both clients to %s", a)
		}
		f.use(t, flats["flat1"], second)
	})
}

// foundMachines are the client machines, with some more of the newest kernel, until the test ends.
func (w *world) foundMachines(t *testing.T) []*kernelClient {
	t.Helper()
	machines := slices.Clone(w.clients[:min(len(w.clients), foundMachines-2)])
	newest := w.clients[len(w.clients)-1].kernel
	for i := len(w.clients); len(machines) < foundMachines; i++ {
		layClientDevice(t, i)
		machines = append(machines, bootClient(t, w.root, newest, i, w.scratch, small.clientMemory))
	}
	return machines
}

// addOwner adds a data server, and dropOwner takes it away again.
func (w *world) addOwner(t *testing.T) {
	t.Helper()
	i := len(w.owners)
	layServerNetwork(t, ownerNetwork(i), ownerAddress(i))
	w.owners = append(w.owners, nil)
	w.declareOwner(i)
	w.makeFolder(i)
	w.startOwner(i)
	w.ownerKnows(t, i) // Its root is there by then, to mount something in.
}

func (w *world) dropOwner(t *testing.T) {
	t.Helper()
	i := len(w.owners) - 1
	_ = w.owners[i].Process.Kill()
	w.owners = w.owners[:i]
	server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: naming.DataServer(fileServer, int32(i))}}
	if err := w.api.Delete(t.Context(), server); err != nil {
		t.Fatal(err)
	}
}

func (c *kernelClient) mountFound(t *testing.T) {
	t.Helper()
	c.must(t, fmt.Sprintf("mkdir -p %[1]s; mount -t nfs4 -o vers=4.1,%[2]s,nconnect=2 %[3]s:/%[4]s %[1]s", foundMount, recommended, source(namespaceServers), foundShare))
}

// hasConnection reports whether a client has a connection to a namespace server.
func hasConnection(t *testing.T, i int, c *kernelClient) bool {
	t.Helper()
	out, err := exec.Command("ip", "netns", "exec", namespaceNetwork(i), "ss", "-tnH", "state", "established", "src", net.JoinHostPort(namespaceAddress(i), "2049"), "dst", source(c.address)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return len(out) > 0
}

// notFound fails if a directory is hot.
func (w *world) notFound(t *testing.T, directory string) {
	t.Helper()
	time.Sleep(time.Second) // It is recorded while the client gets its answer.
	if d := w.directoryOf(t, foundShare, directory); d == nil || d.Status.HotTime != nil {
		t.Fatalf("%s: %+v, want it not hot", directory, d)
	}
}

// found is a directory that is hot.
type found struct {
	*world
	directory, owner string
	// from is the data server that each client has it from.
	from map[*kernelClient]string
}

// findHot has as many clients enter a directory as make it hot.
func (w *world) findHot(t *testing.T, directory string, machines []*kernelClient) *found {
	t.Helper()
	f := &found{world: w, directory: directory, owner: w.directoryOwner(t, foundShare, directory), from: map[*kernelClient]string{}}
	f.enter(t, machines[:foundClients-1])
	w.notFound(t, directory)
	f.enter(t, machines[foundClients-1:foundClients])
	began := time.Now()
	w.eventually(directory+" is found hot", func() bool { return w.directoryOf(t, foundShare, directory).Status.HotTime != nil })
	t.Logf("%s is recorded as hot %v after client %d is there", directory, time.Since(began).Round(10*time.Millisecond), foundClients)
	for _, c := range machines[:foundClients] {
		if f.from[c] != f.owner {
			t.Errorf("Linux %s came before %s was hot, and has it from %s, not from its owner, %s", c.kernel, directory, f.from[c], f.owner)
		}
	}
	return f
}

// enter has clients enter the directory, one after the other. They list nothing: a data server that has listed a directory
// of a volume keeps the names for a minute, because no one else changes them there.
func (f *found) enter(t *testing.T, machines []*kernelClient) {
	t.Helper()
	for _, c := range machines {
		c.must(t, fmt.Sprintf("head -c 1 %s/%s/0 > /dev/null", foundMount, f.directory))
		f.from[c] = f.mountedFrom(t, c)
		t.Logf("%s, %s, Linux %s: from %s", f.directory, c.name, c.kernel, f.from[c])
	}
}

func (f *found) mountedFrom(t *testing.T, c *kernelClient) string {
	t.Helper()
	address, _, _ := strings.Cut(c.must(t, fmt.Sprintf("grep ' %s/%s ' /proc/mounts", foundMount, f.directory)), ":/")
	return strings.Trim(address, "[]")
}

// even fails unless each data server has as many clients: those that came before are at the owner, and the others are even.
func (f *found) even(t *testing.T) {
	t.Helper()
	count := map[string]int{}
	for _, address := range f.from {
		count[address]++
	}
	for i := range f.owners {
		if n := count[ownerAddress(i)]; n != foundClients {
			t.Errorf("%d clients have %s from %s, want %d; all: %v", n, f.directory, ownerAddress(i), foundClients, count)
		}
	}
}

// use has each client read everything in the directory and make something; then each reads what the others made, by its own data server.
func (f *found) use(t *testing.T, disk string, machines []*kernelClient) {
	t.Helper()
	whole := sha256.New()
	var names, made []string
	for i := range foundFiles {
		names = append(names, strconv.Itoa(i))
		content, err := os.ReadFile(filepath.Join(disk, names[i]))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = whole.Write(content) // It never fails.
	}
	enter := fmt.Sprintf("set -e; cd %s/%s; ", foundMount, f.directory)
	for _, c := range machines {
		if got := c.must(t, enter+"echo 3 > /proc/sys/vm/drop_caches; cat "+strings.Join(names, " ")+" | sha256sum"); got != fmt.Sprintf("%x  -", whole.Sum(nil)) {
			t.Errorf("Linux %s reads other data from %s: %s, want %x", c.kernel, f.from[c], got, whole.Sum(nil))
		}
		c.must(t, fmt.Sprintf(enter+"mkdir by-%[1]s; echo %[1]s > by-%[1]s/file; echo %[1]s > file-%[1]s", c.name))
		made = append(made, c.name)
	}
	for _, c := range machines {
		for _, other := range made {
			if got := c.must(t, fmt.Sprintf(enter+"cat by-%[1]s/file file-%[1]s", other)); got != other+"\n"+other {
				t.Errorf("Linux %s at %s: %s made its name in two files, and this one reads %q", c.kernel, f.from[c], other, got)
			}
		}
	}
	for _, c := range machines {
		want := foundFiles + 2*len(machines)
		if got := c.must(t, enter+"ls | wc -l"); got != strconv.Itoa(want) {
			t.Errorf("Linux %s at %s: %s names, want %d", c.kernel, f.from[c], got, want)
		}
		if now := f.mountedFrom(t, c); now != f.from[c] {
			t.Errorf("Linux %s had the directory from %s and has it from %s", c.kernel, f.from[c], now)
		}
	}
}
