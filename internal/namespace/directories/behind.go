package directories

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// A mkdir is answered when its ShareDirectory and the directory exist. That the ShareDirectory is Ready is written behind the answer: it
// tells others that nothing is left to do, and they find that out without it, too (docs/design/2026-11-26-mkdir.md). Until it is
// written, this server shows the directory, others put clients off, and every change of the directory waits.

const (
	// behindMost is how many writes may be behind. With more, a mkdir waits for its own.
	behindMost = 16
	// behindLast is the longest pause between tries of a write; the first is finishPause. The Leader is there for what never succeeds.
	behindLast = 5 * time.Second
)

// behind has the writes that their clients do not wait for. The zero value is ready.
type behind struct {
	mu sync.Mutex
	// writes are closed when they have ended, by the name of the ShareDirectory.
	writes map[string]chan struct{}
	ended  bool
	stop   chan struct{}
	all    sync.WaitGroup
}

// begin admits a write. false: there are too many, or the server ends.
func (b *behind) begin(name string) (end func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || len(b.writes) >= behindMost || b.writes[name] != nil {
		return nil, false
	}
	if b.writes == nil {
		b.writes, b.stop = map[string]chan struct{}{}, make(chan struct{})
	}
	written := make(chan struct{})
	b.writes[name] = written
	b.all.Add(1)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.writes, name)
		close(written)
		b.all.Done()
	}, true
}

// awaitWritten waits for the write of a ShareDirectory, if it is behind, for as long as a change waits for others.
func (s *Service) awaitWritten(ctx context.Context, name string) {
	s.behind.mu.Lock()
	written := s.behind.writes[name]
	s.behind.mu.Unlock()
	if written == nil {
		return
	}
	timer := s.Clock.NewTimer(settleFor)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// finishBehind shows a directory that was made, and has its ShareDirectory set to Ready. false: the caller must do that.
func (s *Service) finishBehind(directory *internalv1.ShareDirectory) bool {
	end, ok := s.behind.begin(directory.Name)
	if !ok {
		return false
	}
	s.Tree.Made(directory)
	go func() {
		defer end()
		s.writeReady(directory.DeepCopy())
	}()
	return true
}

// writeReady sets a ShareDirectory to Ready, however long the API does not answer: this server shows the directory, so it knows of nothing
// that its Leader would have to do.
func (s *Service) writeReady(directory *internalv1.ShareDirectory) {
	for pause := finishPause; ; pause = min(2*pause, behindLast) {
		ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
		settled, err := s.tryReady(ctx, directory)
		cancel()
		if settled {
			return
		}
		s.Log.Warn("a directory is made, and its ShareDirectory is not set to Ready yet", "share", directory.Spec.FileShareRef.Name,
			"path", directory.Spec.Path, "error", err)
		timer := s.Clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-s.behind.stop:
			timer.Stop()
			return // The Leader does it.
		}
	}
}

// tryReady tries once. settled: nothing is left to do.
func (s *Service) tryReady(ctx context.Context, directory *internalv1.ShareDirectory) (settled bool, err error) {
	if err = s.setState(ctx, directory, internalv1.DirectoryReady); err == nil {
		return true, nil
	}
	// Another server may have been faster, and the answer of an earlier try may be lost.
	now, readErr := s.read(ctx, directory.Spec.FileShareRef.Name, directory.Spec.Path)
	switch {
	case apierrors.IsNotFound(readErr) || readErr == nil && now.UID != directory.UID:
		s.Tree.DeleteDirectory(directory.Spec.FileShareRef.Name, directory.Spec.Path, string(directory.UID))
		return true, nil
	case readErr != nil:
		return false, err
	case now.State() != internalv1.DirectoryCreating:
		return true, nil
	}
	*directory = *now
	return false, err
}

// EndBehind waits for the writes that are behind until the context ends, and admits no more. What is not written then is the Leader's.
func (s *Service) EndBehind(ctx context.Context) {
	b := &s.behind
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return
	}
	b.ended = true
	if b.stop == nil {
		b.stop = make(chan struct{})
	}
	b.mu.Unlock()
	written := make(chan struct{})
	go func() { b.all.Wait(); close(written) }()
	select {
	case <-written:
	case <-ctx.Done():
		close(b.stop)
	}
}

// rootOn is the identity of a share's directory on a volume; "" if it is not known.
func (s *Service) rootOn(server, share string, volume int32) string {
	export, _ := s.Tree.Export(server, share)
	return export.RootID(volume)
}

// isReplaced reports whether a volume is another one than when a client's mkdir chose it. The client's directory was on that one.
func (s *Service) isReplaced(o *internalv1.ShareDirectory) bool {
	r := tree.NewDirectory(o)
	then, now := o.Annotations[tree.MadeOnAnnotation], s.rootOn(r.Server, r.Share, r.Volume)
	return then != "" && now != "" && then != now
}
