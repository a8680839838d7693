package namespace

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/nfs4/peertest"
)

const (
	// mkdirsAsked is how many directories the attacker wants, each of another name.
	mkdirsAsked = 20_000
	// smallShare is how many directories a share may have: fewer than an address may make at once.
	smallShare = 100
	// atOnce is how many changes of an address are under way at a time: a share can get that many more than its limit.
	atOnce = 16
	// floodLasts is the longest that the attacker may need to have them all answered.
	floodLasts = time.Minute
)

// floods are attacks with a test of their own.
var floods = []attack{
	{"20,000 mkdirs in a share that has room for them", false, twentyThousand("data")},
	{"20,000 mkdirs in a share that has room for 100", false, twentyThousand("small")},
}

// twentyThousand asks for as many directories in one share as fast as 32 connections with 64 slots let it. In make
// test the attacker is content when each has an answer, in make bench-hostile it asks again until the context ends.
func twentyThousand(share string) func(ctx context.Context, s *target) string {
	return func(ctx context.Context, s *target) string {
		ctx, done := context.WithCancel(ctx)
		defer done()
		m := &mkdirs{share: share, endless: os.Getenv(hostileSeconds) != "", done: done}
		began := time.Now()
		each(ctx, 32, func(i int) error { return m.attack(ctx, s, i) })
		return fmt.Sprintf("; %d requests in %s: %d made, %d put off, %d over the share's limit",
			m.answered.Load(), time.Since(began).Round(10*time.Millisecond), m.made.Load(), m.delayed.Load(), m.full.Load())
	}
}

// mkdirs is what an attacker has asked for so far.
type mkdirs struct {
	share   string
	endless bool
	done    context.CancelFunc

	next, answered, made, delayed, full atomic.Int64
}

// attack is one connection's.
func (m *mkdirs) attack(ctx context.Context, s *target, i int) error {
	p, err := peertest.Connect(ctx, s.address, s.hostile(0, 1))
	if err != nil {
		return err
	}
	defer ending(ctx, p)()
	if status, err := p.Login(fmt.Sprint("maker ", i)); err != nil || status != nfsv4.NFS4_OK {
		return fmt.Errorf("%v: %w", status, err)
	}
	for {
		if err := m.batch(p); err != nil {
			return err
		}
	}
}

// batch uses all slots once.
func (m *mkdirs) batch(p *peertest.Peer) error {
	const slots = 64
	var batch []byte
	for slot := range uint32(slots) {
		ops := append([]nfsv4.NfsArgop4{p.Sequence(slot)}, walk("/"+m.share)...)
		batch = append(batch, p.Message(append(ops, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{
			Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: fmt.Sprint("storm-", m.next.Add(1)%mkdirsAsked),
		}})...)...)
	}
	if _, err := p.Write(batch); err != nil {
		return err
	}
	for range slots {
		res, err := p.Reply()
		if err != nil {
			return err
		}
		switch res.Status {
		case nfsv4.NFS4_OK:
			m.made.Add(1)
		case nfsv4.NFS4ERR_DELAY:
			m.delayed.Add(1)
		case nfsv4.NFS4ERR_DQUOT:
			m.full.Add(1)
		}
		if m.answered.Add(1) >= mkdirsAsked && !m.endless {
			m.done()
		}
	}
	return nil
}

// made counts the ShareDirectories that come to be in a share, those that are gone again included.
func (w *world) made(share string) *atomic.Int64 {
	w.t.Helper()
	api, err := client.NewWithWatch(config, client.Options{Scheme: w.api.Scheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	watched, err := api.Watch(w.t.Context(), &internalv1.ShareDirectoryList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(watched.Stop)
	var count atomic.Int64
	go func() {
		for event := range watched.ResultChan() {
			directory, ok := event.Object.(*internalv1.ShareDirectory)
			if ok && event.Type == watch.Added && directory.Spec.FileShareRef.Name == share && strings.HasPrefix(directory.Spec.Path, "storm-") {
				count.Add(1)
			}
		}
	}()
	return &count
}

// left counts those that are there.
func (w *world) left(share string) (count int64) {
	w.t.Helper()
	var list internalv1.ShareDirectoryList
	if err := w.api.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if spec := list.Items[i].Spec; spec.FileShareRef.Name == share && strings.HasPrefix(spec.Path, "storm-") {
			count++
		}
	}
	return count
}

// maker is a well-behaved client that makes a directory, looks it up and lists its parent, ten times a second.
func (w *stalls) maker(ctx context.Context, server, share, prefix string) {
	p, err := peertest.Connect(ctx, server, wellBehaved)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = append(w.failed, err.Error())
		return
	}
	defer func() { _ = p.Logout() }()
	does := func(what string, ops ...nfsv4.NfsArgop4) bool {
		return w.timed(what, func() (nfsv4.Nfsstat4, error) {
			res, err := p.Call(append([]nfsv4.NfsArgop4{p.Sequence(0)}, ops...)...)
			if status := peertest.Status(res); status != nfsv4.NFS4ERR_MOVED { // A referral, as there is to be.
				return status, err
			}
			return nfsv4.NFS4_OK, err
		})
	}
	if !w.timed("the maker's mount", func() (nfsv4.Nfsstat4, error) { return p.Login("calm maker") }) {
		return
	}
	for i := 0; ctx.Err() == nil; i++ {
		path := fmt.Sprintf("/%s/%s-%d", share, prefix, i)
		dir, name := cut(path)
		create := &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: name}}
		if !does("a well-behaved mkdir", append(walk(dir), create)...) || !does("a well-behaved lookup", append(walk(path), getattr)...) ||
			!does("a well-behaved listing", append(walk(dir), readdir())...) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// asking is the longest that the API server took for a GET of one object and for a list.
type asking struct {
	cancel    context.CancelFunc
	worker    sync.WaitGroup
	get, list time.Duration
	err       error
}

// watchAPI asks ten times a second for what everybody asks for.
func (w *world) watchAPI(share string) *asking {
	ctx, cancel := context.WithCancel(w.t.Context())
	a, key := &asking{cancel: cancel}, client.ObjectKey{Namespace: w.namespace, Name: share}
	timed := func(longest *time.Duration, do func() error) {
		began := time.Now()
		if err := do(); err != nil {
			a.err = err
		}
		*longest = max(*longest, time.Since(began))
	}
	a.worker.Go(func() {
		for ctx.Err() == nil {
			timed(&a.get, func() error {
				return w.api.Get(w.t.Context(), key, &v1alpha1.FileShare{})
			})
			timed(&a.list, func() error {
				return w.api.List(w.t.Context(), &internalv1.DataServerList{}, client.InNamespace(w.namespace))
			})
			time.Sleep(100 * time.Millisecond)
		}
	})
	return a
}

func (a *asking) end() error {
	a.cancel()
	a.worker.Wait()
	return a.err
}

// TestTwentyThousandMkdirs prints what is left for others of the namespace server and of the API server while one
// address asks for 20,000 directories, and holds the number of objects to the address's rate and to the share's limit.
func TestTwentyThousandMkdirs(t *testing.T) {
	w := newWorld(t, 2)
	w.share("data", 2)
	w.share("calm", 2)
	small := w.share("small", 2)
	small.Spec.MaxDirectories = smallShare
	if err := w.api.Update(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	s := w.serveProcess()
	length, goal := floodLasts, stallGoal*busy
	if seconds, err := strconv.Atoi(os.Getenv(hostileSeconds)); err == nil {
		length, goal = time.Duration(seconds)*time.Second, stallGoal
	}
	for i, share := range []string{"data", "small"} {
		flood, count := floods[i], w.made(share)
		t.Logf("BEGINS %d of %d: %s, at most %s", i+1, len(floods), flood.name, length)
		s.forgetPeak()
		s.attacks++
		spareBefore := toSpare(t)
		calm, api := watchWellBehaved(s), w.watchAPI(share)
		ctx, stop := context.WithCancel(t.Context())
		calm.workers.Go(func() { calm.maker(ctx, s.address, "calm", share) })
		began := time.Now()
		report := s.suffer(len(attacks)+i, length)
		stop()
		stall, trouble := calm.end()
		if err := api.end(); err != nil {
			t.Errorf("%s: the API server: %v", flood.name, err)
		}
		// The API server may end a watch at any time; what is there counts in any case.
		made := max(count.Load(), w.left(share))
		// By the address's rate, and one after the other beyond it.
		most := int64(5*DefaultChangesPerSecond + 6*DefaultChangesPerSecond*time.Since(began).Seconds())
		if share == "small" {
			most = smallShare + atOnce
		}
		t.Logf("FIGURE %s: %d objects of at most %d, longest stall %s, longest GET %s and LIST %s at the API server, memory %d MiB%s",
			flood.name, made, most, stall.Round(time.Millisecond), api.get.Round(time.Millisecond), api.list.Round(time.Millisecond), s.peak()>>20, report)
		if trouble != "" {
			t.Errorf("%s: a well-behaved client had an error: %s", flood.name, trouble)
		}
		if made == 0 || made > most {
			t.Errorf("%s: %d objects were made, want 1 to %d", flood.name, made, most)
		}
		hold(t, flood.name, max(stall, api.get, api.list), goal, min(spareBefore, toSpare(t)))
		if !s.ready() {
			t.Errorf("%s: the server is not ready", flood.name)
		}
	}
}
