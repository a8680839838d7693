package kernels

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/namespace/owners"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/spare"
)

const (
	// mkdirCount is how many directories each measurement makes.
	mkdirCount   = 500
	mkdirServers = 3
	mkdirShare   = "mkdir"
)

// mkdirBench measures what a mkdir and a first entry take, and where the time goes.
type mkdirBench struct {
	*world
	report strings.Builder
	direct *owners.Pool
	// inside is a directory on each data server.
	inside [mkdirServers]string
}

// TestMkdirSpeed is make bench-mkdir. It judges nothing; the report is in a folder of HOWDAH_MKDIR_INTO.
func TestMkdirSpeed(t *testing.T) {
	into := os.Getenv("HOWDAH_MKDIR_INTO")
	if into == "" {
		t.Skip("a benchmark: make bench-mkdir runs it")
	}
	rounds := setting(t, "HOWDAH_MKDIR_ROUNDS", 2)
	w := newWorld(t, size{owners: mkdirServers, clientMemory: 512}, func(kernels []string) []string { return kernels[max(0, len(kernels)-1):] })
	b := &mkdirBench{world: w, direct: directPool(t, w)}
	w.share(mkdirShare, 1, nil)
	w.share("raw", 1, nil)
	b.prepare(t)
	for round := 1; round <= rounds; round++ {
		b.say("round %d", round)
		b.steps(t, round)
		b.wire(t, round, 1)
		b.wire(t, round, 4)
		b.entry(t, round)
		if len(b.clients) > 0 {
			b.linux(t, round)
		}
	}
	t.Log("\n" + b.report.String())
	if err := os.WriteFile(filepath.Join(into, "report.txt"), []byte(b.report.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// prepare makes a directory on each data server in which the benchmark makes others: what is deeper than the share's depth gets no ShareDirectory.
func (b *mkdirBench) prepare(t *testing.T) {
	t.Helper()
	c := b.dial(t, "prepare")
	for i := range mkdirServers {
		if err := c.Mkdir(t.Context(), nfs.Credentials{}, fmt.Sprintf("/raw/%d", i), nfs.MkdirOptions{Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	var made internalv1.ShareDirectoryList
	if err := b.api.List(t.Context(), &made, client.InNamespace(kubeNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, o := range made.Items {
		for i := range mkdirServers {
			if o.Spec.DataServerRef.Name == naming.DataServer(fileServer, int32(i)) {
				b.inside[i] = naming.ExportPseudo("raw", 0) + "/" + o.Spec.Path
			}
		}
	}
}

func (b *mkdirBench) say(format string, args ...any) {
	fmt.Fprintf(&b.report, format+"\n", args...)
}

// timed runs something many times over and says how long one took and how much of the machine was idle meanwhile.
func (b *mkdirBench) timed(t *testing.T, what string, times int, do func()) {
	t.Helper()
	before, err := spare.Now()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	do()
	took := time.Since(began)
	after, err := spare.Now()
	if err != nil {
		t.Fatal(err)
	}
	b.say("  %-64s %7.2f ms each, %6.0f a second, %3.0f %% of the CPU idle", what,
		took.Seconds()*1000/float64(times), float64(times)/took.Seconds(), 100*after.Since(before).Idle)
}

// directPool has sessions with data servers as namespace servers have them.
func directPool(t *testing.T, w *world) *owners.Pool {
	t.Helper()
	identities, err := mtls.Load(filepath.Join(w.scratch, "namespace.pem"), "")
	if err != nil {
		t.Fatal(err)
	}
	pool := owners.NewPool("howdah-mkdir-test", func(string) string { return "" }, owners.MutualTLS(identities, func(address string) string {
		for i := range w.owners {
			if ownerAddress(i) == address {
				return naming.DataServerTLSName(scope, naming.DataServer(fileServer, int32(i)))
			}
		}
		return ""
	}), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { pool.Close(t.Context()) })
	return pool
}

// steps measures each step of a mkdir alone: the two writes to the API, and the call to the data server.
func (b *mkdirBench) steps(t *testing.T, round int) {
	objects := make([]*internalv1.ShareDirectory, mkdirCount)
	b.timed(t, "step: create a ShareDirectory (API, etcd)", mkdirCount, func() {
		for i := range objects {
			// Of a FileServer without servers: only the API is to have work.
			objects[i] = looseDirectory(fmt.Sprintf("raw%d-%d", round, i))
			if err := b.api.Create(t.Context(), objects[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	b.timed(t, "step: set its status to Ready (API, etcd)", mkdirCount, func() {
		for _, o := range objects {
			o.Status.State = internalv1.DirectoryReady
			if err := b.api.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	})
	b.timed(t, "step: make the directory on a data server (TLS, NFS)", mkdirCount, func() {
		for i := range mkdirCount {
			path := fmt.Sprintf("%s/raw%d-%d", b.inside[i%mkdirServers], round, i)
			if err := b.direct.Mkdir(t.Context(), ownerAddress(i%mkdirServers), path, nfs.Credentials{}, nfs.MkdirOptions{Mode: 0o755}); err != nil {
				t.Fatal(err)
			}
		}
	})
	b.timed(t, "step: look at it on a data server (TLS, NFS)", mkdirCount, func() {
		for i := range mkdirCount {
			path := fmt.Sprintf("%s/raw%d-%d", b.inside[i%mkdirServers], round, i)
			if _, err := b.direct.Stat(t.Context(), ownerAddress(i%mkdirServers), path, nfs.Credentials{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func looseDirectory(path string) *internalv1.ShareDirectory {
	volume, id := int32(0), int64(1000)
	return &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kubeNamespace, Name: naming.Directory("loose", "raw", path),
			Labels: map[string]string{v1alpha1.FileServerLabel: "loose", v1alpha1.FileShareLabel: "raw"},
		},
		Spec: internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: "loose"}, FileShareRef: internalv1.FileShareReference{Name: "raw"}, Path: path,
			DataServerRef: internalv1.DataServerReference{Name: "loose-0"}, Volume: &volume, UID: &id, GID: &id, Mode: "0755",
		},
	}
}

// wire makes directories through a namespace server with clients of Howdah's own: no kernel between.
func (b *mkdirBench) wire(t *testing.T, round, clients int) {
	api, server := b.counters(t)
	used := cpuByProgram(t)
	b.timed(t, fmt.Sprintf("mkdir by %d client(s) of Howdah's own", clients), mkdirCount, func() {
		var all sync.WaitGroup
		for k := range clients {
			all.Go(func() {
				c := b.dial(t, fmt.Sprintf("mkdir %d %d %d", round, clients, k))
				for i := k; i < mkdirCount; i += clients {
					path := fmt.Sprintf("/%s/wire%d-%d-%d", mkdirShare, round, clients, i)
					if err := c.Mkdir(t.Context(), nfs.Credentials{}, path, nfs.MkdirOptions{Mode: 0o755}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
	var text []string
	for program, after := range cpuByProgram(t) {
		if each := 1000 * (after - used[program]) / mkdirCount; each >= 0.05 {
			text = append(text, fmt.Sprintf("%s %.1f", program, each))
		}
	}
	slices.Sort(text)
	b.say("    milliseconds of CPU for each: %s", strings.Join(text, ", "))
	apiAfter, serverAfter := b.counters(t)
	b.averages("    at the API server: ", api, apiAfter, "apiserver_request_duration_seconds", `resource="sharedirectories"`)
	b.averages("    at etcd: ", api, apiAfter, "etcd_request_duration_seconds", "sharedirectories")
	b.averages("    in the namespace server: ", server, serverAfter, "howdah_namespace_mkdir_duration_seconds", "")
	b.averages("    in the namespace server: ", server, serverAfter, "howdah_namespace_operation_duration_seconds", "OP_CREATE")
}

// cpuByProgram are the seconds of CPU that the world's processes have used, by program.
func cpuByProgram(t *testing.T) map[string]float64 {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]float64{}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		words, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		args := strings.Split(string(words), "\x00")
		name := filepath.Base(args[0])
		if name == "howdah" && len(args) > 1 {
			name += " " + args[1]
		}
		// man 5 proc: utime and stime are the fields 14 and 15, in ticks of 10 ms; the second, in parentheses, may have spaces.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			used[name] += ticks / 100
		}
	}
	return used
}

func (b *mkdirBench) dial(t *testing.T, name string) *nfs.Client {
	c, err := nfs.Dial(t.Context(), net.JoinHostPort(namespaceAddress(0), "2049"), nfs.Options{ClientOwner: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// entry measures what a namespace server needs to lead another client to a directory.
func (b *mkdirBench) entry(t *testing.T, round int) {
	c := b.dial(t, fmt.Sprintf("entry %d", round))
	b.timed(t, "step: look a directory up (a referral)", mkdirCount, func() {
		for i := range mkdirCount {
			_, err := c.Handle(t.Context(), nfs.Credentials{}, fmt.Sprintf("/%s/wire%d-1-%d", mkdirShare, round, i))
			if err == nil {
				continue // Its maker has the same address.
			}
			if !nfs.IsAnswer(err) {
				t.Fatal(err)
			}
		}
	})
}

// linux has a kernel's client make directories, and enter them for the first time as their maker, and after a new mount.
func (b *mkdirBench) linux(t *testing.T, round int) {
	const times = 100
	c := b.clients[0]
	mount := fmt.Sprintf("mount -t nfs4 -o vers=4.1,%s,nconnect=2 %s:/%s /mnt/share", recommended, source(namespaceServers), mkdirShare)
	timed := func(what, each string) {
		_, before := b.counters(t)
		b.timed(t, "Linux "+c.kernel+" in User-mode Linux: "+what, times, func() {
			c.must(t, fmt.Sprintf("cd /mnt/share; for i in $(seq %d); do %s > /dev/null || exit 1; done", times, each))
		})
		_, after := b.counters(t)
		b.averages("    in the namespace server: ", before, after, "howdah_namespace_operation_duration_seconds", "")
	}
	c.must(t, mount)
	timed("(a program that does nothing)", "/bin/true")
	timed("mkdir", fmt.Sprintf("mkdir linux%d-$i", round))
	timed("first entry by the maker", fmt.Sprintf("ls linux%d-$i", round))
	c.must(t, fmt.Sprintf("cd /; umount -i -R /mnt/share; %s; ls /mnt/share > /dev/null", mount))
	timed("first entry after a new mount", fmt.Sprintf("ls linux%d-$i", round))
	c.must(t, fmt.Sprintf("cd /; umount -i -R /mnt/share; %s; for i in 1 2 3 4 5 6; do ls /mnt/share/wire%d-1-$i; done > /dev/null", mount, round))
	timed("first entry, data servers known", fmt.Sprintf("ls linux%d-$i", round))
	timed("second entry", fmt.Sprintf("ls linux%d-$i", round))
	c.must(t, "cd /; umount -i -R /mnt/share")
}

// series are the sums and counts of histograms, by name and labels.
type series map[string]float64

// counters are those of the API server and of the namespace server.
func (b *mkdirBench) counters(t *testing.T) (api, server series) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return scrape(t, transport, config.Host+"/metrics"), scrape(t, http.DefaultClient, "http://"+net.JoinHostPort(namespaceAddress(0), "9588")+"/metrics")
}

func scrape(t *testing.T, with *http.Client, url string) series {
	t.Helper()
	res, err := with.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("%s: %s: %s", url, res.Status, text)
	}
	found := series{}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			found[name] += number
		}
	}
	return found
}

// averages says what the observations between two times took, for each set of labels that has some words.
func (b *mkdirBench) averages(title string, before, after series, name, words string) {
	for key, sum := range after {
		labels, ok := strings.CutPrefix(key, name+"_sum{")
		if !ok || !strings.Contains(labels, words) {
			continue
		}
		counted := name + "_count{" + labels
		n := after[counted] - before[counted]
		if n < 10 {
			continue
		}
		b.say("%s%5.0f x %7.2f ms  %s", title, n, 1000*(sum-before[key])/n, labels)
	}
}
