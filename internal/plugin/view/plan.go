package view

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Plan is the result that a change would have. Nothing is changed.
type Plan struct {
	FileServer string `json:"fileServer"`
	Share      string `json:"share,omitempty"`
	// Replicas is the number of data servers before and after, if that is what changes.
	Replicas *Change `json:"replicas,omitempty"`
	// Refused is why the operator would not do it; "" if it would.
	Refused string `json:"refused,omitempty"`
	// Directories are the given directories with their data servers.
	Directories []Planned `json:"directories,omitempty"`
	Servers     []Load    `json:"servers,omitempty"`
	Notes       []string  `json:"notes,omitempty"`
}

// Change is a number before and after.
type Change struct {
	Before int32 `json:"before"`
	After  int32 `json:"after"`
}

// Planned is where a directory would be made.
type Planned struct {
	Path   string `json:"path"`
	Server string `json:"server,omitempty"`
	Volume int32  `json:"volume"`
	// Exists: the directory is there already. In is the parent that has an owner, if the path is below the share's depth.
	Exists bool   `json:"exists,omitempty"`
	In     string `json:"in,omitempty"`
}

// Load is how many directories of the share a data server owns, before and after.
type Load struct {
	Name   string `json:"name"`
	Before int    `json:"before"`
	After  int    `json:"after"`
	// Ready: the server takes new directories.
	Ready bool `json:"ready"`
	// WeightBefore and WeightAfter are in bytes or bytes per second; left out when directories are counted.
	WeightBefore int64 `json:"weightBefore,omitempty"`
	WeightAfter  int64 `json:"weightAfter,omitempty"`
	// Change is New or Removed where the number of servers changes.
	Change string `json:"change,omitempty"`
}

// slotsOf are the volumes that new directories of a share may go to. It uses the code of the namespace servers.
func slotsOf(w *World, namespace, fileServer, key string) []placement.Slot {
	t, unreachable := treeOf(w, namespace, fileServer)
	slots := t.Slots(key)
	for i := range slots {
		slots[i].Ready = slots[i].Ready && !unreachable[slots[i].Server]
	}
	return slots
}

// anonymous is the path of the nth directory without a name.
func anonymous(n int) string { return fmt.Sprintf("directory %d", n) }

// PlanMkdir plans where directories of a share would go: those of the paths, and a number of directories without names.
func PlanMkdir(w *World, share *v1alpha1.FileShare, paths []string, more int) (Plan, error) {
	namespace, fileServer, key := naming.ServerNamespace(share), share.Spec.FileServerRef.Name, naming.KeyOf(share)
	plan := Plan{FileServer: namespace + "/" + fileServer, Share: share.Namespace + "/" + share.Name}
	if share.Spec.Layout == v1alpha1.LayoutSingle {
		for _, d := range w.directoriesOf(namespace, fileServer, key) {
			plan.Notes = append(plan.Notes, "The layout is Single: everything in the share is on "+d.Spec.DataServerRef.Name)
		}
		return plan, nil
	}
	current, asked := map[string]placement.Owner{}, []string{}
	for _, d := range w.directoriesOf(namespace, fileServer, key) {
		current[d.Spec.Path] = placement.Owner{Server: d.Spec.DataServerRef.Name, Volume: ptr.Deref(d.Spec.Volume, 0)}
	}
	depth := int(share.Spec.Depth)
	for _, given := range paths {
		clean := strings.Trim(path.Clean("/"+given), "/")
		elements := strings.Split(clean, "/")
		switch {
		case clean == "":
			return Plan{}, fmt.Errorf("%q is not a path below the share: leave out the share's own path, for example train/7", given)
		case len(elements) < depth:
			plan.Directories = append(plan.Directories, Planned{Path: clean})
		case len(elements) > depth:
			in := strings.Join(elements[:depth], "/")
			plan.Directories = append(plan.Directories, Planned{Path: clean, In: in})
			asked = append(asked, in)
		default:
			asked = append(asked, clean)
		}
	}
	for n := range more {
		asked = append(asked, anonymous(n+1))
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	fresh := 0
	for _, p := range asked {
		if _, exists := current[p]; !exists {
			fresh++
		}
	}
	if room := int(share.Spec.MaxDirectories) - int(ptr.Deref(share.Status.Directories.Count, 0)); share.Spec.MaxDirectories > 0 && fresh > room {
		plan.Refused = fmt.Sprintf("mkdir would fail with \"Disk quota exceeded\": spec.maxDirectories is %d, which leaves room for %d more; raise it first",
			share.Spec.MaxDirectories, max(0, room))
	}
	slots := slotsOf(w, namespace, fileServer, key)
	assignments, err := placement.Plan(slots, current, asked)
	if err != nil {
		plan.Refused = err.Error()
		plan.Servers = loads(slots, nil)
		return plan, nil
	}
	owners := map[string]placement.Owner{}
	for _, a := range assignments {
		owners[a.Path] = a.Owner
		if len(a.Path) > 0 && !(more > maxListed && strings.HasPrefix(a.Path, "directory ")) {
			plan.Directories = append(plan.Directories, Planned{Path: a.Path, Server: a.Owner.Server, Volume: a.Owner.Volume, Exists: !a.New})
		}
	}
	for i := range plan.Directories {
		if d := &plan.Directories[i]; d.In != "" {
			d.Server, d.Volume = owners[d.In].Server, owners[d.In].Volume
		}
	}
	plan.Servers = loads(slots, assignments)
	plan.Notes = append(plan.Notes, "This is for the current state: directories that clients make meanwhile change the result.")
	return plan, nil
}

// loads are the data servers with the directories that the assignments add.
func loads(slots []placement.Slot, assignments []placement.Assignment) (servers []Load) {
	by := map[string]*Load{}
	for _, s := range slots {
		if by[s.Server] == nil {
			by[s.Server] = &Load{Name: s.Server}
		}
		by[s.Server].Before += s.ShareDirectories
		by[s.Server].After += s.ShareDirectories
		by[s.Server].Ready = by[s.Server].Ready || s.Ready
	}
	for _, a := range assignments {
		if l := by[a.Owner.Server]; l != nil && a.New {
			l.After++
		}
	}
	for _, l := range by {
		servers = append(servers, *l)
	}
	slices.SortFunc(servers, func(a, b Load) int { return placement.CompareNatural(a.Name, b.Name) })
	return servers
}

// canLeave tells whether a directory can move to another data server.
func canLeave(fs *v1alpha1.FileServer, d *internalv1.ShareDirectory) bool {
	return isShared(fs) || CanMove(fs) && d.Spec.Path != tree.RootPath
}

// whyItStays says which directories can't move between volumes.
func whyItStays(fs *v1alpha1.FileServer) string {
	if CanMove(fs) {
		return "roots of shares of layout Single"
	}
	return "all, because spec.moves.copying is not Allow"
}

// PlanScale plans another number of data servers (spec.replicas).
func PlanScale(w *World, fs *v1alpha1.FileServer, replicas int32) Plan {
	before := ptr.Deref(fs.Status.Replicas, 0)
	plan := Plan{FileServer: fs.Namespace + "/" + fs.Name}
	counts, needed := map[string]int{}, int32(0)
	for i := range w.Directories {
		d := &w.Directories[i]
		ordinal, ours := naming.DataServerOrdinal(fs.Name, d.Spec.DataServerRef.Name)
		if d.Namespace != fs.Namespace || d.Spec.FileServerRef.Name != fs.Name || !ours {
			continue
		}
		counts[d.Spec.DataServerRef.Name]++
		if !canLeave(fs, d) || isShared(fs) || ordinal >= before {
			needed = max(needed, ordinal+1)
		}
	}
	after, refused := placement.Replicas(replicas, before, 0, needed)
	var moves []PlannedMove
	var notes []string
	if replicas < before && (isShared(fs) || CanMove(fs) && !refused) {
		after, refused = replicas, false
		moves, notes = emptied(w, fs, replicas)
	}
	plan.Replicas = &Change{Before: before, After: after}
	if refused {
		plan.Refused = fmt.Sprintf("data servers that would be removed own directories that can't move between volumes (%s): at least %s are needed. Remove those directories first; to list them: kubectl howdah status --directories",
			whyItStays(fs), plural(int(needed), "data server"))
	}
	for ordinal := range max(before, after) {
		l := Load{Name: naming.DataServer(fs.Name, ordinal), Ready: ordinal < after}
		l.Before, l.After = counts[l.Name], counts[l.Name]
		for _, m := range moves {
			if m.From == l.Name {
				l.After--
			}
			if m.To == l.Name {
				l.After++
			}
		}
		switch {
		case ordinal >= before:
			l.Change = "New"
		case ordinal >= after:
			l.Change = "Removed"
		}
		plan.Servers = append(plan.Servers, l)
	}
	switch {
	case after > before:
		plan.Notes = append(plan.Notes, "Existing directories stay where they are. New directories go to the new servers until each share is spread evenly.",
			"The plan does not check whether the nodes have room for the pods.")
	case after < before && isShared(fs):
		plan.Notes = append(plan.Notes, notes...)
	case after < before:
		plan.Notes = append(append(plan.Notes, notes...), "The claims of removed servers stay, with their data. To list them: kubectl get pvc")
	}
	return plan
}

// Text is the model as text.
func (p Plan) Text(page text.Page) string {
	var b strings.Builder
	title := "FileServer " + p.FileServer
	if p.Share != "" {
		title = "FileShare " + p.Share
	}
	head := []text.Span{text.S(text.Strong, title)}
	if p.Replicas != nil {
		head = append(head, some(fmt.Sprintf("%d data servers now, %d after", p.Replicas.Before, p.Replicas.After))...)
	}
	if p.Refused != "" {
		head = append(head, text.S(text.Bad, "Refused"), text.S(text.Plain, p.Refused))
	}
	b.WriteString(page.Paragraph("", "  ", head...))
	if len(p.Directories) > 0 {
		rows := [][]text.Span{}
		for _, d := range p.Directories {
			server, how := d.Server, "new"
			switch {
			case d.Exists:
				how = "exists"
			case d.In != "":
				how = "in " + d.In
			case server == "":
				server, how = "-", "above the share's depth: on no data server"
			}
			if d.Volume > 0 {
				server += fmt.Sprintf(", volume %d", d.Volume)
			}
			rows = append(rows, []text.Span{text.S(text.Plain, d.Path), text.S(text.Strong, server), text.S(text.Faint, how)})
		}
		b.WriteString("\n" + page.Table([]string{"DIRECTORY", "SERVER", ""}, rows))
	}
	writeLoads(&b, page, p.Servers, ByNumber)
	writeNotes(&b, page, p.Notes)
	return b.String()
}

func writeLoads(b *strings.Builder, page text.Page, servers []Load, by By) {
	if len(servers) == 0 {
		return
	}
	head := []string{"SERVER", "DIRECTORIES", "AFTER"}
	if by.isWeighed() {
		head = append(head, by.column(), "AFTER")
	}
	rows := [][]text.Span{}
	for _, l := range servers {
		change := l.Change
		if change == "" && !l.Ready {
			change = "takes no new directories now"
		}
		row := []text.Span{text.S(text.Strong, l.Name), text.S(text.Plain, fmt.Sprint(l.Before)), text.S(text.Plain, fmt.Sprint(l.After))}
		if by.isWeighed() {
			row = append(row, text.S(text.Plain, by.figure(l.WeightBefore)), text.S(text.Plain, by.figure(l.WeightAfter)))
		}
		rows = append(rows, append(row, text.S(text.Busy, change)))
	}
	b.WriteString("\n" + page.Table(append(head, ""), rows))
}

func writeNotes(b *strings.Builder, page text.Page, notes []string) {
	for i, note := range notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(page.Paragraph("", "  ", text.S(text.Faint, note)))
	}
}
