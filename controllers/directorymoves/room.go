package directorymoves

import (
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/internal/placement"
)

// elsewhere is where a directory can go whose target has no room for it.
type elsewhere struct {
	// lacksRoom: the target refuses it for lack of room.
	lacksRoom bool
	// to has room; "" if no data server has. least is then the one that lacks least, with how many bytes.
	to, least string
	missing   int64
}

// emptiestVolume is the volume of a data server with the most space.
func (v *View) emptiestVolume(server string) int32 {
	dataServer := v.DataServers[server]
	if volume := moving.Emptiest(&dataServer); volume != nil {
		return *volume.Index
	}
	return 0
}

// elsewhere looks for another target of a move. Those for which too many directories wait are left out.
func (v *View) elsewhere(directory *internalv1.ShareDirectory, live map[string]bool, waiting map[string]int) (found elsewhere) {
	move := &directory.Spec.Move
	need, lacksRoom := moving.RoomIn(v.reportOf(move, move.Target.DataServerRef.Name).MoveReport)
	if !lacksRoom {
		return found
	}
	found.lacksRoom = true
	share := directory.Spec.FileShareRef.Name
	targets := v.targets(live, nil)
	hasRoom := false
	for i := range targets {
		server := targets[i].Server
		dataServer := v.DataServers[server]
		missing, lacksFiles := need.LacksIn(&dataServer)
		isTarget := server != move.Source.DataServerRef.Name && targets[i].Serves(share)
		if isTarget && missing > 0 && (found.least == "" || missing < found.missing) {
			found.least, found.missing = server, missing
		}
		mayTake := isTarget && missing == 0 && !lacksFiles && moving.MayAsk(move, server, v.Now) && waiting[server] < mostWaiting
		targets[i].Serves = func(string) bool { return mayTake }
		hasRoom = hasRoom || mayTake
	}
	if !hasRoom {
		return found
	}
	found.to = placement.Best(targets, v.movables(), share)
	return found
}

// advice completes the message that a request is refused.
func (e elsewhere) advice(directory *internalv1.ShareDirectory) string {
	if !e.lacksRoom || e.to == "" {
		return e.without()
	}
	return fmt.Sprintf("; data server %s has room for it: kubectl howdah move %s/%s --to %s", e.to, directory.Spec.FileShareRef.Name, directory.Spec.Path, e.to)
}

// without says that no data server has room, with what to do.
func (e elsewhere) without() string {
	if !e.lacksRoom {
		return ""
	}
	text := "; no other data server has room for it"
	if e.least != "" {
		text += fmt.Sprintf(", %s lacks least, %d MB", e.least, (e.missing+1e6-1)/1e6)
	}
	return text + ": raise spec.storage.volumes.size, delete data there, or add a data server (spec.replicas)"
}

// redirect gives a directory another target in place of one that has no room for it. begins tells whether it is its turn.
func (p *Plan) redirect(v *View, directory *internalv1.ShareDirectory, found elsewhere, begins func(to string) bool) {
	move := &directory.Spec.Move
	target := move.Target.DataServerRef.Name
	message := v.reportOf(move, target).message()
	if found.to == "" {
		p.say(directory, ": "+message+found.without())
		return
	}
	if !begins(found.to) {
		p.say(directory, fmt.Sprintf(" goes to %s in its turn, because %s has no room for it", found.to, target))
		return
	}
	after := v.begun(ownerChange{directory: directory, to: found.to})
	after.Spec.Move.Refusals = moving.RefusalsWith(move, v.Now)
	p.say(directory, fmt.Sprintf(" goes to %s, because %s has no room for it", found.to, target))
	p.writes = append(p.writes, copyWrite{directory, after, moving.Step, "MoveRedirected", fmt.Sprintf("is copied to data server %s, not to %s: %s", found.to, target, message)})
}
