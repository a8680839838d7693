package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Tree is a share with the data servers that own its directories.
type Tree struct {
	Share
	FileServer string `json:"fileServer"`
	// Servers are the data servers, with the part of the share that each owns.
	Servers []ShareServer `json:"servers,omitempty"`
	// List is every directory that a data server owns, by path.
	List   []Directory `json:"list,omitempty"`
	Hidden []Hidden    `json:"hidden,omitempty"`
}

// ShareServer is what a data server has of a share.
type ShareServer struct {
	Name        string       `json:"name"`
	State       string       `json:"state,omitempty"`
	Node        string       `json:"node,omitempty"`
	Count       int          `json:"directories"`
	Space       *Space       `json:"space,omitempty"`
	Connections *Connections `json:"connections,omitempty"`
}

// NewTree makes the tree of a share. Its FileServer may be unknown.
func NewTree(w *World, share *v1alpha1.FileShare) Tree {
	namespace, name := naming.ServerNamespace(share), share.Spec.FileServerRef.Name
	tree := Tree{Share: newShare(share), FileServer: namespace + "/" + name, Hidden: w.Hidden}
	counts := map[string]int{}
	for _, d := range w.directoriesOf(namespace, name, naming.KeyOf(share)) {
		tree.List = append(tree.List, Directory{
			Path: d.Spec.Path, Server: d.Spec.DataServerRef.Name, Volume: ptr.Deref(d.Spec.Volume, 0), State: string(d.State()),
		})
		counts[d.Spec.DataServerRef.Name]++
	}
	if len(tree.List) == 0 {
		for _, per := range share.Status.Directories.PerServer {
			counts[per.Name] = int(ptr.Deref(per.Count, 0))
		}
	}
	servers := map[string]ShareServer{}
	for server, count := range counts {
		servers[server] = ShareServer{Name: server, Count: count}
	}
	if fs := w.FileServer(namespace, name); fs != nil {
		for _, reported := range fs.Status.Servers {
			servers[reported.Name] = ShareServer{
				Name: reported.Name, State: string(reported.State), Node: reported.NodeName, Count: counts[reported.Name], Connections: connectionsOf(reported.Connections),
			}
		}
		for _, d := range w.dataServersOf(fs) {
			if s, ok := servers[d.Name]; ok {
				s.Space = spaceOf(d)
				servers[d.Name] = s
			}
		}
	}
	for _, s := range servers {
		tree.Servers = append(tree.Servers, s)
	}
	slices.SortFunc(tree.Servers, func(a, b ShareServer) int { return placement.CompareNatural(a.Name, b.Name) })
	return tree
}

// maxListed is how many entries of one directory are listed unless all are requested.
const maxListed = 16

// Text draws it.
func (t Tree) Text(page text.Page, all bool) string {
	var b strings.Builder
	head := append([]text.Span{text.S(text.Strong, "FileShare "+t.Namespace+"/"+t.Name)}, t.words()...)
	b.WriteString(page.Paragraph("", "  ", append(head, some(t.Path, "of FileServer "+t.FileServer, t.Layout, plural(int(t.Directories), "directory"), t.quotaWords())...)...))
	if len(t.Servers) > 0 {
		b.WriteString("\n" + page.Table([]string{"SERVER", "STATE", "DIRECTORIES", "FULL", "CONNECTIONS", "NODE"}, t.rows()))
	}
	if len(t.List) > 0 {
		b.WriteString("\n" + page.Tree(t.branches(all)))
	}
	b.WriteString(hiddenText(page, t.Hidden))
	return b.String()
}

func (t *Tree) rows() (rows [][]text.Span) {
	for _, s := range t.Servers {
		style := text.Busy
		if s.State == string(v1alpha1.ServerServing) {
			style = text.Good
		} else if s.State == string(v1alpha1.ServerUnavailable) {
			style = text.Bad
		}
		full, used := "?", "?"
		if s.Space != nil && s.Space.Total > 0 {
			full = fmt.Sprintf("%d%% of %s", s.Space.Used*100/s.Space.Total, bytes(s.Space.Total))
		}
		if s.Connections != nil {
			used = fmt.Sprintf("%d of %d", s.Connections.Used, s.Connections.Limit)
		}
		rows = append(rows, []text.Span{
			text.S(text.Strong, s.Name), text.S(style, cmp.Or(s.State, "?")), text.S(text.Plain, fmt.Sprint(s.Count)), text.S(text.Plain, full),
			text.S(text.Plain, used), text.S(text.Plain, cmp.Or(s.Node, "?")),
		})
	}
	return rows
}

// branches are the directories by the directories that they are in.
func (t *Tree) branches(all bool) *text.Line {
	root := text.NewLine(text.S(text.Strong, t.Path))
	above := map[string]*text.Line{"": root}
	in := map[string][]Directory{}
	var order []string
	for _, d := range t.List {
		parent := ""
		if at := strings.LastIndexByte(d.Path, '/'); at >= 0 {
			parent = d.Path[:at]
		}
		if _, seen := in[parent]; !seen {
			order = append(order, parent)
		}
		in[parent] = append(in[parent], d)
	}
	var at func(path string) *text.Line
	at = func(path string) *text.Line {
		if line := above[path]; line != nil {
			return line
		}
		parent, name := "", path
		if cut := strings.LastIndexByte(path, '/'); cut >= 0 {
			parent, name = path[:cut], path[cut+1:]
		}
		above[path] = at(parent).Add(text.S(text.Plain, name+"/"))
		return above[path]
	}
	for _, parent := range order {
		list(at(parent), in[parent], all)
	}
	return root
}

// list puts directories of one directory below its line: all of them, or how many each data server owns.
func list(line *text.Line, directories []Directory, all bool) {
	if !all && len(directories) > maxListed {
		counts, servers := map[string]int{}, []string{}
		var unready []Directory
		for _, d := range directories {
			if counts[d.Server]++; counts[d.Server] == 1 {
				servers = append(servers, d.Server)
			}
			if d.State != string(internalv1.DirectoryReady) {
				unready = append(unready, d)
			}
		}
		slices.SortFunc(servers, placement.CompareNatural)
		line.Spans = append(line.Spans, text.S(text.Faint, plural(len(directories), "directory")))
		for _, server := range servers {
			line.Add(text.S(text.Faint, plural(counts[server], "directory")), text.S(text.Plain, server))
		}
		for _, d := range unready[:min(len(unready), maxUnready)] {
			line.Add(d.spans()...)
		}
		return
	}
	for _, d := range directories {
		line.Add(d.spans()...)
	}
}

func (d Directory) spans() []text.Span {
	name := d.Path[strings.LastIndexByte(d.Path, '/')+1:]
	if name == "." {
		name = "the whole share"
	}
	spans := []text.Span{text.S(text.Plain, name), text.S(text.Strong, d.Server)}
	if d.Volume > 0 {
		spans = append(spans, text.S(text.Faint, fmt.Sprintf("volume %d", d.Volume)))
	}
	if d.State != string(internalv1.DirectoryReady) {
		spans = append(spans, text.S(text.Busy, d.State))
	}
	return spans
}
