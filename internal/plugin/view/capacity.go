package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Capacity is what FileServers' volumes have and what their shares take.
type Capacity struct {
	FileServers []FileServerSpace `json:"fileServers"`
	Hidden      []Hidden          `json:"hidden,omitempty"`
}

// FileServerSpace is what a FileServer has. The sums count a file system once that several volumes are on.
type FileServerSpace struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Provisioned int64        `json:"provisionedBytes,omitempty"`
	Total       int64        `json:"totalBytes"`
	Used        int64        `json:"usedBytes"`
	Free        int64        `json:"freeBytes"`
	Volumes     []Volume     `json:"volumes,omitempty"`
	Shares      []ShareSpace `json:"shares,omitempty"`
	// Shared: all data servers have one storage (Ceph).
	Shared bool `json:"shared,omitempty"`
}

// Volume is a volume of a data server, or the storage that all have.
type Volume struct {
	Server string `json:"server"`
	Index  int32  `json:"index"`
	Claim  string `json:"claim,omitempty"`
	// Provisioned is the claim's size; 0 if it could not be read.
	Provisioned int64 `json:"provisionedBytes,omitempty"`
	Total       int64 `json:"totalBytes"`
	Used        int64 `json:"usedBytes"`
	Free        int64 `json:"freeBytes"`
	// Inodes is how many of a hundred are used; nil if there is no fixed number.
	Inodes *int64 `json:"inodesPercent,omitempty"`
	Fill   string `json:"fill,omitempty"`
	// FullTime is when it will be full at the present rate.
	FullTime *time.Time `json:"fullTime,omitempty"`
	// Notes are what one should know of these figures.
	Notes []string `json:"notes,omitempty"`
}

// ShareSpace is what a share takes.
type ShareSpace struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Directories are by data server.
	Directories map[string]int `json:"directories,omitempty"`
	// Used is nil where the storage does not count it: several shares are on one volume.
	Used  *int64 `json:"usedBytes,omitempty"`
	Quota int64  `json:"quotaBytes,omitempty"`
}

// sizeTolerance is by which part a file system may differ from its claim: its own tables take some.
const sizeTolerance = 10

// NewCapacity makes it of what was read.
func NewCapacity(w *World) Capacity {
	capacity := Capacity{FileServers: []FileServerSpace{}, Hidden: w.Hidden}
	for i := range w.FileServers {
		capacity.FileServers = append(capacity.FileServers, newSpace(w, &w.FileServers[i]))
	}
	slices.SortFunc(capacity.FileServers, func(a, b FileServerSpace) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), placement.CompareNatural(a.Name, b.Name))
	})
	return capacity
}

func newSpace(w *World, fs *v1alpha1.FileServer) FileServerSpace {
	sum := fs.Status.Capacity
	space := FileServerSpace{
		Namespace: fs.Namespace, Name: fs.Name, Provisioned: ptr.Deref(sum.ProvisionedBytes, 0), Total: ptr.Deref(sum.TotalBytes, 0),
		Used:   ptr.Deref(sum.UsedBytes, 0),
		Shared: len(fs.Spec.Storage.Ceph.External.Monitors) > 0 || fs.Spec.Storage.Ceph.Rook.ClusterRef.Name != "",
	}
	space.Free = ptr.Deref(sum.FreeBytes, max(0, space.Total-space.Used))
	servers := w.dataServersOf(fs)
	slices.SortFunc(servers, func(a, b *internalv1.DataServer) int { return placement.CompareNatural(a.Name, b.Name) })
	first := map[string]string{} // Where a file system was seen first.
	for _, server := range servers {
		for i := range server.Status.Volumes {
			if usage := &server.Status.Volumes[i]; usage.Index != nil && !space.Shared {
				space.Volumes = append(space.Volumes, newVolume(w, fs, server, usage, first))
			}
		}
	}
	for _, share := range w.sharesOf(fs.Namespace, fs.Name) {
		space.Shares = append(space.Shares, newShareSpace(share))
	}
	slices.SortFunc(space.Shares, func(a, b ShareSpace) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), placement.CompareNatural(a.Name, b.Name))
	})
	return space
}

func newVolume(w *World, fs *v1alpha1.FileServer, server *internalv1.DataServer, usage *internalv1.VolumeUsage, first map[string]string) Volume {
	volume := Volume{
		Server: server.Name, Index: *usage.Index, Total: ptr.Deref(usage.TotalBytes, 0), Used: ptr.Deref(usage.UsedBytes, 0), Fill: string(usage.Fill),
	}
	volume.Free = ptr.Deref(usage.FreeBytes, max(0, volume.Total-volume.Used))
	if total := ptr.Deref(usage.TotalFiles, 0); total > 0 {
		volume.Inodes = ptr.To(ptr.Deref(usage.UsedFiles, 0) * 100 / total)
	}
	if usage.FullTime != nil {
		volume.FullTime = &usage.FullTime.Time
	}
	if fill := fleet.DescribeFill(usage); fill != "" {
		volume.Notes = append(volume.Notes, fill)
	} else if usage.FullTime != nil {
		volume.Notes = append(volume.Notes, "full about "+usage.FullTime.UTC().Format("2006-01-02 15:04")+" UTC at the present rate")
	}
	if ordinal, ours := naming.DataServerOrdinal(fs.Name, server.Name); ours {
		volume.Claim = naming.VolumeClaim(fs.Name, ordinal, *usage.Index)
	}
	at := slices.IndexFunc(w.Claims, func(c corev1.PersistentVolumeClaim) bool {
		return c.Namespace == fs.Namespace && c.Name == volume.Claim
	})
	if at >= 0 {
		claim := &w.Claims[at]
		has, wants := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
		volume.Provisioned = has.Value()
		if wants.Cmp(has) > 0 {
			volume.Notes = append(volume.Notes, "its claim grows to "+bytes(wants.Value()))
		}
	}
	id, name := usage.FileSystemID, server.Name+" volume "+fmt.Sprint(*usage.Index)
	if other, seen := first[id]; seen && id != "" {
		volume.Notes = append(volume.Notes, "the same file system as "+other+": its space counts once")
	} else if id != "" {
		first[id] = name
	}
	if p := volume.Provisioned; p > 0 && (volume.Total > p+p/sizeTolerance || usage.SharedFileSystem != "") {
		volume.Notes = append(volume.Notes, "nothing keeps it to its claim's size")
	}
	return volume
}

func newShareSpace(share *v1alpha1.FileShare) ShareSpace {
	space := ShareSpace{Namespace: share.Namespace, Name: share.Name}
	if used := share.Status.Quota.Used; used != nil {
		space.Used = ptr.To(used.Value())
	}
	if size := share.Status.Quota.Size; size != nil {
		space.Quota = size.Value()
	}
	for _, per := range share.Status.Directories.PerServer {
		if n := int(ptr.Deref(per.Count, 0)); n > 0 {
			if space.Directories == nil {
				space.Directories = map[string]int{}
			}
			space.Directories[per.Name] = n
		}
	}
	return space
}

// Text draws it.
func (c Capacity) Text(page text.Page) string {
	var b strings.Builder
	for i := range c.FileServers {
		if i > 0 {
			b.WriteString("\n")
		}
		c.FileServers[i].write(&b, page)
	}
	b.WriteString(hiddenText(page, c.Hidden))
	return b.String()
}

func (f *FileServerSpace) write(b *strings.Builder, page text.Page) {
	head := []text.Span{text.S(text.Strong, "FileServer "+f.Namespace+"/"+f.Name)}
	if f.Total > 0 {
		provisioned := ""
		if f.Provisioned > 0 {
			provisioned = bytes(f.Provisioned) + " provisioned"
		}
		head = append(head, some(provisioned, bytes(f.Total)+" in file systems", bytes(f.Used)+" used", bytes(f.Free)+" free")...)
	} else {
		head = append(head, text.S(text.Faint, "no data server has reported its volumes yet"))
	}
	b.WriteString(page.Paragraph("", "  ", head...))
	if len(f.Volumes) > 0 {
		var rows [][]text.Span
		for i := range f.Volumes {
			rows = append(rows, f.Volumes[i].row())
		}
		b.WriteString("\n" + page.Table([]string{"SERVER", "CLAIM", "PROVISIONED", "SIZE", "USED", "FREE", "FULL", "INODES"}, rows))
		f.writeNotes(b, page)
	}
	if len(f.Shares) > 0 {
		var rows [][]text.Span
		for i := range f.Shares {
			rows = append(rows, f.Shares[i].row(f.Namespace))
		}
		b.WriteString("\n" + page.Table([]string{"SHARE", "USED", "QUOTA", "DIRECTORIES"}, rows))
	}
	if !f.Shared && len(f.Shares) > 0 {
		b.WriteString("\n" + page.Paragraph("", "", text.S(text.Faint, "What a share takes of a volume that has several is not counted: du in a client says it.")))
	}
}

// writeNotes writes a line for each volume that there is something to say of.
func (f *FileServerSpace) writeNotes(b *strings.Builder, page text.Page) {
	for i := range f.Volumes {
		if v := &f.Volumes[i]; len(v.Notes) > 0 {
			b.WriteString(page.Paragraph("", "  ", text.S(text.Strong, v.Claim), text.S(v.style(), strings.Join(v.Notes, "; "))))
		}
	}
}

func (v *Volume) style() text.Style {
	switch {
	case v.Fill == string(v1alpha1.FillFull) || v.Fill == string(v1alpha1.FillAbove95):
		return text.Bad
	case v.Fill != "":
		return text.Busy
	}
	return text.Plain
}

func (v *Volume) row() []text.Span {
	style := v.style()
	full, inodes, provisioned := "?", "-", "?"
	if all := v.Used + v.Free; all > 0 {
		full = fmt.Sprintf("%d%%", int(float64(v.Used)/float64(all)*100))
	}
	if v.Inodes != nil {
		inodes = fmt.Sprintf("%d%%", *v.Inodes)
	}
	if v.Provisioned > 0 {
		provisioned = bytes(v.Provisioned)
	}
	return []text.Span{
		text.S(text.Strong, v.Server), text.S(text.Plain, v.Claim), text.S(text.Plain, provisioned), text.S(text.Plain, bytes(v.Total)), text.S(text.Plain, bytes(v.Used)),
		text.S(text.Plain, bytes(v.Free)), text.S(style, full), text.S(text.Plain, inodes),
	}
}

func (s *ShareSpace) row(namespace string) []text.Span {
	name, used, quota := s.Name, "not counted", "-"
	if s.Namespace != namespace {
		name = s.Namespace + "/" + s.Name
	}
	if s.Used != nil {
		used = bytes(*s.Used)
	}
	if s.Quota > 0 {
		quota = bytes(s.Quota)
	}
	var on []string
	for server, n := range s.Directories {
		on = append(on, fmt.Sprintf("%s %d", server, n))
	}
	slices.SortFunc(on, placement.CompareNatural)
	return []text.Span{text.S(text.Strong, name), text.S(text.Plain, used), text.S(text.Plain, quota), text.S(text.Plain, strings.Join(on, ", "))}
}
