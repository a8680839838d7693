package view

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// Status is the tree of everything: FileServer, data server, share, directory.
type Status struct {
	FileServers []FileServer `json:"fileServers"`
	Hidden      []Hidden     `json:"hidden,omitempty"`
}

// FileServer is a FileServer with its servers and shares.
type FileServer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Elsewhere: it could not be read; only shares that refer to it were.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// NotRead: it is in a Kubernetes namespace that was not to be read.
	NotRead bool `json:"notRead,omitempty"`
	// Missing: it does not exist; shares refer to it.
	Missing bool `json:"missing,omitempty"`
	Condition
	Address string `json:"address,omitempty"`
	// OutsideAddresses are for clients outside the cluster.
	OutsideAddresses []string         `json:"outsideAddresses,omitempty"`
	Ready            int32            `json:"readyServers"`
	Wanted           int32            `json:"wantedServers"`
	Space            Space            `json:"space"`
	NamespaceServers NamespaceServers `json:"namespaceServers"`
	Servers          []DataServer     `json:"servers,omitempty"`
	Shares           []Share          `json:"shares,omitempty"`
}

// NamespaceServers is the namespace servers.
type NamespaceServers struct {
	Condition
	Connections *Connections `json:"connections,omitempty"`
}

// DataServer is a data server with the parts of shares that it owns.
type DataServer struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
	// OutsideAddresses are for clients outside the cluster.
	OutsideAddresses []string     `json:"outsideAddresses,omitempty"`
	Space            *Space       `json:"space,omitempty"`
	Connections      *Connections `json:"connections,omitempty"`
	// RestartPending are the options of spec.nfs that it uses from its next start.
	RestartPending []string `json:"restartPending,omitempty"`
	// LastEnd is nil if none is known.
	LastEnd *End   `json:"lastEnd,omitempty"`
	Shares  []Part `json:"shares,omitempty"`
}

// Part is what a data server has of a share.
type Part struct {
	// Share is the name among the FileServer's shares: NAMESPACE.NAME for one of another Kubernetes namespace.
	Share string `json:"share"`
	Count int    `json:"directories"`
	// Single: the whole share is on this data server.
	Single bool `json:"single,omitempty"`
	// Directories are all directories if all were requested, else those that are not Ready.
	Directories []Directory `json:"list,omitempty"`
}

// Directory is a directory that a data server owns.
type Directory struct {
	Path   string `json:"path"`
	Server string `json:"server,omitempty"`
	Volume int32  `json:"volume"`
	State  string `json:"state"`
}

// Share is a FileShare.
type Share struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	Condition
	Layout      string `json:"layout,omitempty"`
	Directories int32  `json:"directories"`
	NotReady    int32  `json:"directoriesNotReady,omitempty"`
	// Quota is the limit that the storage enforces (total; 0 if there is none) and what is used; nil if neither is known.
	Quota *Space `json:"quota,omitempty"`
	// Attached: the share is in another Kubernetes namespace, and only its ShareAttachment could be read.
	Attached bool `json:"attached,omitempty"`
}

// NewStatus makes the tree of what was read, with every directory if all is set.
func NewStatus(w *World, all bool) Status {
	status := Status{FileServers: []FileServer{}, Hidden: w.Hidden}
	byOwner := ownedDirectories(w)
	for i := range w.FileServers {
		status.FileServers = append(status.FileServers, newFileServer(w, &w.FileServers[i], byOwner, all))
	}
	status.FileServers = append(status.FileServers, elsewhere(w)...)
	slices.SortFunc(status.FileServers, func(a, b FileServer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), placement.CompareNatural(a.Name, b.Name))
	})
	return status
}

// IsWell reports whether everything is Ready.
func (s Status) IsWell() bool {
	for _, fs := range s.FileServers {
		if !fs.Elsewhere && fs.Health != Well { // One that is missing is not.
			return false
		}
		for _, share := range fs.Shares {
			if !share.Attached && share.Health != Well {
				return false
			}
		}
	}
	return true
}

// owner is a data server with its FileServer's Kubernetes namespace.
type owner struct{ namespace, server string }

// ownedDirectories groups the ShareDirectories by data server and share, in one pass: there can be 100,000.
func ownedDirectories(w *World) map[owner]map[string][]*internalv1.ShareDirectory {
	by := map[owner]map[string][]*internalv1.ShareDirectory{}
	for i := range w.Directories {
		d := &w.Directories[i]
		if d.Spec.DataServerRef.Name == "" || d.Labels[v1alpha1.RetainedLabel] == v1alpha1.RetainedTrue {
			continue
		}
		of := owner{d.Namespace, d.Spec.DataServerRef.Name}
		if by[of] == nil {
			by[of] = map[string][]*internalv1.ShareDirectory{}
		}
		by[of][d.Spec.FileShareRef.Name] = append(by[of][d.Spec.FileShareRef.Name], d)
	}
	return by
}

func newFileServer(w *World, fs *v1alpha1.FileServer, byOwner map[owner]map[string][]*internalv1.ShareDirectory, all bool) FileServer {
	is := FileServer{
		Namespace: fs.Namespace, Name: fs.Name, Condition: summary(fs.Status.Conditions, v1alpha1.ConditionReady), Address: fs.Status.Address,
		OutsideAddresses: fs.Status.OutsideAddresses,
		Ready:            ptr.Deref(fs.Status.ReadyReplicas, 0), Wanted: ptr.Deref(fs.Status.Replicas, fs.Spec.Replicas),
		Space: Space{Used: ptr.Deref(fs.Status.Capacity.UsedBytes, 0), Total: ptr.Deref(fs.Status.Capacity.TotalBytes, 0)},
		NamespaceServers: NamespaceServers{
			Condition: summary(fs.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable), Connections: connectionsOf(fs.Status.NamespaceServers.Connections),
		},
	}
	data := w.dataServersOf(fs)
	for i := range fs.Status.Servers {
		is.Servers = append(is.Servers, newDataServer(w, fs, &fs.Status.Servers[i], data, byOwner, all))
	}
	slices.SortFunc(is.Servers, func(a, b DataServer) int { return placement.CompareNatural(a.Name, b.Name) })
	is.Shares = sharesIn(w, fs)
	return is
}

func newDataServer(
	w *World, fs *v1alpha1.FileServer, reported *v1alpha1.FileServerServerStatus, data []*internalv1.DataServer,
	byOwner map[owner]map[string][]*internalv1.ShareDirectory, all bool,
) DataServer {
	server := DataServer{
		Name: reported.Name, State: string(reported.State), Node: reported.NodeName, Address: reported.Address, Connections: connectionsOf(reported.Connections),
		OutsideAddresses: reported.OutsideAddresses, LastEnd: lastEnd(w.Now, reported, nil), RestartPending: reported.RestartPending,
	}
	for _, d := range data {
		if d.Name != reported.Name {
			continue
		}
		server.LastEnd = lastEnd(w.Now, reported, d)
		server.Space = spaceOf(d)
		if c := condition(d.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status != "True" && reported.State != v1alpha1.ServerServing {
			server.Message = c.Message
		}
	}
	if pod := w.pod(fs.Namespace, reported.Name); pod != nil && reported.State != v1alpha1.ServerServing {
		server.Message = cmp.Or(podTrouble(pod).message, server.Message)
	}
	if w.IsHidden(ResourceShareDirectories, fs.Namespace) {
		server.Shares = reportedParts(w, fs, reported.Name)
		return server
	}
	for key, directories := range byOwner[owner{fs.Namespace, reported.Name}] {
		if directories[0].Spec.FileServerRef.Name == fs.Name {
			server.Shares = append(server.Shares, newPart(key, directories, all))
		}
	}
	slices.SortFunc(server.Shares, func(a, b Part) int { return placement.CompareNatural(a.Share, b.Share) })
	return server
}

func newPart(key string, directories []*internalv1.ShareDirectory, all bool) Part {
	part := Part{Share: key, Count: len(directories), Single: len(directories) == 1 && directories[0].Spec.Path == "."}
	for _, d := range directories {
		if all && !part.Single || d.State() != internalv1.DirectoryReady {
			part.Directories = append(part.Directories, Directory{Path: d.Spec.Path, Volume: ptr.Deref(d.Spec.Volume, 0), State: string(d.State())})
		}
	}
	slices.SortFunc(part.Directories, func(a, b Directory) int { return placement.CompareNatural(a.Path, b.Path) })
	return part
}

// reportedParts is what the statuses of shares report of a data server, for users who may not read ShareDirectories.
func reportedParts(w *World, fs *v1alpha1.FileServer, server string) (parts []Part) {
	for _, share := range w.sharesOf(fs.Namespace, fs.Name) {
		for _, per := range share.Status.Directories.PerServer {
			if n := ptr.Deref(per.Count, 0); per.Name == server && n > 0 {
				parts = append(parts, Part{Share: naming.KeyOf(share), Count: int(n), Single: share.Spec.Layout == v1alpha1.LayoutSingle})
			}
		}
	}
	return parts
}

func spaceOf(d *internalv1.DataServer) *Space {
	if len(d.Status.Volumes) == 0 {
		return nil
	}
	var sum Space
	for _, v := range d.Status.Volumes {
		sum.Used += ptr.Deref(v.UsedBytes, 0)
		sum.Total += ptr.Deref(v.TotalBytes, 0)
	}
	return &sum
}

// sharesIn are the shares of a FileServer: the FileShares that were read, and the attachments of those in other namespaces.
func sharesIn(w *World, fs *v1alpha1.FileServer) (shares []Share) {
	for _, share := range w.sharesOf(fs.Namespace, fs.Name) {
		shares = append(shares, newShare(share))
	}
	for i := range w.Attachments {
		a := &w.Attachments[i]
		if a.Namespace != fs.Namespace || a.Spec.FileServerRef.Name != fs.Name {
			continue
		}
		if namespace, name := naming.ShareOfKey(a.Namespace, a.Spec.FileShareRef.Name); w.FileShare(namespace, name) == nil {
			shares = append(shares, Share{Namespace: namespace, Name: name, Path: a.Spec.Path, Layout: string(a.Spec.Layout), Attached: true})
		}
	}
	return shares
}

func newShare(share *v1alpha1.FileShare) Share {
	count := ptr.Deref(share.Status.Directories.Count, 0)
	return Share{
		Namespace: share.Namespace, Name: share.Name, Path: share.Spec.Path, Condition: summary(share.Status.Conditions, v1alpha1.ConditionReady),
		Layout: string(share.Spec.Layout), Directories: count, NotReady: count - ptr.Deref(share.Status.Directories.Ready, 0),
		Quota: quotaOf(share),
	}
}

func quotaOf(share *v1alpha1.FileShare) *Space {
	size, used := share.Status.Quota.Size, share.Status.Quota.Used
	if size == nil && used == nil {
		return nil
	}
	var quota Space
	if used != nil {
		quota.Used = used.Value()
	}
	if size != nil {
		quota.Total = size.Value()
	}
	return &quota
}

// elsewhere are the FileServers that shares refer to and that were not read.
func elsewhere(w *World) (servers []FileServer) {
	seen := map[owner]bool{}
	for i := range w.FileShares {
		of := owner{naming.ServerNamespace(&w.FileShares[i]), w.FileShares[i].Spec.FileServerRef.Name}
		if seen[of] || w.FileServer(of.namespace, of.server) != nil {
			continue
		}
		seen[of] = true
		fs := FileServer{Namespace: of.namespace, Name: of.server, Condition: Condition{Health: Unseen}}
		looked := w.Namespace == "" || w.Namespace == of.namespace
		fs.Missing = looked && !w.IsHidden(ResourceFileServers, of.namespace)
		fs.Elsewhere, fs.NotRead = !fs.Missing, !looked
		for _, share := range w.sharesOf(of.namespace, of.server) {
			fs.Shares = append(fs.Shares, newShare(share))
		}
		servers = append(servers, fs)
	}
	return servers
}
