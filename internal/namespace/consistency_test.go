package namespace

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/session"
	"github.com/howdah/howdah/test/consistency"
)

const (
	// consistencySeed chooses what clients do and what goes wrong. consistencyRounds is how many runs there are, each in directories of
	// its own, with a history of its own, and with one thing that goes wrong.
	consistencySeed   = "HOWDAH_CONSISTENCY_SEED"
	consistencyRounds = "HOWDAH_CONSISTENCY_ROUNDS"
	defaultRounds     = 12
	// roundLength is how long clients work in a round, and roundRest how long what is in flight then may take.
	roundLength = 2500 * time.Millisecond
	roundRest   = 40 * time.Second
	// enough operations mean something.
	enough = 100
	// watchLag is how late namespace servers may learn of each other's changes on a busy machine.
	watchLag    = 2 * time.Second
	checkLimit  = time.Minute
	usersOfEach = 2
)

// replica is a namespace server in a process of its own, which reaches the API by a link of its own.
type replica struct {
	name, address string
	api           *link
	options       hostileOptions
	process       *exec.Cmd
}

func (w *world) newReplica(name string) *replica {
	w.t.Helper()
	at, err := url.Parse(config.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	api := newLink(w.t, at.Host)
	r := &replica{name: name, address: freeAddress(w.t), api: api}
	r.options = hostileOptions{
		Host: "https://" + api.address, TLS: config.TLSClientConfig, Namespace: w.namespace, Address: r.address, Manager: freeAddress(w.t),
		Certificate: ownertest.Certificate(w.t), Replica: name,
	}
	r.start(w)
	w.t.Cleanup(r.kill)
	return r
}

// start starts the process, and waits until it serves.
func (r *replica) start(w *world) {
	w.t.Helper()
	given, err := json.Marshal(r.options)
	if err != nil {
		w.t.Fatal(err)
	}
	r.process = exec.Command(os.Args[0], "-test.run=^$")
	r.process.Env = append(os.Environ(), hostileServer+"="+string(given))
	r.process.Stderr = os.Stderr
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.process.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.eventually(r.name+" is ready", (&target{manager: r.options.Manager}).ready)
}

func (r *replica) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

// visitor is a client that asks one namespace server after the other, as a kernel does whose connection goes to another one when its
// server ends.
type visitor struct {
	t       *testing.T
	servers []*replica
	at      int
	kernel  *kernel
}

// Server implements consistency.Client.
func (v *visitor) Server() string { return v.servers[v.at].name }

// words are the answers that programs get of a kernel.
var words = map[nfsv4.Nfsstat4]string{
	nfsv4.NFS4_OK: "", nfsv4.NFS4ERR_EXIST: consistency.Exists, nfsv4.NFS4ERR_NOENT: consistency.Missing, nfsv4.NFS4ERR_NOTEMPTY: consistency.NotEmpty,
}

// Do implements consistency.Client.
func (v *visitor) Do(ctx context.Context, r consistency.Request) (answer consistency.Answer, repeated bool, err error) {
	for pause := 5 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 200*time.Millisecond) {
		if v.kernel == nil {
			if v.kernel, err = dialKernel(v.t, v.servers[v.at].address); err != nil {
				v.at = (v.at + 1) % len(v.servers)
				time.Sleep(pause)
				continue
			}
		}
		res, err := v.kernel.attempt(user, compoundOf(r)...)
		if err != nil {
			_ = v.kernel.conn.Close()
			v.kernel, v.at, repeated = nil, (v.at+1)%len(v.servers), true
			continue
		}
		status := session.StatusOf(res[len(res)-1])
		switch status {
		case nfsv4.NFS4ERR_DELAY:
			time.Sleep(pause)
			continue
		case nfsv4.NFS4ERR_STALE:
			// A kernel walks the path again. A mkdir may have been made before.
			repeated = repeated || r.Kind == consistency.Mkdir
			continue
		}
		word, ok := words[status]
		if !ok {
			word = nfs.StatusName(status)
		}
		answer.Error = word
		_, answer.Looked = res[len(res)-1].(*nfsv4.NfsResop4_OP_LOOKUP)
		answer.Looked = answer.Looked && word != ""
		if listing, ok := res[len(res)-1].(*nfsv4.NfsResop4_OP_READDIR); ok && status == nfsv4.NFS4_OK {
			answer.Names = namesOf(listing)
		}
		return answer, repeated, nil
	}
	return answer, repeated, ctx.Err()
}

func namesOf(listing *nfsv4.NfsResop4_OP_READDIR) (names []string) {
	for e := listing.Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply.Entries; e != nil; e = e.Nextentry {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// compoundOf is what a kernel without caches sends.
func compoundOf(r consistency.Request) []nfsv4.NfsArgop4 {
	dir, name := cut("/data/" + r.Path)
	switch r.Kind {
	case consistency.Mkdir:
		return append(walk(dir), &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: name}})
	case consistency.Rmdir:
		return append(walk(dir), &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: name}})
	case consistency.Rename:
		toDir, newName := cut("/data/" + r.To)
		return slices.Concat(walk(dir), []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_SAVEFH{}}, walk(toDir),
			[]nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: name, Newname: newName}}})
	case consistency.List:
		return append(walk(dir+"/"+name), readdir())
	case consistency.Stat, consistency.Read, consistency.Write, consistency.Swap:
	}
	return walk(dir + "/" + name)
}

// trouble is something that goes wrong in a round. It returns when it is over, with what it did.
type trouble struct {
	name string
	do   func(random *rand.Rand) (what string)
}

// arena is a world whose servers and links fail.
type arena struct {
	*world
	replicas []*replica
	owners   []*link
}

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{world: newWorld(t, 3)}
	for i, owner := range a.world.owners {
		l := newLink(t, owner.Address)
		a.owners = append(a.owners, l)
		server := &internalv1.DataServer{}
		key := client.ObjectKey{Namespace: a.namespace, Name: naming.DataServer(fileServer, int32(i))}
		if err := a.api.Get(t.Context(), key, server); err != nil {
			t.Fatal(err)
		}
		server.Spec.Address = l.address
		if err := a.api.Update(t.Context(), server); err != nil {
			t.Fatal(err)
		}
	}
	a.share("data", 2)
	for _, name := range []string{"a", "b", "c"} {
		a.replicas = append(a.replicas, a.newReplica(name))
	}
	return a
}

func some[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most))) + most/4
}

func (a *arena) troubles() []trouble {
	return []trouble{
		{"nothing", func(*rand.Rand) string { return "" }},
		{"a namespace server is killed", func(random *rand.Rand) string {
			r := some(random, a.replicas)
			r.kill()
			time.Sleep(upTo(random, time.Second))
			r.start(a.world)
			return r.name
		}},
		{"a namespace server hangs, and another one is the leader", func(random *rand.Rand) string {
			r := some(random, a.replicas)
			_ = r.process.Process.Signal(syscall.SIGSTOP)
			time.Sleep(upTo(random, 6*time.Second))
			_ = r.process.Process.Signal(syscall.SIGCONT)
			return r.name
		}},
		{"a namespace server does not reach the API", func(random *rand.Rand) string {
			r := some(random, a.replicas)
			r.api.sever(upTo(random, 2*time.Second))
			return r.name
		}},
		{"a namespace server's packets to and from the API are late", func(random *rand.Rand) string {
			r := some(random, a.replicas)
			r.api.hold(upTo(random, 2*time.Second))
			return r.name
		}},
		{"answers of the API are lost", func(random *rand.Rand) string {
			for range 8 {
				some(random, a.replicas).api.sever(0)
				time.Sleep(upTo(random, 200*time.Millisecond))
			}
			return "all"
		}},
		{"a data server is away", func(random *rand.Rand) string {
			some(random, a.owners).sever(upTo(random, time.Second))
			return ""
		}},
		{"answers of data servers are lost", func(random *rand.Rand) string {
			for range 8 {
				some(random, a.owners).sever(0)
				time.Sleep(upTo(random, 200*time.Millisecond))
			}
			return ""
		}},
	}
}

// round runs clients while one thing goes wrong, and judges what they saw.
func (a *arena) round(n int, seed uint64, t trouble) (consistency.History, consistency.Verdict) {
	a.t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	directories := &consistency.Directories{
		Kept: []string{fmt.Sprintf("r%d-k0", n), fmt.Sprintf("r%d-k1", n)}, Gone: []string{fmt.Sprintf("r%d-g", n)}, Names: []string{"x", "y"},
	}
	k := boot(a.t, a.replicas[0].address)
	for _, dir := range directories.Kept {
		want(a.t, "mkdir "+dir, nfsv4.NFS4_OK, k.mkdir(user, "/data/"+dir))
	}
	for _, r := range a.replicas {
		k := boot(a.t, r.address)
		a.eventually(r.name+" shows the directories of the round", func() bool {
			return !slices.ContainsFunc(directories.Kept, func(dir string) bool {
				_, status := k.try(user, walk("/data/"+dir)...)
				return status != nfsv4.NFS4_OK
			})
		})
	}
	var visitors []consistency.Client
	for i := range usersOfEach * len(a.replicas) {
		visitors = append(visitors, &visitor{t: a.t, servers: a.replicas, at: i % len(a.replicas)})
	}
	runner := consistency.NewRunner()
	working, stop := context.WithCancel(a.t.Context())
	defer stop()
	// A busy machine takes longer for as much.
	ending := time.AfterFunc(roundLength, func() {
		for range 8 {
			if answered, _ := runner.History().Count(); answered >= enough {
				break
			}
			time.Sleep(roundLength)
		}
		stop()
	})
	defer ending.Stop()
	var behind []consistency.Window
	var failing sync.WaitGroup
	failing.Go(func() {
		time.Sleep(roundLength / 5)
		from := runner.Now()
		if name := t.do(random); name != "" {
			if name == "all" {
				name = ""
			}
			// A watch that ended begins again after 800 ms, 1.6 s … (client-go's reflector).
			behind = append(behind, consistency.Window{Server: name, From: from, Until: runner.Now() + 5*time.Second})
		}
	})
	runner.Load(working, seed+uint64(n), visitors, 5*time.Millisecond, roundRest, directories.Next)
	failing.Wait()
	for _, v := range visitors {
		if k := v.(*visitor).kernel; k != nil {
			_ = k.conn.Close()
		}
	}
	// Where answers of the API are lost, a change may be put off after it was made, and begin again (docs/use/everyday.md). However long a client
	// waits at one server, it gets the answer of its own change, also if the leader has finished that.
	history := runner.History().TwiceDuring(behind...)
	return history, consistency.Tree(history, directories.Kept, consistency.Promise{Stale: watchLag, Behind: behind}, checkLimit)
}

func number(t *testing.T, variable string, unset uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return unset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestDirectoriesAreConsistent has clients of three namespace servers make, remove, rename and look at the same few directories while
// servers and links fail. Changes must be linearizable, over all servers; what is looked at may be a little old (docs/use/everyday.md).
func TestDirectoriesAreConsistent(t *testing.T) {
	a := newArena(t)
	seed := number(t, consistencySeed, rand.Uint64N(1_000_000))
	rounds := int(number(t, consistencyRounds, defaultRounds))
	troubles := a.troubles()
	order := rand.New(rand.NewPCG(seed, 26)).Perm(len(troubles))
	total, unknown, undecided, wrong := 0, 0, 0, []string(nil)
	for n := range rounds {
		chosen := troubles[order[n%len(order)]]
		history, verdict := a.round(n, seed, chosen)
		answered, open := history.Count()
		total, unknown = total+answered, unknown+open
		t.Logf("round %d, %s: %d operations, %d without an answer, looks up to %s old", n, chosen.name, answered, open, verdict.Age.Round(time.Millisecond))
		if len(verdict.Undecided) > 0 {
			undecided++
			t.Logf("round %d, %s: no verdict: %v", n, chosen.name, verdict.Err())
		}
		if err := verdict.Wrong(); err != nil {
			wrong = append(wrong, fmt.Sprintf("round %d, %s: %v", n, chosen.name, err))
			keep(t, fmt.Sprintf("seed-%d-round-%d", seed, n), history, &verdict)
		}
	}
	if undecided > rounds/4 {
		t.Errorf("%d of %d rounds were not decided in time; more operations at the same time than the check can order", undecided, rounds)
	}
	if total < enough*rounds/4 {
		t.Errorf("%d operations are too few to mean anything", total)
	}
	t.Logf("%s=%d: %d rounds, %d operations, %d without an answer", consistencySeed, seed, rounds, total, unknown)
	for _, violation := range wrong { // last, because logs that are cut keep their end
		t.Error(violation)
	}
}

// keep puts the history into .test-results/consistency, and draws what is wrong.
func keep(t *testing.T, name string, h consistency.History, v *consistency.Verdict) {
	t.Helper()
	folder := filepath.Join("..", "..", ".test-results", "consistency", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "history.txt"), []byte(h.String()), 0o600); err != nil {
		t.Error(err)
	}
	files, err := v.Draw(folder)
	if err != nil {
		t.Error(err)
	}
	t.Logf("drawn: %v", files)
}
