package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/naming"
)

// Share is a share as the parts of its FileServer see it. It comes from a FileShare of the FileServer's Kubernetes namespace, or from the ShareAttachment of
// a FileShare of another.
type Share struct {
	// Key is the share's name among those of its FileServer (naming.ShareKey).
	Key string
	// UID is the FileShare's.
	UID string
	// FileServer is the name of its FileServer.
	FileServer string
	// Created decides between shares whose paths conflict: the oldest counts. An attached share is as old as its ShareAttachment.
	Created time.Time
	// Deleting: the object has a deletion timestamp.
	Deleting bool
	// Paused: the operator changes nothing of it (annotation howdah.io/paused).
	Paused bool
	// Generation is the object's.
	Generation int64
	// Tenant is the Kubernetes namespace whose limits it counts for; "" is the FileServer's own.
	Tenant string
	// Path is its place in the FileServer's tree: /NAME or /NAME/NAME.
	Path string
	// Layout, Depth, MaxDirectories, HotDirectories, FindHotDirectories, UserID, GroupID, Mode, Access, IgnoreDataOn and AcceptedLosses are those of its specification, with defaults.
	Layout             v1alpha1.ShareLayout
	Depth              int32
	MaxDirectories     int32
	HotDirectories     []v1alpha1.HotDirectories
	FindHotDirectories v1alpha1.HotDirectorySearch
	UserID, GroupID    *int64
	Mode               string
	Access             []v1alpha1.AccessRule
	IgnoreDataOn       []string
	AcceptedLosses     []string
	// InventoryGeneration is that of the inventories that the operator waits for, at least 1. Inventoried: they are complete.
	InventoryGeneration int64
	Inventoried         bool
}

// ShareOf is a FileShare of its FileServer's Kubernetes namespace.
func ShareOf(o *v1alpha1.FileShare) Share {
	spec := &o.Spec
	share := Share{
		Key: naming.KeyOf(o), UID: string(o.UID), FileServer: spec.FileServerRef.Name,
		Created: o.CreationTimestamp.Time, Deleting: o.DeletionTimestamp != nil, Paused: o.Annotations[v1alpha1.PausedAnnotation] == v1alpha1.PausedTrue,
		Generation: o.Generation, Path: spec.Path, Layout: spec.Layout, Depth: spec.Depth, MaxDirectories: spec.MaxDirectories, HotDirectories: spec.HotDirectories, FindHotDirectories: spec.FindHotDirectories,
		UserID: spec.UID, GroupID: spec.GID, Mode: spec.Mode, Access: spec.Access, IgnoreDataOn: spec.IgnoreDataOn, AcceptedLosses: spec.AcceptedLosses,
		InventoryGeneration: max(1, o.Status.InventoryGeneration), Inventoried: meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.FileShareInventoried),
	}
	if tenant := naming.TenantOf(o); tenant != naming.ServerNamespace(o) {
		share.Tenant = tenant
	}
	return share
}

// ShareOfAttachment is a FileShare of another Kubernetes namespace, which its FileServer allows.
func ShareOfAttachment(o *internalv1.ShareAttachment) Share {
	spec := &o.Spec
	tenant, _ := naming.ShareOfKey("", spec.FileShareRef.Name)
	return Share{
		Key: spec.FileShareRef.Name, UID: spec.FileShareUID, FileServer: spec.FileServerRef.Name,
		Created: o.CreationTimestamp.Time, Deleting: o.DeletionTimestamp != nil, Generation: o.Generation, Tenant: tenant,
		Path: spec.Path, Layout: v1alpha1.ShareLayout(spec.Layout), Depth: spec.Depth, MaxDirectories: spec.MaxDirectories, HotDirectories: spec.HotDirectories, FindHotDirectories: ptr.Deref(spec.FindHotDirectories, v1alpha1.HotDirectorySearch{}),
		UserID: spec.UID, GroupID: spec.GID, Mode: spec.Mode, Access: spec.Access, IgnoreDataOn: spec.IgnoreDataOn, AcceptedLosses: spec.AcceptedLosses,
		InventoryGeneration: max(1, spec.InventoryGeneration), Inventoried: spec.Inventory == internalv1.InventoryComplete,
	}
}

// HotEntries are the share's HotDirectories as internal/hotdirectories takes them.
func (s *Share) HotEntries() []hotdirectories.Entry {
	entries := make([]hotdirectories.Entry, 0, len(s.HotDirectories))
	for _, hot := range s.HotDirectories {
		entries = append(entries, hotdirectories.Entry{Patterns: hot.Paths, Servers: int(hot.DataServers)})
	}
	return entries
}

// HotSearch is the share's FindHotDirectories as internal/hotdirectories takes it.
func (s *Share) HotSearch() hotdirectories.Search {
	search := hotdirectories.Search{Clients: int(s.FindHotDirectories.Clients), Servers: int(s.FindHotDirectories.DataServers)}
	if search.Servers > 0 && search.Clients == 0 {
		search.Clients = v1alpha1.DefaultHotClients
	}
	return search
}

// HasHot reports whether several data servers serve directories of the share, or may.
func (s *Share) HasHot() bool {
	return len(s.HotDirectories) > 0 || s.FindHotDirectories.DataServers > 0
}

// Compare orders shares by age, then by key. Of two shares whose paths conflict the first one counts.
func (s *Share) Compare(other *Share) int {
	return cmp.Or(s.Created.Compare(other.Created), strings.Compare(s.Key, other.Key))
}

// PathsConflict tells whether two paths are equal or one lies in the other.
func PathsConflict(a, b string) bool { return a == b || liesIn(a, b) || liesIn(b, a) }

// liesIn tells whether path is below another. It allocates nothing: thousands of paths are compared.
func liesIn(path, other string) bool {
	return len(path) > len(other) && path[len(other)] == '/' && path[:len(other)] == other
}

// Places are the keys under which an index files a share by its path, and ConflictPlaces those under which the shares are that a path conflicts with: two
// paths conflict if and only if a place of the one is a conflict place of the other.
func Places(path string) []string {
	places := []string{path}
	for at := 1; at < len(path); at++ {
		if path[at] == '/' {
			places = append(places, path[:at+1]) // Something lies below path[:at].
		}
	}
	return places
}

// ConflictPlaces belongs to Places.
func ConflictPlaces(path string) []string {
	places := []string{path, path + "/"}
	for at := 1; at < len(path); at++ {
		if path[at] == '/' {
			places = append(places, path[:at])
		}
	}
	return places
}

// Conflicts are the shares among others that are not being deleted and whose paths conflict with a share's, the oldest first.
func Conflicts(share Share, others []Share) []Share {
	var found []Share
	for i := range others {
		if other := &others[i]; other.Key != share.Key && !other.Deleting && PathsConflict(other.Path, share.Path) {
			found = append(found, *other)
		}
	}
	slices.SortFunc(found, func(a, b Share) int { return a.Compare(&b) })
	return found
}

// Older is the oldest of a share's conflicts that is older than the share, nil if there is none. Then the share is live: data servers export it and the
// namespace shows it. An older one counts even if it is not live itself: otherwise the deletion of a third share could make it live, and take this one from
// its clients.
func Older(share Share, conflicts []Share) *Share {
	if len(conflicts) > 0 && conflicts[0].Compare(&share) < 0 {
		return &conflicts[0]
	}
	return nil
}
