package directorymoves

import (
	"fmt"
	"strconv"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/placement"
)

// A rebalancing that is asked for by an annotation becomes requests for single directories, which are done one pass after the other like any
// other's: then it is on record what is still to move, and a new operator goes on. kubectl howdah rebalance writes such requests by itself, after it
// has shown them; who can only set a field (Argo CD's actions, a script) leaves the planning to the operator.

// askedToRebalance is the maximum number of moves that a rebalancing may make; 0 if none was requested.
func (v *View) askedToRebalance() (most int, err error) {
	text, asked := v.FileServer.Annotations[v1alpha1.RebalanceAnnotation]
	if !asked {
		return 0, nil
	}
	most, err = strconv.Atoi(text)
	if err != nil || most < 1 || most > placement.MaxRequests {
		return 0, fmt.Errorf("the annotation %s is %q: want the number of directories that may move, 1 to %d", v1alpha1.RebalanceAnnotation, text, placement.MaxRequests)
	}
	return most, nil
}

// refuseRebalance takes a request off that can't be.
func (p *Plan) refuseRebalance(v *View) {
	most, err := v.askedToRebalance()
	switch {
	case err != nil:
		p.settled, p.refused = true, append(p.refused, err.Error())
	case most > 0 && !v.canMoveAny():
		p.settled, p.refused = true, append(p.refused, onlyCopied)
	}
}

// endsRebalance tells whether the annotation is to go: it was refused, or has become requests.
func (p *Plan) endsRebalance(v *View) bool {
	most, err := v.askedToRebalance()
	return err != nil || most > 0 && (p.rebalanced != "" || !v.canMoveAny())
}

// rebalance makes requests of what was asked for. It waits for data servers that serve, and for what is to move already.
func (p *Plan) rebalance(v *View, live map[string]bool, asked map[int]string) {
	most, err := v.askedToRebalance()
	if err != nil || most == 0 || !v.canMoveAny() {
		return
	}
	if p.Pending > 0 || len(v.exporters) == 0 {
		p.Pending = max(p.Pending, 1)
		return
	}
	var directories []placement.Movable
	for i := range v.Directories {
		if spec := &v.Directories[i].Spec; spec.DataServerRef.Name != "" && asked[i] == "" && live[spec.FileShareRef.Name] && !v.isUnmovable(&v.Directories[i]) {
			directories = append(directories, placement.Movable{Share: spec.FileShareRef.Name, Path: spec.Path, Server: spec.DataServerRef.Name})
		}
	}
	moves := placement.Rebalance(v.targets(live, v.waitingFor(asked)), directories, placement.Limits{Moves: most})
	for _, move := range moves {
		p.requests = append(p.requests, placement.Request{Share: move.Share, Path: move.Path, To: move.To})
	}
	fit := placement.Fitting(p.requests)
	isCut := fit < len(p.requests)
	p.requests, moves = p.requests[:fit], moves[:fit] // There were no others, or they would be pending.
	p.Pending, p.settled = len(moves), true
	number := fmt.Sprintf("%d directories", len(moves))
	if len(moves) == 1 {
		number = "1 directory"
	}
	p.rebalanced = fmt.Sprintf("moving %s, so that each share is distributed evenly over the data servers", number)
	switch {
	case len(moves) == 0:
		p.rebalanced = "no directory moves: each share is already distributed evenly over the data servers that can take directories"
	case isCut:
		p.rebalanced += "; their names are so long that the annotation has no room for more at a time, so more are left to move"
	case len(moves) == most:
		p.rebalanced += fmt.Sprintf("; that is the requested maximum of %d, so more may be left to move", most)
	}
}
