package directorymoves

import (
	"fmt"
	"slices"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/placement"
)

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

// Plan is which directories move to which data servers.
type Plan struct {
	changes []ownerChange
	// Pending is the number of directories to move, including changes; Homeless is the number of those that no data
	// server can take at present.
	Pending, Homeless int
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

type ownerChange struct {
	directory *internalv1.ShareDirectory
	to        string
	// follow: clients that have the directory mounted follow it.
	follow bool
}

// Again is when to look again though nothing happens; 0 if nothing is to move.
func (p *Plan) Again() time.Duration {
	switch {
	case len(p.changes) > 0:
		return requeue.Soonest(movePause, p.next)
	case p.Pending > 0:
		return requeue.Soonest(moveRetry, p.next)
	}
	return p.next
}

// DescribeStuck says why directories do not move; "" if all do.
func (p *Plan) DescribeStuck() string {
	if len(p.stuck) == 0 {
		return ""
	}
	return "; " + conditions.List(p.stuck, maxListed)
}

// Plan decides which directories move now.
func (v *View) Plan() (plan Plan) {
	requests, err := placement.ParseRequests(v.FileServer.Annotations[v1alpha1.MovesAnnotation])
	if err != nil {
		plan.settled, plan.refused = true, []string{"the annotation " + v1alpha1.MovesAnnotation + " is not taken: " + err.Error()}
	}
	plan.refuseRebalance(v)
	if v.FileServer.DeletionTimestamp != nil {
		return plan
	}
	live, still := v.liveShares()
	asked := map[int]string{}
	if err == nil {
		asked = plan.takeRequests(v, requests, live, still)
	}
	plan.evacuate(v, live, still, asked)
	if err == nil {
		plan.rebalance(v, live, asked)
	}
	if !v.isShared() {
		plan.copies(v, live, still, asked)
	}
	return plan
}

// takeRequests plans what was asked for, and returns which directories that is about, by their places in v.Directories.
func (p *Plan) takeRequests(v *View, requests []placement.Request, live, still map[string]bool) map[int]string {
	type place struct{ share, path string }
	found := map[place]int{}
	if len(requests) > 0 {
		for i := range v.Directories {
			found[place{v.Directories[i].Spec.FileShareRef.Name, v.Directories[i].Spec.Path}] = i
		}
	}
	asked := map[int]string{}
	for _, request := range requests {
		at, exists := found[place{request.Share, request.Path}]
		_, known := v.DataServers[request.To]
		what := fmt.Sprintf("%s of share %s does not move to %s: ", request.Path, request.Share, request.To)
		switch {
		case !exists || v.Directories[at].Spec.DataServerRef.Name == "":
			p.refused = append(p.refused, what+"the share has no directory of that path that a data server owns")
		case !known:
			p.refused = append(p.refused, what+"FileServer "+v.FileServer.Name+" has no data server of that name")
		case v.isToBeIdle(request.To):
			p.refused = append(p.refused, what+"that data server is to be idle (spec.drain.servers, spec.replicas)")
		case slices.Contains(v.ignoredBy(request.Share), request.To):
			p.refused = append(p.refused, what+"the share has given that data server up (spec.ignoreDataOn)")
		case v.isUnmovable(&v.Directories[at]):
			p.refused = append(p.refused, what+v.unmovable(&v.Directories[at]))
		case asked[at] != "":
			p.refused = append(p.refused, what+"it is to move elsewhere in the same list")
		case v.Directories[at].Spec.DataServerRef.Name == request.To: // Done.
		default:
			asked[at] = request.To
			p.requests = append(p.requests, request)
			p.Pending++
			if len(p.changes) < movesPerPass && v.canMove(&v.Directories[at], still) && v.serves(request.To, request.Share, live) {
				p.changes = append(p.changes, ownerChange{&v.Directories[at], request.To, request.Clients == placement.Follow})
			}
		}
	}
	p.settled = p.settled || len(p.requests) != len(requests)
	return asked
}

// evacuate plans where directories go whose owners are to be empty, but for those that were asked for.
func (p *Plan) evacuate(v *View, live, still map[string]bool, asked map[int]string) {
	at := map[placement.Movable]int{}
	directories := make([]placement.Movable, 0, len(v.Directories))
	leaving := map[placement.Movable]bool{}
	for i := range v.Directories {
		spec := &v.Directories[i].Spec
		if spec.DataServerRef.Name == "" {
			continue
		}
		movable := placement.Movable{Share: spec.FileShareRef.Name, Path: spec.Path, Server: spec.DataServerRef.Name}
		directories, at[movable] = append(directories, movable), i
		if v.isToMove(&v.Directories[i]) && asked[i] == "" {
			p.Pending++
			leaving[movable] = v.canMove(&v.Directories[i], still) && v.Directories[i].Spec.Move.ID == ""
		}
	}
	if len(leaving) == 0 {
		return
	}
	moves, homeless := placement.Evacuate(v.targets(live, v.waitingFor(asked)), directories, func(d placement.Movable) bool { return leaving[d] }, movesPerPass-len(p.changes))
	p.Homeless = homeless
	for _, move := range moves {
		i := at[placement.Movable{Share: move.Share, Path: move.Path, Server: move.From}]
		p.changes = append(p.changes, ownerChange{directory: &v.Directories[i], to: move.To})
	}
}
