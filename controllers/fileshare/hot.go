package fileshare

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/hotdirectories"
)

// hotState is the input of the condition about a share's hot directories.
type hotState struct {
	// entries are spec.hotDirectories, depth is the share's.
	entries []hotdirectories.Entry
	depth   int
	// unsupported is why only owners can serve directories, and what to do; "" if others can.
	unsupported string
	// single: the share is one directory.
	single bool
	// exist reports whether the share has a directory with a path.
	exist func(path string) bool
	// fileServer has servers data servers that take part.
	fileServer string
	servers    int
}

// hotOf returns the state of a share's hot directories. Its FileServer must exist.
func hotOf(o *observed) hotState {
	share := fleet.ShareOf(o.share)
	s := hotState{
		entries: share.HotEntries(), depth: int(share.Depth), single: share.Layout == v1alpha1.LayoutSingle, fileServer: o.fileServer.Name,
		unsupported: backend.Of(o.fileServer).HotDirectoriesRefusal(o.fileServer),
		exist:       func(path string) bool { return o.directories[path] != nil },
	}
	for i := range o.dataServers {
		if server := &o.dataServers[i]; server.DeletionTimestamp == nil && !server.RefusesNewDirectories() {
			s.servers++
		}
	}
	return s
}

// unknownHot is for a share that nothing may be made for.
func unknownHot(o *observed) *metav1.Condition {
	if len(o.share.Spec.HotDirectories) == 0 {
		return nil
	}
	c := conditions.Unknown(v1alpha1.FileShareHotDirectoriesServed, v1alpha1.ReasonPending, "waiting for the share to be placed")
	return &c
}

// hotCondition is HotDirectoriesServed; nil without hot directories. It has no numbers that change with each mkdir.
func hotCondition(s hotState) *metav1.Condition {
	if len(s.entries) == 0 {
		return nil
	}
	c := judgeHot(s)
	return &c
}

func judgeHot(s hotState) metav1.Condition {
	const kind = v1alpha1.FileShareHotDirectoriesServed
	if s.unsupported != "" {
		return conditions.False(kind, v1alpha1.ReasonHotDirectoriesUnsupported, "spec.hotDirectories: "+s.unsupported)
	}
	rules, faults := hotdirectories.Parse(s.entries, s.depth)
	if len(faults) > 0 {
		return conditions.False(kind, v1alpha1.ReasonInvalidHotDirectories, fmt.Sprintf("spec.%s; the entry is not used", faults[0]))
	}
	var missing []string
	for _, path := range slices.SortedFunc(maps.Keys(rules.Named()), byNumber) {
		if !s.exist(path) {
			missing = append(missing, path)
		}
	}
	var text string
	switch named := len(rules.Named()); {
	case s.single:
		text = "the share is hot"
	case named == 0:
		text = "all directories of the share are hot"
	case rules.All():
		text = plural(named, "named directory") + " and all others of the share are hot"
	default:
		text = plural(named, "directory") + map[bool]string{true: " is", false: " are"}[named == 1] + " hot"
	}
	most := 0
	for _, entry := range s.entries {
		most = max(most, entry.Servers)
	}
	if s.servers < most {
		text += fmt.Sprintf("; spec.hotDirectories asks for up to %s, and FileServer %s has %d that take new directories", plural(most, "data server"), s.fileServer, s.servers)
	}
	if len(missing) > 0 {
		text += "; not there yet: " + quoteList(missing)
	}
	return conditions.True(kind, v1alpha1.ReasonReady, text)
}

// withHot adds the condition of the hot directories to others.
func withHot(found []metav1.Condition, hot *metav1.Condition) []metav1.Condition {
	if hot != nil {
		found = append(found, *hot)
	}
	return found
}

// setHot removes the condition of hot directories that there are no more.
func setHot(status *v1alpha1.FileShareStatus, hot *metav1.Condition) {
	if hot == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.FileShareHotDirectoriesServed)
	}
}
