package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/text"
)

// maxUnready is how many directories that are not Ready are listed for a share on a server, unless all are requested.
const maxUnready = 5

// Text draws the tree.
func (s Status) Text(page text.Page, all bool) string {
	var b strings.Builder
	none := len(s.FileServers) == 0
	if none && slices.ContainsFunc(s.Hidden, func(h Hidden) bool { return h.Resource == ResourceFileServers || h.Resource == ResourceFileShares }) {
		none = false // There may be some.
	}
	if none {
		b.WriteString(page.Paragraph("", "", text.S(text.Plain,
			"There is no FileServer and no FileShare in this namespace. kubectl howdah status -A shows all namespaces; config/samples has examples to apply.")))
	}
	for i := range s.FileServers {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(page.Tree(s.FileServers[i].line(all)))
	}
	b.WriteString(hiddenText(page, s.Hidden))
	return b.String()
}

// whyElsewhere says why a FileServer that shares refer to is not shown.
func (fs *FileServer) whyElsewhere() string {
	if fs.NotRead {
		return "in another namespace: kubectl howdah status " + fs.Name + " -n " + fs.Namespace
	}
	return "not shown: it does not exist, or you may not read it"
}

func (fs *FileServer) line(all bool) *text.Line {
	name := text.S(text.Strong, "FileServer "+fs.Namespace+"/"+fs.Name)
	if fs.Elsewhere {
		root := text.NewLine(name, text.S(text.Faint, fs.whyElsewhere()+"; shares that refer to it:"))
		fs.addShares(root)
		return root
	}
	if fs.Missing {
		root := text.NewLine(name, text.S(text.Bad, "not found"), text.S(text.Plain, "shares that refer to it:"))
		fs.addShares(root)
		return root
	}
	root := text.NewLine(name)
	facts := some(fmt.Sprintf("%d of %d data servers", fs.Ready, fs.Wanted), fs.Address, outsideWords(fs.OutsideAddresses), fs.Space.words())
	root.Spans = append(root.Spans, slices.Insert(fs.words(), 1, facts...)...)
	namespaceServers := root.Add(text.S(text.Strong, "namespace servers"))
	namespaceServers.Spans = append(namespaceServers.Spans, fs.NamespaceServers.words()...)
	namespaceServers.Spans = append(namespaceServers.Spans, some(fs.NamespaceServers.Connections.words())...)
	for i := range fs.Servers {
		fs.Servers[i].add(root, all)
	}
	if len(fs.Shares) > 0 {
		fs.addShares(root.Add(text.S(text.Strong, "shares")))
	}
	return root
}

func (s *DataServer) add(root *text.Line, all bool) {
	style := text.Busy
	switch v1alpha1.ServerState(s.State) {
	case v1alpha1.ServerServing:
		style = text.Good
	case v1alpha1.ServerUnavailable:
		style = text.Bad
	}
	line := root.Add(text.S(text.Strong, s.Name), text.S(style, s.State))
	space := ""
	if s.Space != nil {
		space = s.Space.words()
	}
	line.Spans = append(line.Spans, some(s.Node, s.Address, outsideWords(s.OutsideAddresses), space, s.Connections.words(), s.Message)...)
	if len(s.RestartPending) > 0 {
		line.Add(text.S(text.Busy, "uses earlier "+strings.Join(s.RestartPending, ", ")+" until it restarts"))
	}
	if s.LastEnd != nil {
		line.Add(s.LastEnd.words()...)
	}
	for _, part := range s.Shares {
		what := plural(part.Count, "directory")
		if part.Single {
			what = "the whole share"
		}
		below := line.Add(text.S(text.Plain, part.Share), text.S(text.Faint, what))
		shown := part.Directories
		if !all {
			shown = shown[:min(len(shown), maxUnready)]
		}
		for _, d := range shown {
			l := below.Add(text.S(text.Plain, d.Path))
			if d.State != "Ready" {
				l.Spans = append(l.Spans, text.S(text.Busy, d.State))
			}
			if d.Volume > 0 {
				l.Spans = append(l.Spans, text.S(text.Faint, fmt.Sprintf("volume %d", d.Volume)))
			}
		}
		if more := len(part.Directories) - len(shown); more > 0 {
			below.Add(text.S(text.Faint, fmt.Sprintf("and %d more that are not Ready", more)))
		}
	}
}

// outsideWords are the addresses for clients outside the cluster; "" if there are none.
func outsideWords(addresses []string) string {
	if len(addresses) == 0 {
		return ""
	}
	return "outside " + strings.Join(addresses, " or ")
}

func (fs *FileServer) addShares(to *text.Line) {
	for _, share := range fs.Shares {
		name := share.Name
		if share.Namespace != fs.Namespace {
			name = share.Namespace + "/" + name
		}
		line := to.Add(text.S(text.Strong, name), text.S(text.Plain, share.Path))
		if share.Attached {
			line.Spans = append(line.Spans, text.S(text.Faint, "in another namespace"))
			continue
		}
		directories := plural(int(share.Directories), "directory")
		if share.NotReady > 0 {
			directories += fmt.Sprintf(" (%d not Ready)", share.NotReady)
		}
		if share.Layout == string(v1alpha1.LayoutSingle) {
			directories = share.Layout
		}
		line.Spans = append(line.Spans, some(directories, share.quotaWords())...)
		line.Spans = append(line.Spans, share.words()...)
	}
}

// quotaWords are what is used of a share's quota, or of the storage by a share without one; "" if neither is known.
func (s *Share) quotaWords() string {
	switch {
	case s.Quota == nil:
		return ""
	case s.Quota.Total > 0:
		return "quota: " + s.Quota.words()
	}
	return bytes(s.Quota.Used) + " used"
}

// hiddenText is a line on what could not be read, and the rights that are missing.
func hiddenText(page text.Page, hidden []Hidden) string {
	if len(hidden) == 0 {
		return ""
	}
	type missing struct{ right, where string }
	var sentences, others []string
	var order []missing
	rights, internal, public := map[missing][]string{}, false, false
	for _, h := range hidden {
		where := missing{h.Right, "in all namespaces"}
		if h.Namespace != "" {
			where.where = "in namespace " + h.Namespace
		}
		if h.Right == "" {
			others = append(others, h.Resource+" ("+h.Message+")")
			continue
		}
		isInternal := strings.HasSuffix(h.Resource, ".internal.howdah.io")
		internal, public = internal || isInternal, public || !isInternal && strings.HasSuffix(h.Resource, ".howdah.io")
		if rights[where] == nil {
			order = append(order, where)
		}
		rights[where] = append(rights[where], h.Resource)
	}
	for _, where := range order {
		sentences = append(sentences, fmt.Sprintf("you may not %s %s %s", where.right, strings.Join(rights[where], ", "), where.where))
	}
	switch {
	case public && internal:
		sentences[len(sentences)-1] += " (Kubernetes' role view allows to read them, and for the internal kinds the ClusterRole howdah-support)"
	case public:
		sentences[len(sentences)-1] += " (Kubernetes' role view allows it)"
	case internal:
		sentences[len(sentences)-1] += " (the ClusterRole howdah-support allows to read the internal kinds)"
	}
	if len(others) > 0 {
		sentences = append(sentences, "could not read "+strings.Join(others, ", "))
	}
	return page.Paragraph("Hidden: ", "  ", text.S(text.Faint, strings.Join(sentences, "; ")))
}
