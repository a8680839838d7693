package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Moves are planned or requested moves of directories to other data servers.
type Moves struct {
	FileServer string `json:"fileServer"`
	// Requested: the operator was asked for them. Otherwise nothing has changed.
	Requested bool `json:"requested"`
	// Refused is why nothing can move; "" if it can.
	Refused string `json:"refused,omitempty"`
	// By is what is balanced: number, bytes or load; "" for a single move.
	By      By            `json:"by,omitempty"`
	Moves   []PlannedMove `json:"moves"`
	Servers []Load        `json:"servers,omitempty"`
	Notes   []string      `json:"notes,omitempty"`
	request []placement.Request
}

// PlannedMove is a directory with its data server before and after.
type PlannedMove struct {
	Share string `json:"share"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	To    string `json:"to"`
	// Weight is the directory's, in bytes or bytes per second; left out when directories are counted.
	Weight int64 `json:"weight,omitempty"`
}

// Requests are the moves as the operator takes them.
func (m *Moves) Requests() []placement.Request { return m.request }

const (
	whatFollows  = "No data is copied. Clients that use a directory go to its new data server within seconds; files that they have open stay on the old one until they are closed."
	whatStays    = "No data is copied. Clients that use a directory stay on its old data server until they have not used it for some minutes; all others go to the new one."
	onVolumes    = "with storage.volumes directories move only if spec.moves.copying of the FileServer is Allow: then their data is copied. Or copy the data to a new directory yourself."
	whatIsCopied = "The data is copied while clients use it, one directory after the other. At the end of each its clients wait for some seconds."
	whatWaits    = " A directory in which files are open moves when they are closed (spec.moves.openFiles)."
	whatIsStale  = " What they have open then fails with ESTALE, and locks are lost (spec.moves.openFiles: Interrupt)."
	singleKept   = "a pod keeps the mount of a share of layout Single as long as it runs, so its clients can't follow: leave --follow out"
	singleStays  = "the root of a share of layout Single can't move on volumes; copy its content to a new share"
)

// isShared: all data servers have the same storage, so nothing is copied.
func isShared(fs *v1alpha1.FileServer) bool { return fs.Spec.Storage.Volumes.Size == nil }

// whatHappens says what clients notice of moves.
func whatHappens(fs *v1alpha1.FileServer) string {
	if isShared(fs) {
		return whatStays
	}
	if fs.Spec.Moves.OpenFiles == v1alpha1.MoveOpenFilesInterrupt {
		return whatIsCopied + whatIsStale
	}
	return whatIsCopied + whatWaits
}

// CanMove reports whether directories of a FileServer can move at all.
func CanMove(fs *v1alpha1.FileServer) bool {
	return isShared(fs) || fs.Spec.Moves.Copying == v1alpha1.MoveCopyingAllow
}

// treeOf is a FileServer's tree as its namespace servers see it, and the data servers that don't answer.
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
		targets = append(targets, placement.Target{Server: server.Name, Last: !isShared(fs) && hasLittleRoom(w, fs.Namespace, server.Name), Serves: func(share string) bool {
			var ignored []string
			if s, known := t.Share(share); known {
				ignored = s.IgnoreDataOn
			}
			return fleet.MayTake(fleet.Server{Name: server.Name, Serves: server.Serves[share]}, ignored) == fleet.None
		}})
	}
	return targets
}

// hasLittleRoom reports whether directories go to a data server only if no other can take them.
func hasLittleRoom(w *World, namespace, name string) bool {
	return slices.ContainsFunc(w.DataServers, func(d internalv1.DataServer) bool {
		return d.Namespace == namespace && d.Name == name && fleet.IsTight(&d)
	})
}

// movablesOf are the directories of a FileServer that have an owner, and how many of them have no known weight.
func movablesOf(w *World, fs *v1alpha1.FileServer, weighing Weighing) (directories []placement.Movable, unknown int) {
	for i := range w.Directories {
		d := &w.Directories[i]
		if d.Namespace != fs.Namespace || d.Spec.FileServerRef.Name != fs.Name || d.Spec.DataServerRef.Name == "" ||
			!isShared(fs) && d.Spec.Path == tree.RootPath {
			continue // It is no junction, or it can't move.
		}
		weight, known := weighing.of(d)
		if !known {
			unknown++
		}
		directories = append(directories, placement.Movable{Share: d.Spec.FileShareRef.Name, Path: d.Spec.Path, Server: d.Spec.DataServerRef.Name, Weight: weight})
	}
	return directories, unknown
}

// Follow has the clients that use the directories of a plan follow them. On volumes they do so anyway.
func (m Moves) Follow(fs *v1alpha1.FileServer) Moves {
	if !isShared(fs) || m.Refused != "" {
		return m
	}
	for i := range m.request {
		if m.request[i].Path != tree.RootPath {
			m.request[i].Clients = placement.Follow
		} else if len(m.request) == 1 {
			m.Refused = singleKept
		}
	}
	for i := range m.Notes {
		if m.Notes[i] == whatStays {
			m.Notes[i] = whatFollows
		}
	}
	return m
}

// PlanRebalance plans at most a number of moves, so that all data servers have an equal part of each share.
func PlanRebalance(w *World, fs *v1alpha1.FileServer, most int, weighing Weighing) Moves {
	moves := Moves{FileServer: fs.Namespace + "/" + fs.Name, Moves: []PlannedMove{}, By: weighing.By}
	if !CanMove(fs) {
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
			moves.request = append(moves.request, placement.Request{Share: m.Share, Path: m.Path, To: m.To})
		}
	}
	moves.Servers = loadsAfter(w, fs, targets, moves.Moves, weighing)
	switch {
	case len(moves.Moves) == 0:
		moves.Notes = append(moves.Notes, weighing.nothing())
	case len(moves.Moves) == most:
		moves.Notes = append(moves.Notes, fmt.Sprintf("The plan stops at %d moves (--moves): run the command again when they are done.", most), whatHappens(fs))
	default:
		moves.Notes = append(moves.Notes, whatHappens(fs))
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

// PlanMove plans the move of one directory. The operator reports what only it can refuse in an event.
func PlanMove(w *World, fs *v1alpha1.FileServer, share *v1alpha1.FileShare, path, to string) Moves {
	key := naming.KeyOf(share)
	moves := Moves{
		FileServer: fs.Namespace + "/" + fs.Name, Moves: []PlannedMove{{Share: key, Path: path, To: to}},
		request: []placement.Request{{Share: key, Path: path, To: to}},
	}
	known := slices.ContainsFunc(fs.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == to })
	switch {
	case !CanMove(fs):
		moves.Refused = onVolumes
	case !known:
		moves.Refused = fmt.Sprintf("FileServer %s has no data server %q; to list its data servers: kubectl howdah status %s", fs.Name, to, fs.Name)
	case path == tree.RootPath && share.Spec.Layout != v1alpha1.LayoutSingle:
		moves.Refused = fmt.Sprintf("share %s has many directories: name one, as %s/DIRECTORY", share.Name, share.Name)
	case path == tree.RootPath && !isShared(fs):
		moves.Refused = singleStays
	case path != tree.RootPath && share.Spec.Layout == v1alpha1.LayoutSingle:
		moves.Refused = fmt.Sprintf("share %s has the layout Single and moves as a whole: leave the directory out", share.Name)
	case path != tree.RootPath && tree.Depth(path) != int(share.Spec.Depth):
		moves.Refused = fmt.Sprintf("the directories of share %s that have an owner are at depth %d; %q is at depth %d", share.Name, share.Spec.Depth, path, tree.Depth(path))
	default:
		if moves.Refused = pointless(w, fs, share, path, to); moves.Refused == "" {
			moves.Notes = append(moves.Notes, whatHappens(fs))
		}
	}
	return moves
}

// pointless tells why a move does nothing: the directory does not exist, or is there already; "" if it does something, or it is not known.
func pointless(w *World, fs *v1alpha1.FileServer, share *v1alpha1.FileShare, path, to string) string {
	if w.IsHidden(ResourceShareDirectories, fs.Namespace) {
		return "" // The operator knows, and refuses with an event.
	}
	for _, d := range w.directoriesOf(fs.Namespace, fs.Name, naming.KeyOf(share)) {
		if d.Spec.Path != path {
			continue
		}
		if owner := d.Spec.DataServerRef.Name; owner != to || d.Spec.Move.ID != "" {
			return ""
		}
		what, argument := strconv.Quote(path), share.Name+"/"+path
		if path == tree.RootPath {
			what, argument = "share "+share.Name, share.Name
		}
		return fmt.Sprintf("%s is on %s already; to take back a request for another data server: kubectl howdah move %s -n %s --cancel", what, to, argument, share.Namespace)
	}
	if path == tree.RootPath {
		return ""
	}
	return fmt.Sprintf("share %s has no directory %q; to list them: kubectl howdah tree %s -n %s", share.Name, path, share.Name, share.Namespace)
}

// emptied plans the moves away from data servers above a number of replicas, with notes.
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
		notes = append(notes, "First "+plural(len(moves), "directory")+" would move. "+whatHappens(fs))
	}
	if homeless > 0 {
		notes = append(notes, plural(homeless, "directory")+" could not move: no remaining data server serves their shares now.")
	}
	limit := int32(3600)
	if drain := fs.Spec.Drain; drain != nil {
		limit = ptr.Deref(drain.TimeoutSeconds, limit)
	}
	return plan, append(notes, fmt.Sprintf("Each removed server waits until no client is connected to it, for at most %d s (spec.drain.timeoutSeconds).", limit))
}

// Text is the model as text.
func (m Moves) Text(page text.Page) string {
	var b strings.Builder
	head := []text.Span{text.S(text.Strong, "FileServer "+m.FileServer)}
	switch {
	case m.Refused != "":
		head = append(head, text.S(text.Bad, "Refused"), text.S(text.Plain, m.Refused))
	case m.Requested:
		head = append(head, text.S(text.Good, "Requested"), text.S(text.Plain, plural(len(m.Moves), "move")))
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
	head := []string{"SHARE", "DIRECTORY", "TO"}
	// The move of one directory does not look for its data server: the operator knows it.
	hasFrom := slices.ContainsFunc(moves, func(m PlannedMove) bool { return m.From != "" })
	if hasFrom {
		head = slices.Insert(head, 2, "FROM")
	}
	if by.isWeighed() {
		head = append(head, by.column())
	}
	rows := [][]text.Span{}
	for _, one := range moves[:min(len(moves), maxListed)] {
		row := []text.Span{text.S(text.Plain, one.Share), text.S(text.Plain, one.Path), text.S(text.Strong, one.To)}
		if hasFrom {
			row = slices.Insert(row, 2, text.S(text.Plain, cmp.Or(one.From, "-")))
		}
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
