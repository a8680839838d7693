package directorymoves

import (
	"cmp"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// moveTasks are what data servers are to do, by their names. newer has ShareDirectories that were written in this pass.
func (v *View) moveTasks(newer map[*internalv1.ShareDirectory]*internalv1.ShareDirectory) map[string][]internalv1.MoveTask {
	tasks := map[string][]internalv1.MoveTask{}
	if v.isShared() {
		return tasks
	}
	for i := range v.Directories {
		directory := &v.Directories[i]
		if after := newer[directory]; after != nil {
			directory = after
		}
		move := &directory.Spec.Move
		if move.ID == "" {
			continue
		}
		source, target := move.Source.DataServerRef.Name, move.Target.DataServerRef.Name
		add := func(server, peer string, role internalv1.MoveRole, volume *int32) {
			dataServer := v.DataServers[peer]
			tasks[server] = append(tasks[server], internalv1.MoveTask{
				ID: move.ID, Role: role, FileShareRef: directory.Spec.FileShareRef, Path: directory.Spec.Path, Volume: volume,
				Peer: internalv1.DataServerReference{Name: peer}, PeerAddress: dataServer.Spec.Address, Step: move.Step, Attempt: move.Attempt, Sequence: move.Sequence,
				MegabytesPerSecond: v.FileServer.Spec.Moves.MegabytesPerSecond, TrashSeconds: v.FileServer.Spec.Moves.TrashSeconds,
				OpenFiles: internalv1.MoveOpenFiles(v.FileServer.Spec.Moves.OpenFiles), Execution: internalv1.MoveExecution(v.FileServer.Spec.Moves.Execution),
			})
		}
		add(source, target, internalv1.MoveSource, move.Source.Volume)
		add(target, source, internalv1.MoveTarget, move.Target.Volume)
	}
	for server := range tasks {
		slices.SortFunc(tasks[server], func(a, b internalv1.MoveTask) int {
			return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(string(a.Role), string(b.Role)))
		})
	}
	return tasks
}
