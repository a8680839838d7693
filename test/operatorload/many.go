package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

const (
	// rules and clients are the most that a share's access list may have.
	rules, clients = 32, 64
	// etcdQuota is what production clusters give etcd: until it is compacted, it has an access list once for each write.
	etcdQuota = "8589934592"
	// manyAllowance is how long one step may take, on a machine that does other things, too.
	manyAllowance = 40 * time.Minute
)

// many is how much one FileServer is given: shares with the longest access lists, others up to its limit, and one more.
type many struct{ long, limit, deleted int }

// measureMany shows that a FileServer with very many shares goes on: all are Ready, only the newest above the limit is
// refused, and no other share is disturbed while some are deleted at once.
func measureMany(ctx context.Context, w *world, m many, binary, kubeconfig string) error {
	operator, err := startOperator(ctx, w.server, binary, kubeconfig)
	if err != nil {
		return err
	}
	defer operator.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seen, err := w.play(ctx, cancel)
	if err != nil {
		return err
	}
	if err := step(ctx, operator, "a FileServer made Ready", func() error {
		if err := w.makeFileServers(ctx); err != nil {
			return err
		}
		return w.serve(ctx)
	}); err != nil {
		return err
	}
	name := func(n int) string { return fmt.Sprintf("many%04d", n) }
	create := func(from, to, ready int, long bool) func() error {
		return func() error {
			if err := each(ctx, to-from, func(ctx context.Context, i int) error {
				return retryWhileBusy(ctx, func() error { return w.Create(ctx, shareWithAccess(name(from+i), long)) })
			}); err != nil {
				return err
			}
			return seen.until(ctx, fmt.Sprintf("%d shares are Ready", ready), func() bool { return seen.ready() == ready })
		}
	}
	newest := name(m.limit + m.deleted)
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{fmt.Sprintf("%d shares with %d addresses each made Ready", m.long, rules*clients), create(0, m.long, m.long, true)},
		{fmt.Sprintf("%d of them deleted at once", m.deleted), func() error {
			var gone []string
			for i := range m.deleted {
				gone = append(gone, name(i*m.long/m.deleted))
			}
			return w.deleteShares(ctx, seen, gone)
		}},
		{fmt.Sprintf("others made Ready, up to %d", m.limit), create(m.long, m.limit+m.deleted, m.limit, false)},
		{"one more share refused", func() error {
			if err := wait(ctx, 1100*time.Millisecond); err != nil { // Creation times have seconds; this one is to be the newest.
				return err
			}
			if err := w.Create(ctx, shareWithAccess(newest, false)); err != nil {
				return err
			}
			return seen.until(ctx, "the newest share is refused", func() bool { return seen.refused(newest) })
		}},
	} {
		if err := step(ctx, operator, s.name, s.do); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if lost := seen.lostReady(); len(lost) > 0 {
			return fmt.Errorf("%s: %d shares that were Ready and not deleted were not Ready for a while: %s",
				s.name, len(lost), strings.Join(lost[:min(5, len(lost))], ", "))
		}
	}
	fmt.Println("no share that stayed was ever not Ready after it was Ready, and none but the newest was refused")
	return nil
}

// step does one thing and waits until the operator is done with it.
func step(ctx context.Context, operator *process, name string, do func() error) error {
	began := time.Now()
	var took time.Duration
	f, err := cost(ctx, operator, name, 1, func(int) error {
		began = time.Now()
		defer func() { took = time.Since(began) }()
		return do()
	})
	if err == nil {
		fmt.Printf("%s: %.1f s; %.1f CPU seconds, %.0f writes, %.0f passes, %.0f MiB resident; the API server: %.1f CPU seconds\n%s",
			name, took.Seconds(), f.cpu.Seconds(), f.writes, f.passes, f.resident/(1<<20), f.apiCPU.Seconds(), describeRequests(f.requests, 1))
	}
	return err
}

func shareWithAccess(name string, long bool) *v1alpha1.FileShare {
	share := builders.FileShare(kubeNamespace, name, fileServerName(0))
	for r := range rules {
		if !long {
			break
		}
		var networks []string
		for c := range clients {
			networks = append(networks, fmt.Sprintf("2001:0db8:%04x:%04x:ffff:ffff:ffff:ffff/128", r, c))
		}
		share.Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, networks...)
	}
	return share.Build()
}

// deleteShares deletes shares all at once and waits until they are gone.
func (w *world) deleteShares(ctx context.Context, seen *sight, names []string) error {
	seen.expectLoss(names)
	if err := each(ctx, len(names), func(ctx context.Context, i int) error {
		return retryWhileBusy(ctx, func() error {
			return client.IgnoreNotFound(w.Delete(ctx, &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: names[i]}}))
		})
	}); err != nil {
		return err
	}
	return seen.until(ctx, "the shares are gone", func() bool { return seen.areGone(names) })
}

// sight is what is known of the shares.
type sight struct {
	mu     sync.Mutex
	shares map[string]*shareSeen
}

type shareSeen struct {
	ready, refused, gone, leaving, lost bool
	// since is when the share became Ready.
	since time.Time
}

// play follows the shares, serves or drops exports as supervisors do, and offers volumes, until the context ends.
func (w *world) play(ctx context.Context, failed context.CancelCauseFunc) (*sight, error) {
	seen, work := &sight{shares: map[string]*shareSeen{}}, make(chan *internalv1.ShareExport)
	for range writers {
		go func() {
			for export := range work {
				if err := retryWhileBusy(ctx, func() error { return w.serveExport(ctx, export.DeepCopy()) }); err != nil {
					failed(fmt.Errorf("serving an export: %w", err))
				}
			}
		}()
	}
	follow := func(object client.Object, note func(object any, gone bool)) error {
		informer, err := w.watching.GetInformer(ctx, object)
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { note(object, false) },
			UpdateFunc: func(_, object any) { note(object, false) },
			DeleteFunc: func(object any) { note(object, true) },
		})
		return err
	}
	go func() {
		if err := w.watching.Start(ctx); err != nil {
			failed(err)
		}
	}()
	return seen, errors.Join(
		follow(&v1alpha1.FileShare{}, func(object any, gone bool) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			seen.note(object.(*v1alpha1.FileShare), gone)
		}),
		follow(&internalv1.ShareExport{}, func(object any, gone bool) {
			if !gone {
				select {
				case work <- object.(*internalv1.ShareExport).DeepCopy():
				case <-ctx.Done():
				}
			}
		}),
		follow(&corev1.PersistentVolume{}, func(object any, gone bool) {
			if volume := object.(*corev1.PersistentVolume); !gone && volume.Status.Phase != corev1.VolumeAvailable {
				if err := retryWhileBusy(ctx, func() error { return w.offerVolume(ctx, volume.DeepCopy()) }); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					failed(fmt.Errorf("offering a volume: %w", err))
				}
			}
		}))
}

// serveExport is what a supervisor reports of an export when ganesha has done what it asks for.
func (w *world) serveExport(ctx context.Context, export *internalv1.ShareExport) error {
	done := internalv1.ExportServing
	if export.DeletionTimestamp != nil {
		done = internalv1.ExportRemoved
	}
	if observed := export.Status.ObservedGeneration; observed != nil && *observed == export.Generation &&
		conditions.IsTrue(export.Status.Conditions, done) {
		return nil
	}
	before := export.DeepCopy()
	export.Status.ObservedGeneration, export.Status.ExportIDs = &export.Generation, []int32{1}
	conditions.Set(&export.Status.Conditions, export.Generation, time.Now(), conditions.True(done, v1alpha1.ReasonReady, "done"))
	err := w.Status().Patch(ctx, export, client.MergeFrom(before))
	if apierrors.IsNotFound(err) || ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *sight) note(share *v1alpha1.FileShare, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.shares[share.Name]
	if known == nil {
		known = &shareSeen{}
		s.shares[share.Name] = known
	}
	condition := meta.FindStatusCondition(share.Status.Conditions, v1alpha1.ConditionReady)
	ready := condition != nil && condition.Status == metav1.ConditionTrue
	if ready && !known.ready && !known.lost {
		known.since = condition.LastTransitionTime.Time
	}
	// The time tells of changes, too, that were over before they were seen.
	disturbed := !ready || gone || !condition.LastTransitionTime.Time.Equal(known.since)
	known.lost = known.lost || known.ready && !known.leaving && disturbed
	known.ready, known.gone = ready && !gone, gone
	switch conditions.Reason(share.Status.Conditions, v1alpha1.FileSharePlaced) {
	case v1alpha1.ReasonTooManyShares, v1alpha1.ReasonLimitReached:
		known.refused = true
	default:
		known.refused = false
	}
}

func (s *sight) count(is func(name string, share *shareSeen) bool) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, share := range s.shares {
		if is(name, share) {
			names = append(names, name)
		}
	}
	return names
}

func (s *sight) ready() int {
	return len(s.count(func(_ string, share *shareSeen) bool { return share.ready && !share.leaving }))
}

// refused tells whether the newest share is refused, and it alone.
func (s *sight) refused(newest string) bool {
	all := s.count(func(_ string, share *shareSeen) bool { return share.refused && !share.gone })
	return len(all) == 1 && all[0] == newest
}

func (s *sight) lostReady() []string {
	return s.count(func(_ string, share *shareSeen) bool { return share.lost })
}

func (s *sight) expectLoss(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.shares[name].leaving = true
	}
}

func (s *sight) areGone(names []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !s.shares[name].gone {
			return false
		}
	}
	return true
}

// until waits for something that the watch sees, and tells now and then how far it is.
func (s *sight) until(ctx context.Context, what string, is func() bool) error {
	reported := time.Now()
	for began := reported; !is(); {
		if time.Since(began) > manyAllowance {
			return fmt.Errorf("it did not come to pass in %s that %s: %d shares are Ready", manyAllowance, what, s.ready())
		}
		if time.Since(reported) > 10*time.Second {
			reported = time.Now()
			fmt.Printf("  %d shares are Ready\n", s.ready())
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}
