package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Moves are directories that would get other data servers, or that were asked for.
type Moves struct {
	FileServer string `json:"fileServer"`
	// Asked: the operator was asked for them. Else nothing is changed.
	Asked bool `json:"asked"`
	// Refused is why nothing can move; "" if it can.
	Refused string `json:"refused,omitempty"`
	// By is what is evened out: number, bytes or load; "" where a move was named.
	By      By            `json:"by,omitempty"`
	Moves   []PlannedMove `json:"moves"`
	Servers []Load        `json:"servers,omitempty"`
	Notes   []string      `json:"notes,omitempty"`
	ask     []placement.Request
}

// PlannedMove is a directory with its data server before and after.
type PlannedMove struct {
	Share string `json:"share"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	To    string `json:"to"`
	// Weight is the directory's, in bytes or bytes a second; left out by number.
	Weight int64 `json:"weight,omitempty"`
}

// Requests are the moves as the operator takes them.
func (m *Moves) Requests() []placement.Request { return m.ask }

const (
	onVolumes = "with storage.volumes each data server has volumes of its own, and no other reaches them: directories can't move; copy one to a new directory"
	whatStays = "nothing is copied; who has a directory mounted stays with its old data server until it is not used for some minutes, all others are sent to the new one"
)

// isShared: all data servers have the same storage, so directories can move.
func isShared(fs *v1alpha1.FileServer) bool { return fs.Spec.Storage.Volumes.Size == nil }

// treeOf is a FileServer's tree as its namespace servers have it, and the data servers that don't answer.
func treeOf(w *World, namespace, fileServer string) (*tree.Tree, map[string]bool) {
	t := tree.New(fileServer)
	unreachable := map[string]bool{}
	for i := range w.DataServers {
		if d := &w.DataServers[i]; d.Namespace == namespace {
			t.SetServer(d)
			unreachable[d.Name] = d.Status.Unreachable.SeenBy != ""
		}
	}
	for i := range w.Exports {
		if w.Exports[i].Namespace == namespace {
			t.SetExport(&w.Exports[i])
		}
	}
	for i := range w.Directories {
		if d := &w.Directories[i]; d.Namespace == namespace && d.Labels[v1alpha1.RetainedLabel] != v1alpha1.RetainedTrue {
			t.SetDirectory(d)
		}
	}
	return t, unreachable
}

// targetsOf are the data servers that directories may move to.
func targetsOf(w *World, fs *v1alpha1.FileServer) (targets []placement.Target) {
	t, unreachable := treeOf(w, fs.Namespace, fs.Name)
	for _, server := range t.Servers() {
		seen := fleet.Server{Name: server.Name, Leaving: server.RefusesNewDirectories || fleet.IsToBeIdle(fs, server.Name), Serves: server.Address != "" && len(server.Serves) > 0 && !unreachable[server.Name]}
		if fleet.MayTake(seen, nil) != fleet.None {
			continue
		}
		targets = append(targets, placement.Target{Server: server.Name, Serves: func(share string) bool {
			var ignored []string
			if s, known := t.Share(share); known {
				ignored = s.IgnoreDataOn
			}
			return fleet.MayTake(fleet.Server{Name: server.Name, Serves: server.Serves[share]}, ignored) == fleet.None
		}})
	}
	return targets
}

// movablesOf are the directories of a FileServer that have data servers, and how many of them have no figure to weigh them by.
func movablesOf(w *World, fs *v1alpha1.FileServer, weighing Weighing) (directories []placement.Movable, unknown int) {
	for i := range w.Directories {
		d := &w.Directories[i]
		if d.Namespace != fs.Namespace || d.Spec.FileServerRef.Name != fs.Name || d.Spec.DataServerRef.Name == "" {
			continue
		}
		weight, known := weighing.of(d)
		if !known {
			unknown++
		}
		directories = append(directories, placement.Movable{Share: d.Spec.FileShareRef.Name, Path: d.Spec.Path, Server: d.Spec.DataServerRef.Name, Weight: weight})
	}
	return directories, unknown
}

// PlanRebalance is which directories would move, at most so many, for each data server to have as much of each share.
func PlanRebalance(w *World, fs *v1alpha1.FileServer, most int, weighing Weighing) Moves {
	moves := Moves{FileServer: fs.Namespace + "/" + fs.Name, Moves: []PlannedMove{}, By: weighing.By}
	if !isShared(fs) {
		moves.Refused = onVolumes
		return moves
	}
	targets := targetsOf(w, fs)
	directories, unknown := movablesOf(w, fs, weighing)
	limits, weights := placement.Limits{Moves: most}, map[placement.Request]int64{}
	if weighing.By != ByNumber {
		limits.Worth = max(1, placement.WorthOf(targets, directories))
		for _, d := range directories {
			weights[placement.Request{Share: d.Share, Path: d.Path}] = d.Weight
		}
	}
	if !weighing.isIdle(directories) {
		for _, m := range placement.Rebalance(targets, directories, limits) {
			moves.Moves = append(moves.Moves, PlannedMove{m.Share, m.Path, m.From, m.To, weights[placement.Request{Share: m.Share, Path: m.Path}]})
			moves.ask = append(moves.ask, placement.Request{Share: m.Share, Path: m.Path, To: m.To})
		}
	}
	moves.Servers = loadsAfter(w, fs, targets, moves.Moves, weighing)
	switch {
	case len(moves.Moves) == 0:
		moves.Notes = append(moves.Notes, weighing.nothing())
	case len(moves.Moves) == most:
		moves.Notes = append(moves.Notes, fmt.Sprintf("more may be to move than the %d of --moves: run it again when these are done", most), whatStays)
	default:
		moves.Notes = append(moves.Notes, whatStays)
	}
	moves.Notes = append(moves.Notes, weighing.notes(unknown, len(moves.Moves))...)
	return moves
}

// loadsAfter are the data servers with all directories that they own, before and after.
func loadsAfter(w *World, fs *v1alpha1.FileServer, targets []placement.Target, moves []PlannedMove, weighing Weighing) (servers []Load) {
	at := map[string]int{}
	for _, server := range w.dataServersOf(fs) {
		at[server.Name] = len(servers)
		ready := slices.ContainsFunc(targets, func(t placement.Target) bool { return t.Server == server.Name })
		servers = append(servers, Load{Name: server.Name, Ready: ready})
	}
	count := func(server string, before, after int, weight int64) {
		if i, known := at[server]; known {
			servers[i].Before += before
			servers[i].After += after
			servers[i].WeightBefore += int64(before) * weight
			servers[i].WeightAfter += int64(after) * weight
		}
	}
	directories, _ := movablesOf(w, fs, weighing)
	for _, d := range directories {
		weight := d.Weight
		if !weighing.By.isWeighed() {
			weight = 0
		}
		count(d.Server, 1, 1, weight)
	}
	for _, m := range moves {
		count(m.From, 0, -1, m.Weight)
		count(m.To, 0, 1, m.Weight)
	}
	return servers
}

// PlanMove is the move of one directory. What only the operator knows it says in an event.
func PlanMove(fs *v1alpha1.FileServer, share *v1alpha1.FileShare, path, to string) Moves {
	key := naming.KeyOf(share)
	moves := Moves{
		FileServer: fs.Namespace + "/" + fs.Name, Moves: []PlannedMove{{Share: key, Path: path, To: to}},
		ask: []placement.Request{{Share: key, Path: path, To: to}},
	}
	known := slices.ContainsFunc(fs.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == to })
	switch {
	case !isShared(fs):
		moves.Refused = onVolumes
	case !known:
		moves.Refused = fmt.Sprintf("FileServer %s has no data server %q: kubectl howdah status %s lists them", fs.Name, to, fs.Name)
	case path == tree.RootPath && share.Spec.Layout != v1alpha1.LayoutSingle:
		moves.Refused = fmt.Sprintf("share %s is spread over directories: say which one, %s/DIRECTORY", share.Name, share.Name)
	case path != tree.RootPath && share.Spec.Layout == v1alpha1.LayoutSingle:
		moves.Refused = fmt.Sprintf("the layout of share %s is Single: it moves as a whole; leave the directory out", share.Name)
	case path != tree.RootPath && tree.Depth(path) != int(share.Spec.Depth):
		moves.Refused = fmt.Sprintf("the directories of share %s that have data servers are at depth %d: %q is at %d", share.Name, share.Spec.Depth, path, tree.Depth(path))
	default:
		moves.Notes = append(moves.Notes, whatStays)
	}
	return moves
}

// emptied are the data servers after those above a number of replicas were emptied, and what there is to say of it.
func emptied(w *World, fs *v1alpha1.FileServer, replicas int32) (plan []PlannedMove, notes []string) {
	leaving := func(server string) bool {
		ordinal, ours := naming.DataServerOrdinal(fs.Name, server)
		return ours && ordinal >= replicas
	}
	targets := slices.DeleteFunc(targetsOf(w, fs), func(t placement.Target) bool { return leaving(t.Server) })
	directories, _ := movablesOf(w, fs, Weighing{})
	moves, homeless := placement.Evacuate(targets, directories, func(d placement.Movable) bool { return leaving(d.Server) }, math.MaxInt)
	for _, m := range moves {
		plan = append(plan, PlannedMove{Share: m.Share, Path: m.Path, From: m.From, To: m.To})
	}
	if len(moves) > 0 {
		notes = append(notes, plural(len(moves), "directory")+" would move first; "+whatStays)
	}
	if homeless > 0 {
		notes = append(notes, plural(homeless, "directory")+" would wait: no data server that stays serves their shares at present")
	}
	limit := int32(3600)
	if drain := fs.Spec.Drain; drain != nil {
		limit = ptr.Deref(drain.TimeoutSeconds, limit)
	}
	return plan, append(notes, fmt.Sprintf("each server that goes waits until no client is connected to it, for at most %d s (spec.drain.timeoutSeconds)", limit))
}

// Text tells it.
func (m Moves) Text(page text.Page) string {
	var b strings.Builder
	head := []text.Span{text.S(text.Strong, "FileServer "+m.FileServer)}
	switch {
	case m.Refused != "":
		head = append(head, text.S(text.Bad, "Refused"), text.S(text.Plain, m.Refused))
	case m.Asked:
		head = append(head, text.S(text.Good, "Asked for"), text.S(text.Plain, plural(len(m.Moves), "move")))
	default:
		head = append(head, text.S(text.Plain, plural(len(m.Moves), "move")))
	}
	b.WriteString(page.Paragraph("", "  ", head...))
	if len(m.Moves) > 0 && m.Refused == "" {
		writeMoves(&b, page, m.Moves, m.By)
	}
	writeLoads(&b, page, m.Servers, m.By)
	writeNotes(&b, page, m.Notes)
	return b.String()
}

func writeMoves(b *strings.Builder, page text.Page, moves []PlannedMove, by By) {
	head := []string{"SHARE", "DIRECTORY", "FROM", "TO"}
	if by.isWeighed() {
		head = append(head, by.column())
	}
	rows := [][]text.Span{}
	for _, one := range moves[:min(len(moves), maxListed)] {
		from := one.From
		if from == "" {
			from = "-"
		}
		row := []text.Span{text.S(text.Plain, one.Share), text.S(text.Plain, one.Path), text.S(text.Plain, from), text.S(text.Strong, one.To)}
		if by.isWeighed() {
			row = append(row, text.S(text.Plain, by.figure(one.Weight)))
		}
		rows = append(rows, row)
	}
	if more := len(moves) - maxListed; more > 0 {
		row := []text.Span{text.S(text.Faint, fmt.Sprintf("and %d more", more))}
		for range head[1:] {
			row = append(row, text.S(text.Plain, ""))
		}
		rows = append(rows, row)
	}
	b.WriteString("\n" + page.Table(head, rows))
}
