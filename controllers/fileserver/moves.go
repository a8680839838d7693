package fileserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/placement"
)

// A directory moves when its ShareDirectory names another data server. On volumes a copy comes first (copies.go). In Ceph this is one write, which fails if the object was
// changed since it was read. It is made only while no namespace server works on the directory: its state is Ready, or it
// was declared and is not made yet. Both the old and the new owner export the share, so referrals to either are valid.

const (
	// movesPerPass and movePause bound what a server that is emptied does to the API and to clients: 64 directories a second.
	movesPerPass = 64
	movePause    = time.Second
	// moveRetry is the interval for retrying moves that were not possible, if no object changes.
	moveRetry = 15 * time.Second
	// unmade is the maximum time of a client's mkdir. After that no namespace server works on the directory.
	unmade = time.Minute
	// moveWriters is how many ShareDirectories are written at a time.
	moveWriters = 8
)

// movePlan is which directories move to which data servers.
type movePlan struct {
	changes []directoryMove
	// pending is the number of directories to move, including changes; homeless is the number of those that no data
	// server can take at present.
	pending, homeless int
	// requests is the new content of the annotation if settled is set. refused is why requests were removed.
	requests []placement.Request
	settled  bool
	refused  []string
	// writes are the steps of copies on volumes, next when to look at them again, and stuck why some do not go on.
	writes []copyWrite
	next   time.Duration
	stuck  []string
	// rebalanced is the result of a requested rebalancing; empty if there was no request, or it waits.
	rebalanced string
}

type directoryMove struct {
	directory *internalv1.ShareDirectory
	to        string
	// follow: clients that have the directory mounted follow it.
	follow bool
}

// again is when to look again though nothing happens; 0 if nothing is to move.
func (p *movePlan) again() time.Duration {
	switch {
	case len(p.changes) > 0:
		return requeue.Soonest(movePause, p.copyAgain())
	case p.pending > 0:
		return requeue.Soonest(moveRetry, p.copyAgain())
	}
	return p.copyAgain()
}

// describeStuck says why directories do not move; "" if all do.
func (p *movePlan) describeStuck() string {
	if len(p.stuck) == 0 {
		return ""
	}
	return "; " + conditions.List(p.stuck, maxPaths)
}

// isToMove tells whether a directory's owner is to be empty, or is none any more.
func (o *observed) isToMove(directory *internalv1.ShareDirectory) bool {
	owner := directory.Spec.DataServerRef.Name
	if owner == "" || o.isUnmovable(directory) {
		return false
	}
	if !o.isShared() && directory.Spec.Move.Step == internalv1.MoveLeaving {
		return false // It has moved.
	}
	_, exists := o.dataServers[owner]
	if !exists {
		return o.isShared() // On volumes its data is away with it.
	}
	return o.isToBeIdle(owner)
}

// hasMoves tells whether any directory is to move, so that it has to be known who exports what.
func (o *observed) hasMoves() bool {
	return o.fileServer.Annotations[v1alpha1.MovesAnnotation] != "" || o.fileServer.Annotations[v1alpha1.RebalanceAnnotation] != "" ||
		slices.ContainsFunc(o.owned, func(d internalv1.ShareDirectory) bool { return o.isToMove(&d) || d.Spec.Move.ID != "" })
}

// readExporters finds out which shares each data server serves that directories may move to.
func (o *observed) readExporters(ctx context.Context, c client.Client, in client.InNamespace) error {
	if !o.hasMoves() {
		return nil
	}
	o.exporters = map[string]map[string]bool{}
	for name := range o.dataServers {
		dataServer := o.dataServers[name]
		if o.stateOf(name) != fleet.Serving || o.isToBeIdle(name) || dataServer.DeletionTimestamp != nil {
			continue
		}
		var list internalv1.ShareExportList
		if err := c.List(ctx, &list, in, index.OfDataServer(name), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		shares := map[string]bool{}
		for i := range list.Items {
			export := &list.Items[i]
			shares[export.Spec.FileShareRef.Name] = export.DeletionTimestamp == nil && conditions.IsTrue(export.Status.Conditions, internalv1.ExportServing)
		}
		o.exporters[name] = shares
	}
	return nil
}

// planMoves decides which directories move now.
func planMoves(o *observed) (plan movePlan) {
	requests, err := placement.ParseRequests(o.fileServer.Annotations[v1alpha1.MovesAnnotation])
	if err != nil {
		plan.settled, plan.refused = true, []string{"the annotation " + v1alpha1.MovesAnnotation + " is not taken: " + err.Error()}
	}
	plan.refuseRebalance(o)
	if o.fileServer.DeletionTimestamp != nil {
		return plan
	}
	live, still := o.liveShares()
	asked := map[int]string{}
	if err == nil {
		asked = plan.takeRequests(o, requests, live, still)
	}
	plan.evacuate(o, live, still, asked)
	if err == nil {
		plan.rebalance(o, live, asked)
	}
	if !o.isShared() {
		plan.copies(o, live, still, asked)
	}
	return plan
}

// liveShares are the FileServer's shares, and those of them of which nothing may be changed.
func (o *observed) liveShares() (live, still map[string]bool) {
	live, still = map[string]bool{}, map[string]bool{}
	for i := range o.shares {
		live[o.shares[i].Key] = true
		still[o.shares[i].Key] = o.shares[i].Paused
	}
	return live, still
}

// serves tells whether a data server that directories may move to exports a share. What is left of a deleted share is exported nowhere, and
// any server may keep the record of it.
func (o *observed) serves(server, share string, live map[string]bool) bool {
	shares, isTarget := o.exporters[server] // None of them is leaving.
	return isTarget && fleet.MayTake(fleet.Server{Name: server, Serves: shares[share] || !live[share]}, o.ignoredBy(share)) == fleet.None
}

// ignoredBy are the data servers that a share has given up (spec.ignoreDataOn).
func (o *observed) ignoredBy(share string) []string {
	for i := range o.shares {
		if o.shares[i].Key == share {
			return o.shares[i].IgnoreDataOn
		}
	}
	return nil
}

// targets are the data servers to which directories may move. Those with little room, or for which many directories wait, are the last.
func (o *observed) targets(live map[string]bool, waiting map[string]int) []placement.Target {
	targets := make([]placement.Target, 0, len(o.exporters))
	for server := range o.exporters {
		dataServer := o.dataServers[server]
		targets = append(targets, placement.Target{
			Server: server, Serves: func(share string) bool { return o.serves(server, share, live) },
			Last: !o.isShared() && (waiting[server] >= mostWaiting || fleet.IsTight(&dataServer)),
		})
	}
	return targets
}

// movables are all directories that have an owner, listed once for a pass: each that finds no room asks for them.
func (o *observed) movables() []placement.Movable {
	if o.movableOnes != nil {
		return o.movableOnes
	}
	directories := make([]placement.Movable, 0, len(o.owned))
	for i := range o.owned {
		if spec := &o.owned[i].Spec; spec.DataServerRef.Name != "" {
			directories = append(directories, placement.Movable{Share: spec.FileShareRef.Name, Path: spec.Path, Server: spec.DataServerRef.Name})
		}
	}
	o.movableOnes = directories
	return directories
}

// canMove reports whether no namespace server works on the directory.
func (o *observed) canMove(directory *internalv1.ShareDirectory, still map[string]bool) bool {
	if directory.DeletionTimestamp != nil || still[directory.Spec.FileShareRef.Name] {
		return false
	}
	switch directory.State() {
	case internalv1.DirectoryReady:
		return true
	case internalv1.DirectoryCreating:
		// It can be made on any data server, because all of them have the same storage.
		return o.isShared() && (directory.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue || o.now.Sub(directory.CreationTimestamp.Time) > unmade)
	}
	return false // Being renamed or removed: two objects, or an object and the directory, have to agree on the owner.
}

// takeRequests plans what was asked for, and returns which directories that is about, by their places in o.owned.
func (p *movePlan) takeRequests(o *observed, requests []placement.Request, live, still map[string]bool) map[int]string {
	type place struct{ share, path string }
	found := map[place]int{}
	if len(requests) > 0 {
		for i := range o.owned {
			found[place{o.owned[i].Spec.FileShareRef.Name, o.owned[i].Spec.Path}] = i
		}
	}
	asked := map[int]string{}
	for _, request := range requests {
		at, exists := found[place{request.Share, request.Path}]
		_, known := o.dataServers[request.To]
		what := fmt.Sprintf("%s of share %s does not move to %s: ", request.Path, request.Share, request.To)
		switch {
		case !exists || o.owned[at].Spec.DataServerRef.Name == "":
			p.refused = append(p.refused, what+"the share has no directory of that path that a data server owns")
		case !known:
			p.refused = append(p.refused, what+"FileServer "+o.fileServer.Name+" has no data server of that name")
		case o.isToBeIdle(request.To):
			p.refused = append(p.refused, what+"that data server is to be idle (spec.drain.servers, spec.replicas)")
		case slices.Contains(o.ignoredBy(request.Share), request.To):
			p.refused = append(p.refused, what+"the share has given that data server up (spec.ignoreDataOn)")
		case o.isUnmovable(&o.owned[at]):
			p.refused = append(p.refused, what+o.unmovable(&o.owned[at]))
		case asked[at] != "":
			p.refused = append(p.refused, what+"it is to move elsewhere in the same list")
		case o.owned[at].Spec.DataServerRef.Name == request.To: // Done.
		default:
			asked[at] = request.To
			p.requests = append(p.requests, request)
			p.pending++
			if len(p.changes) < movesPerPass && o.canMove(&o.owned[at], still) && o.serves(request.To, request.Share, live) {
				p.changes = append(p.changes, directoryMove{&o.owned[at], request.To, request.Clients == placement.Follow})
			}
		}
	}
	p.settled = p.settled || len(p.requests) != len(requests)
	return asked
}

// evacuate plans where directories go whose owners are to be empty, but for those that were asked for.
func (p *movePlan) evacuate(o *observed, live, still map[string]bool, asked map[int]string) {
	at := map[placement.Movable]int{}
	directories := make([]placement.Movable, 0, len(o.owned))
	leaving := map[placement.Movable]bool{}
	for i := range o.owned {
		spec := &o.owned[i].Spec
		if spec.DataServerRef.Name == "" {
			continue
		}
		movable := placement.Movable{Share: spec.FileShareRef.Name, Path: spec.Path, Server: spec.DataServerRef.Name}
		directories, at[movable] = append(directories, movable), i
		if o.isToMove(&o.owned[i]) && asked[i] == "" {
			p.pending++
			leaving[movable] = o.canMove(&o.owned[i], still) && o.owned[i].Spec.Move.ID == ""
		}
	}
	if len(leaving) == 0 {
		return
	}
	moves, homeless := placement.Evacuate(o.targets(live, o.waitingFor(asked)), directories, func(d placement.Movable) bool { return leaving[d] }, movesPerPass-len(p.changes))
	p.homeless = homeless
	for _, move := range moves {
		i := at[placement.Movable{Share: move.Share, Path: move.Path, Server: move.From}]
		p.changes = append(p.changes, directoryMove{directory: &o.owned[i], to: move.To})
	}
}

// moveDirectories carries out a plan and returns the number of moved directories. A conflict is not an error: the
// directory is observed again.
func (r *Reconciler) moveDirectories(ctx context.Context, o *observed, plan movePlan) (int64, error) {
	var moved atomic.Int64
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(moveWriters)
	for _, move := range plan.changes {
		group.Go(func() error {
			after := move.directory.DeepCopy()
			after.Spec.DataServerRef.Name, after.Spec.Volume = move.to, ptr.To(int32(0))
			if after.Labels == nil {
				after.Labels = map[string]string{}
			}
			after.Labels[v1alpha1.DataServerLabel] = move.to
			if move.follow && move.directory.State() == internalv1.DirectoryReady {
				// As on volumes: another file handle of the junction. Clients drop what they have mounted there, and what is open in it goes on
				// with the old owner until it is closed.
				after.Spec.Identity = string(uuid.NewUUID())
			}
			err := r.Patch(writing, after, client.MergeFromWithOptions(move.directory, client.MergeFromWithOptimisticLock{}))
			switch {
			case err == nil:
				moved.Add(1)
			case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
				return fmt.Errorf("giving %q of share %s to data server %s: %w", move.directory.Spec.Path, move.directory.Spec.FileShareRef.Name, move.to, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return moved.Load(), err
	}
	return moved.Load(), r.settleRequests(ctx, o, plan)
}

// settleRequests takes off the annotation what is done or refused. What was added meanwhile makes it a lost race.
func (r *Reconciler) settleRequests(ctx context.Context, o *observed, plan movePlan) error {
	if !plan.settled {
		return nil
	}
	after := o.fileServer.DeepCopy()
	if text := placement.FormatRequests(plan.requests); text != "" {
		after.Annotations[v1alpha1.MovesAnnotation] = text
	} else {
		delete(after.Annotations, v1alpha1.MovesAnnotation)
	}
	if plan.endsRebalance(o) {
		delete(after.Annotations, v1alpha1.RebalanceAnnotation)
	}
	if err := r.Patch(ctx, after, client.MergeFromWithOptions(o.fileServer, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taking settled moves off the annotation %s: %w", v1alpha1.MovesAnnotation, err)
	}
	// The status of this pass is written against what is there now.
	o.fileServer.Annotations, o.fileServer.ResourceVersion = after.Annotations, after.ResourceVersion
	if plan.rebalanced != "" {
		r.Events.Eventf(o.fileServer, nil, corev1.EventTypeNormal, "Rebalancing", "Move", "%s", plan.rebalanced)
	}
	if len(plan.refused) > 0 {
		r.Events.Eventf(o.fileServer, nil, corev1.EventTypeWarning, "MoveRefused", "Move", "%s", conditions.List(plan.refused, maxPaths))
	}
	return nil
}

// countMoves is for the status.
func countMoves(o *observed, d decision) v1alpha1.DirectoryMoves {
	return v1alpha1.DirectoryMoves{
		Pending: ptr.To(int32(d.moves.pending - int(d.moved))), Done: ptr.To(ptr.Deref(o.fileServer.Status.Moves.Done, 0) + d.uncounted),
	}
}

// uncounted are the directories that have moved and are in no status yet, for each FileServer. A pass that moves one may fail to write its
// status, and the next pass does not see that move any more. What a restarted operator forgets is missing in the count alone.
type uncounted struct {
	mu    sync.Mutex
	moved map[types.NamespacedName]int64
}

// add keeps what a pass has moved, and returns all that the next status counts.
func (u *uncounted) add(fileServer types.NamespacedName, moved int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if moved > 0 {
		if u.moved == nil {
			u.moved = map[types.NamespacedName]int64{}
		}
		u.moved[fileServer] += moved
	}
	return u.moved[fileServer]
}

// forget drops them: they are in the status, or the FileServer is gone.
func (u *uncounted) forget(fileServer types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.moved, fileServer)
}
