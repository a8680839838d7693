package directories

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

const (
	// abandonedAfter is how long a change may take that a namespace server makes for a client.
	// It is longer than Config.Timeout should be; after it the Leader finishes or undoes the change.
	abandonedAfter = 15 * time.Second
	// leaderWorkers is how many ShareDirectories and volumes are worked on at a time.
	leaderWorkers = 8
	retryFirst    = 100 * time.Millisecond
	retryMost     = 10 * time.Second
	// scanTimeout bounds one scan of a volume. Another try goes on where one was stopped: what
	// has a ShareDirectory is skipped.
	scanTimeout = 5 * time.Minute
	// lostPause is the time from the loss of a ShareDirectory to the look at the data server, which may find more of them.
	lostPause = 2 * time.Second
	// misplacedPause is how long after directories were found that clients don't see it is looked whether they are still there.
	misplacedPause = time.Minute
	// retryRemoval is how long after a refusal a removal that the operator wants is tried again. It is slow because
	// no client waits: whoever empties the directory can also rmdir it.
	retryRemoval = 10 * time.Minute
)

// task is a ShareDirectory to complete or a volume to scan.
type task struct {
	share string
	// path is that of the ShareDirectory; empty for a scan.
	path string
	// server is the one that is scanned for directories of the share.
	server string
}

// Leader finishes what others began: it makes declared directories, finishes or undoes changes
// whose namespace server is gone, and writes ShareDirectories for directories that have none. One of a FileServer's
// namespace servers, the elected one, runs it. It reacts to events, and sends nothing while there are none.
type Leader struct {
	*Service

	// lists has an element for each list of a whole share that is in memory.
	lists chan struct{}
	// running is held by Run: a leader that lost the election may still be ending when it is elected again.
	running sync.Mutex

	mu sync.Mutex
	// queue is nil while another namespace server is the leader.
	queue workqueue.TypedRateLimitingInterface[task]
	// unfinished has since when this leader knows the unfinished state of a ShareDirectory.
	unfinished map[task]unfinished
	// scanned has the shares whose directories on a server are known, with what the scan depended on.
	scanned map[task]string
}

type unfinished struct {
	version uint64
	since   time.Time
}

// NewLeader makes a Leader that does nothing until it runs.
func NewLeader(s *Service) *Leader {
	return &Leader{Service: s, lists: make(chan struct{}, listsAtATime)}
}

// Run does the leader's work until the context ends.
func (k *Leader) Run(ctx context.Context) {
	k.running.Lock()
	defer k.running.Unlock()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[task](retryFirst, retryMost)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[task]{Name: "leader", Clock: k.Clock})
	k.mu.Lock()
	k.queue, k.unfinished, k.scanned = queue, map[task]unfinished{}, map[task]string{}
	k.mu.Unlock()

	var workers sync.WaitGroup
	for range leaderWorkers {
		workers.Go(func() {
			for k.next(ctx, queue) {
			}
		})
	}
	for _, r := range k.Tree.Unfinished() {
		k.DirectoryChanged(r.Share, r.Path)
	}
	for _, server := range k.Tree.Servers() {
		k.ServerChanged(server.Name)
	}
	k.checkSteadily(ctx)
	k.mu.Lock()
	k.queue = nil
	k.mu.Unlock()
	queue.ShutDown()
	workers.Wait()
}

// next does one task; false: the queue is shut down.
func (k *Leader) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[task]) bool {
	t, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(t)
	var err error
	limit := k.Timeout
	if t.path == "" {
		limit = scanTimeout
	}
	work, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if t.path == "" {
		err = k.scan(work, t)
	} else {
		err = k.complete(work, t)
	}
	if err != nil && ctx.Err() == nil {
		k.Log.Warn("the leader tries again later", "share", t.share, "path", t.path, "server", t.server, "error", err)
		queue.AddRateLimited(t)
		return true
	}
	queue.Forget(t)
	return true
}

// DirectoryChanged is to be called after the tree has a new state of a ShareDirectory.
func (k *Leader) DirectoryChanged(share, path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	t := task{share: share, path: path}
	r, ok := k.Tree.Directory(share, path)
	if !ok || !r.Unfinished() {
		delete(k.unfinished, t)
		return
	}
	if s, ok := k.unfinished[t]; !ok || s.version != r.Version {
		k.unfinished[t] = unfinished{version: r.Version, since: k.Clock.Now()}
	}
	if wait := k.wait(t, r); wait > 0 {
		k.queue.AddAfter(t, wait)
		return
	}
	k.queue.Add(t)
}

// wait is how long a ShareDirectory is left to the namespace server that works on it. k.mu is held.
func (k *Leader) wait(t task, r *tree.Directory) time.Duration {
	switch {
	case r.State == internalv1.DirectoryReady && r.RemovalRefused:
		return retryRemoval - k.Clock.Since(k.unfinished[t].since)
	case r.State == internalv1.DirectoryReady && r.RemoveWhenEmpty, r.State == internalv1.DirectoryCreating && r.MadeBy == "", r.State == internalv1.DirectoryMissing:
		return 0 // no client is at it
	}
	return abandonedAfter - k.Clock.Since(k.unfinished[t].since)
}

// againLater has the removal of a directory that holds data tried again.
func (k *Leader) againLater(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	k.unfinished[t] = unfinished{version: k.unfinished[t].version, since: k.Clock.Now()}
	k.queue.AddAfter(t, retryRemoval)
}

// againAfter has a ShareDirectory looked at again.
func (k *Leader) againAfter(t task, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.AddAfter(t, wait)
	}
}

// ServerChanged is to be called after the tree has a new state of a data server.
func (k *Leader) ServerChanged(name string) {
	server, ok := k.Tree.Server(name)
	if !ok {
		return
	}
	for _, share := range k.Tree.Shares() {
		k.lookFor(share, server)
	}
	k.resume(func(r *tree.Directory) bool { return (r.Server == name || !r.CopiesCurrent) && server.Serves[r.Share] })
}

// ShareChanged is to be called after the tree has a new state of a share.
func (k *Leader) ShareChanged(name string) {
	share, ok := k.Tree.Share(name)
	if !ok {
		return
	}
	for _, server := range k.Tree.Servers() {
		k.lookFor(share, server)
	}
	k.resume(func(r *tree.Directory) bool { return r.Share == name })
}

// resume puts the unfinished ShareDirectories that match on the queue.
func (k *Leader) resume(matches func(*tree.Directory) bool) {
	k.mu.Lock()
	idle := k.queue == nil
	k.mu.Unlock()
	if idle {
		return
	}
	for _, r := range k.Tree.Unfinished() {
		if matches(r) {
			k.DirectoryChanged(r.Share, r.Path)
		}
	}
}

// scanStamp is what a scan for directories of a share depends on: another share, more room in it or in the FileServer, or ShareDirectories that
// were lost, is another scan.
func scanStamp(share *tree.Share, room internalv1.DirectoryLimits) string {
	return fmt.Sprintf("%s %d %d %d %d", share.UID, share.MaxDirectories, share.InventoryGeneration, room.Total, room.PerNamespace)
}

// lookFor has a server's volumes scanned for directories of a share that it has begun to serve.
func (k *Leader) lookFor(share *tree.Share, server *tree.Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	t := task{share: share.Name, server: server.Name}
	switch {
	case !server.Serves[share.Name] || server.Address == "":
		// When it serves the share again its volumes may be others.
		delete(k.scanned, t)
	case k.scanned[t] != scanStamp(share, k.Tree.Limits()):
		k.scanned[t] = scanStamp(share, k.Tree.Limits())
		k.queue.Add(t)
	}
}

// DirectoryLost is to be called when the ShareDirectory of a directory went without a removal or a rename: if the directory is
// there it gets another.
func (k *Leader) DirectoryLost(r *tree.Directory) {
	k.rememberLost(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	// Whoever deletes one may delete many. One look at the server finds them all.
	for _, server := range k.Tree.Servers() {
		if r.Server == server.Name || r.Server == "" {
			k.queue.AddAfter(task{share: r.Share, server: server.Name}, lostPause)
		}
	}
}

// lookAgain has a server scanned once more some time later.
func (k *Leader) lookAgain(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.AddAfter(t, misplacedPause)
	}
}
