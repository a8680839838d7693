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
	// abandonedAfter is how long a namespace server's change for a client may take. It must be longer than
	// Config.Timeout. After this time the Leader finishes or undoes the change.
	abandonedAfter = 15 * time.Second
	// leaderWorkers is how many ShareDirectories and volumes are worked on at a time.
	leaderWorkers = 8
	retryFirst    = 100 * time.Millisecond
	retryMost     = 10 * time.Second
	// scanTimeout bounds one scan of a volume. The next try continues: directories with a ShareDirectory are skipped.
	scanTimeout = 5 * time.Minute
	// lostPause is the time from the loss of a ShareDirectory to the scan of the data server, so that one scan finds
	// several losses.
	lostPause = 2 * time.Second
	// misplacedPause is the time until misplaced directories are checked again.
	misplacedPause = time.Minute
	// retryRemoval is the pause after a refused removal that the operator requested. It is long because no client
	// waits: a user who empties the directory can also remove it.
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

// Leader makes declared directories, finishes or undoes changes whose namespace server is gone, and writes
// ShareDirectories for directories that have none. The elected namespace server of a FileServer runs it. It reacts to
// events.
type Leader struct {
	*Service

	// lists has an element for each list of a whole share in memory.
	lists chan struct{}
	// running is held by Run: a former leader may still be stopping when it is elected again.
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
	workers.Go(func() { k.every(ctx, coolEvery, k.coolAll) })
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

// DirectoryChanged must be called after the tree has a new state of a ShareDirectory.
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

// wait is how long the Leader leaves a ShareDirectory to the namespace server that works on it. k.mu is held.
func (k *Leader) wait(t task, r *tree.Directory) time.Duration {
	switch {
	case r.State == internalv1.DirectoryReady && r.RemovalRefused:
		return retryRemoval - k.Clock.Since(k.unfinished[t].since)
	case r.State == internalv1.DirectoryReady && r.RemoveWhenEmpty, r.State == internalv1.DirectoryCreating && r.MadeBy == "", r.State == internalv1.DirectoryMissing:
		return 0 // no client waits for it
	}
	return abandonedAfter - k.Clock.Since(k.unfinished[t].since)
}

// againLater schedules another try to remove a directory that holds data.
func (k *Leader) againLater(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	k.unfinished[t] = unfinished{version: k.unfinished[t].version, since: k.Clock.Now()}
	k.queue.AddAfter(t, retryRemoval)
}

// againAfter schedules another pass over a ShareDirectory.
func (k *Leader) againAfter(t task, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.AddAfter(t, wait)
	}
}

// ServerChanged must be called after the tree has a new state of a data server.
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

// ShareChanged must be called after the tree has a new state of a share.
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

// scanStamp is what a scan for directories of a share depends on. It changes with the share, its limits, the
// FileServer's limits, and the loss of ShareDirectories.
func scanStamp(share *tree.Share, room internalv1.DirectoryLimits) string {
	return fmt.Sprintf("%s %d %d %d %d", share.UID, share.MaxDirectories, share.InventoryGeneration, room.Total, room.PerNamespace)
}

// lookFor schedules a scan of a server's volumes for a share that it now serves.
func (k *Leader) lookFor(share *tree.Share, server *tree.Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	t := task{share: share.Name, server: server.Name}
	switch {
	case !server.Serves[share.Name] || server.Address == "":
		// When it serves the share again, it may have other volumes.
		delete(k.scanned, t)
	case k.scanned[t] != scanStamp(share, k.Tree.Limits()):
		k.scanned[t] = scanStamp(share, k.Tree.Limits())
		k.queue.Add(t)
	}
}

// DirectoryDeleted must be called when a ShareDirectory was deleted. The directory is remembered as lost before the tree is without it: a client that
// looks for it between the two would learn that it does not exist.
func (k *Leader) DirectoryDeleted(o *internalv1.ShareDirectory) {
	share, path := o.Spec.FileShareRef.Name, o.Spec.Path
	r, known := k.Tree.Directory(share, path)
	if known = known && r.UID == string(o.UID); known {
		k.rememberLost(r)
	}
	if lost := k.Tree.DeleteDirectory(share, path, string(o.UID)); lost != nil {
		k.directoryLost(lost)
	} else if known {
		k.notLost(share, path)
	}
	k.Confirm(o)
	k.DirectoryChanged(share, path)
}

// directoryLost is for a ShareDirectory that was deleted without a removal or a rename. If the directory exists it gets another one.
func (k *Leader) directoryLost(r *tree.Directory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue == nil {
		return
	}
	// Often many are deleted at once. One scan of the server finds them all. One that was missing may be anywhere.
	for _, server := range k.Tree.Servers() {
		if r.Server == server.Name || r.Server == "" || r.State == internalv1.DirectoryMissing {
			k.queue.AddAfter(task{share: r.Share, server: server.Name}, lostPause)
		}
	}
}

// DirectoryRestored must be called when a ShareDirectory is of an older backup than what was known. If the directory had moved since, it is where it was
// last. Both data servers are looked at, so that the share says that it is missing here and found there.
func (k *Leader) DirectoryRestored(before *tree.Directory, now *internalv1.ShareDirectory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil && before.Server != "" && before.Server != now.Spec.DataServerRef.Name {
		k.queue.AddAfter(task{share: before.Share, server: before.Server}, lostPause)
		k.queue.AddAfter(task{share: before.Share, server: now.Spec.DataServerRef.Name}, lostPause)
	}
}

// lookAgain schedules another scan of a server.
func (k *Leader) lookAgain(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.AddAfter(t, misplacedPause)
	}
}
