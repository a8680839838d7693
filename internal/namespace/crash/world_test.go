package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/builders"
)

// world is a FileServer with two data servers and two namespace servers, and one share of depth 2.
type world struct {
	t       *testing.T
	api     *api
	data    *dataServers
	servers []*internalv1.DataServer
	share   *v1alpha1.FileShare
	died    chan *process

	mu        sync.Mutex
	random    *rand.Rand
	processes []*process // those that live, the leader last
	exports   []*internalv1.ShareExport
	names     int
	// lags are how late processes learn of changes, by name.
	lags  map[string]time.Duration
	trail []string
	// stalls is how long a call of a process takes before it is executed, beside the latency; nil: not at all.
	stalls func(p *process, what string) time.Duration
	// steps counts the calls that may be cut; cutting tells what goes wrong with the one of a number.
	steps   int
	cutting func(step int, p *process, what string) mode
}

// layout is what there is of a share: contents by path. Directories above the depth have none.
type layout map[string]string

func newWorld(t *testing.T, seed uint64, at layout) *world {
	w := &world{
		t: t, api: newAPI(), data: &dataServers{dirs: map[string]map[string]string{}, attributes: map[string]nfs.Attributes{}, silent: map[string]bool{}}, random: rand.New(rand.NewPCG(seed, 7)),
		died: make(chan *process, 100), cutting: func(int, *process, string) mode { return fine },
	}
	w.share = &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s", CreationTimestamp: metav1.Now()}}
	w.share.Status.Conditions = builders.InventoriedConditions()
	w.share.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: "/s", Depth: 2, Mode: "0777"}
	w.share = builders.Defaulted(w.share)
	for i := range 2 {
		server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: naming.DataServer("fs", int32(i))}}
		server.Spec = internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: fmt.Sprintf("10.9.0.%d", i), Volumes: 1, NodeNetworks: []string{"10.0.0.1/32"},
		}
		server.Status.Conditions = builders.ReadyConditions()
		w.servers = append(w.servers, server)
		w.exports = append(w.exports, builders.ShareExport("ns", "fs", "s", server.Name))
		w.data.dirs[server.Spec.Address] = map[string]string{"/s": "", "/s/0": ""}
	}
	for i, path := range slices.Sorted(maps.Keys(at)) {
		w.put(path, at[path], i%2)
	}
	return w
}

// inCeph gives both data servers the same storage.
func (w *world) inCeph() {
	first := w.servers[0].Spec.Address
	for _, server := range w.servers {
		server.Spec.Ceph.Monitors = []string{"10.0.0.1:3300"}
		maps.Copy(w.data.dirs[first], w.data.dirs[server.Spec.Address])
		w.data.dirs[server.Spec.Address] = w.data.dirs[first]
	}
}

// put makes a directory, on a data server if it is at the share's depth.
func (w *world) put(path, content string, server int) {
	o := &internalv1.ShareDirectory{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: naming.Directory("fs", "s", path)}}
	o.Spec = internalv1.ShareDirectorySpec{
		FileServerRef: internalv1.FileServerReference{Name: "fs"}, FileShareRef: internalv1.FileShareReference{Name: "s"}, Path: path,
		UID: ptr.To[int64](1000), GID: ptr.To[int64](1000), Mode: "0755",
	}
	if tree.Depth(path) == 2 {
		o.Spec.DataServerRef.Name, o.Spec.Volume = w.servers[server].Name, ptr.To[int32](0)
		w.putData(path, content, server)
	}
	if err := w.api.create(o); err != nil {
		w.t.Fatal(err)
	}
	o.Status.State = internalv1.DirectoryReady
	if err := w.api.change(o, func(next *internalv1.ShareDirectory) error { next.Status = o.Status; return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// putData makes a directory on a data server only. One with contents has a file.
func (w *world) putData(path, content string, server int) {
	w.data.mu.Lock()
	defer w.data.mu.Unlock()
	dirs := w.data.dirs[w.servers[server].Spec.Address]
	dirs["/s/0/"+path[:strings.LastIndexByte(path, '/')]] = ""
	dirs["/s/0/"+path] = content
	if content != "" {
		dirs["/s/0/"+path+"/.file"] = content
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trail = append(w.trail, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) latency() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(1+w.random.IntN(3000)) * time.Microsecond
}

func (w *world) stall(p *process, what string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalls == nil {
		return 0
	}
	return w.stalls(p, what)
}

func (w *world) cut(p *process, what string) mode {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	return w.cutting(w.steps, p, what)
}

// begin starts two namespace servers; the second is the leader. What dies is replaced, and another is the leader then.
func (w *world) begin() (end func()) {
	w.launch()
	w.launch().keep()
	stop := make(chan struct{})
	var nursing sync.WaitGroup
	nursing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case p := <-w.died:
				w.replace(p)
			}
		}
	})
	return func() {
		close(stop)
		nursing.Wait()
		for _, p := range w.running() {
			p.end()
		}
	}
}

func (w *world) launch() *process {
	w.mu.Lock()
	w.names++
	name := fmt.Sprintf("replica-%d", w.names)
	w.mu.Unlock()
	p := w.start(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	for _, export := range w.exports { // as they are now: another volume may have come while it started
		p.tree.SetExport(export)
	}
	return p
}

// running are the processes that were not taken away; the leader is the last.
func (w *world) running() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.processes)
}

// volumes gives each data server a volume of the name, and tells all processes.
func (w *world) volumes(name string) {
	w.mu.Lock()
	exports := make([]*internalv1.ShareExport, 0, len(w.exports))
	for _, export := range w.exports {
		export = export.DeepCopy() // Trees hold the old one.
		export.Status.RootIDs = []string{name + "-of-" + export.Spec.DataServerRef.Name}
		exports = append(exports, export)
	}
	w.exports = exports
	processes := slices.Clone(w.processes)
	w.mu.Unlock()
	for _, p := range processes {
		for _, export := range exports {
			p.tree.SetExport(export)
		}
	}
}

// replace takes a dead process away. If it was the leader another is after the lease's time.
func (w *world) replace(dead *process) {
	w.note("%s is dead", dead.name)
	w.mu.Lock()
	at := slices.Index(w.processes, dead)
	leader := at == len(w.processes)-1
	w.processes = slices.Delete(w.processes, at, at+1)
	var next *process
	if leader {
		next = w.processes[len(w.processes)-1]
	}
	w.mu.Unlock()
	dead.end()
	time.Sleep(5 * time.Second)
	fresh := w.launch()
	if leader {
		w.mu.Lock()
		w.processes = append([]*process{fresh}, slices.DeleteFunc(w.processes, func(p *process) bool { return p == fresh })...)
		w.mu.Unlock()
		if !next.isDead() {
			next.keep()
		}
		return
	}
	// The leader stays the last.
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.processes)
	w.processes[n-1], w.processes[n-2] = w.processes[n-2], w.processes[n-1]
}

// serving is a process that a client reaches: the leader is the last of them.
func (w *world) serving(nth int) *process {
	for {
		w.mu.Lock()
		var alive []*process
		for _, p := range w.processes {
			if !p.isDead() {
				alive = append(alive, p)
			}
		}
		w.mu.Unlock()
		if len(alive) > 0 {
			return alive[nth%len(alive)]
		}
		time.Sleep(time.Second)
	}
}

// layout is what clients can reach.
func (w *world) layout() layout {
	out := layout{}
	for _, o := range w.api.all() {
		if o.Spec.Path == tree.RootPath {
			continue
		}
		out[o.Spec.Path] = ""
		if o.Spec.DataServerRef.Name != "" {
			out[o.Spec.Path] = w.data.at(w.address(o.Spec.DataServerRef.Name))["/s/0/"+o.Spec.Path]
		}
	}
	return out
}

func (w *world) address(server string) string {
	for _, s := range w.servers {
		if s.Name == server {
			return s.Spec.Address
		}
	}
	return ""
}

// otherCopies are those data servers that have a directory above the depth with another owner or mode.
func (w *world) otherCopies(o *internalv1.ShareDirectory) (out []string) {
	if o.Spec.Path == tree.RootPath {
		return nil
	}
	w.data.mu.Lock()
	defer w.data.mu.Unlock()
	for _, server := range w.servers {
		name := "/s/0/" + o.Spec.Path
		r, a := tree.NewDirectory(o), w.data.attributesOf(server.Spec.Address, name)
		if _, ok := w.data.dirs[server.Spec.Address][name]; ok && (a.Owner != r.Owner || a.Group != r.Group || a.Mode != r.Mode) {
			out = append(out, fmt.Sprintf("%s has %s of %d, %d with mode %o, and it is of %d, %d with mode %o",
				server.Name, o.Spec.Path, a.Owner, a.Group, a.Mode, r.Owner, r.Group, r.Mode))
		}
	}
	return out
}

// faults are what must not be once all is quiet.
func (w *world) faults() []string {
	var out []string
	fault := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	known := map[string]bool{}
	objects := w.api.all()
	for _, o := range objects {
		if o.State() != internalv1.DirectoryReady {
			fault("%s is left %s", o.Spec.Path, o.State())
		}
		if o.Spec.DataServerRef.Name == "" {
			out = append(out, w.otherCopies(o)...)
			continue
		}
		address := w.address(o.Spec.DataServerRef.Name)
		known[address+" "+o.Spec.Path] = true
		if len(w.servers[0].Spec.Ceph.Monitors) > 0 {
			for _, server := range w.servers {
				known[server.Spec.Address+" "+o.Spec.Path] = true
			}
		}
		if _, ok := w.data.at(address)["/s/0/"+o.Spec.Path]; !ok {
			fault("the ShareDirectory of %s refers to nothing", o.Spec.Path)
		}
	}
	for _, server := range w.servers {
		for name := range w.data.at(server.Spec.Address) {
			path, ok := strings.CutPrefix(name, "/s/0/")
			if ok && tree.Depth(path) == 2 && !known[server.Spec.Address+" "+path] {
				fault("%s on %s can't be reached", path, server.Name)
			}
		}
	}
	for _, p := range w.running() {
		shown := map[string]bool{}
		for _, o := range objects {
			shown[o.Spec.Path] = true
			if r, ok := p.tree.Directory("s", o.Spec.Path); !ok || r.UID != string(o.UID) || r.State != o.State() {
				fault("%s does not show %s as it is", p.name, o.Spec.Path)
			}
		}
		for _, r := range p.tree.AllBelow("s", "p") {
			if !shown[r.Path] {
				fault("%s shows %s, which is gone", p.name, r.Path)
			}
		}
	}
	slices.Sort(out)
	return out
}
