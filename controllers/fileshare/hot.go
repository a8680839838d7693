package fileshare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// search is spec.findHotDirectories, and found are the directories that are hot by it.
	search hotdirectories.Search
	found  []string
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
		entries: share.HotEntries(), search: share.HotSearch(), depth: int(share.Depth), single: share.Layout == v1alpha1.LayoutSingle, fileServer: o.fileServer.Name,
		unsupported: backend.Of(o.fileServer).HotDirectoriesRefusal(o.fileServer),
		exist:       func(path string) bool { return o.directories[path] != nil },
	}
	for i := range o.dataServers {
		if server := &o.dataServers[i]; server.DeletionTimestamp == nil && !server.RefusesNewDirectories() {
			s.servers++
		}
	}
	for path, directory := range o.directories {
		if directory.Status.HotTime != nil && s.search.IsOn() {
			s.found = append(s.found, path)
		}
	}
	slices.SortFunc(s.found, byNumber)
	return s
}

// unknownHot is for a share that nothing may be made for.
func unknownHot(o *observed) *metav1.Condition {
	if share := fleet.ShareOf(o.share); !share.HasHot() {
		return nil
	}
	c := conditions.Unknown(v1alpha1.FileShareHotDirectoriesServed, v1alpha1.ReasonPending, "waiting for the share to be placed")
	return &c
}

// hotCondition is HotDirectoriesServed; nil without hot directories. It has no numbers that change with each mkdir.
func hotCondition(s hotState) *metav1.Condition {
	if len(s.entries) == 0 && !s.search.IsOn() {
		return nil
	}
	c := judgeHot(s)
	return &c
}

func judgeHot(s hotState) metav1.Condition {
	const kind = v1alpha1.FileShareHotDirectoriesServed
	if s.unsupported != "" {
		return conditions.False(kind, v1alpha1.ReasonHotDirectoriesUnsupported, hotFields(s)+": "+s.unsupported)
	}
	rules, faults := hotdirectories.Parse(s.entries, s.depth)
	if len(faults) > 0 {
		return conditions.False(kind, v1alpha1.ReasonInvalidHotDirectories, fmt.Sprintf("spec.%s; the entry is not used", faults[0]))
	}
	var parts []string
	if len(s.entries) > 0 {
		parts = append(parts, describeMarked(s, rules))
	}
	if s.search.IsOn() {
		parts = append(parts, describeSearch(s))
	}
	return conditions.True(kind, v1alpha1.ReasonReady, strings.Join(parts, "; "))
}

// hotFields are the fields by which a share asks for hot directories.
func hotFields(s hotState) string {
	switch {
	case !s.search.IsOn():
		return "spec.hotDirectories"
	case len(s.entries) == 0:
		return "spec.findHotDirectories"
	}
	return "spec.hotDirectories and spec.findHotDirectories"
}

// describeMarked says which directories are hot because the share names them.
func describeMarked(s hotState, rules hotdirectories.Rules) string {
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
	return text
}

// describeSearch says which directories were found.
func describeSearch(s hotState) string {
	text := fmt.Sprintf("no directory is hot because %d clients use it", s.search.Clients)
	if len(s.found) > 0 {
		text = "found hot: " + quoteList(s.found)
		if s.single {
			text = "the share was found hot"
		}
	}
	if s.servers < s.search.Servers {
		text += fmt.Sprintf("; spec.findHotDirectories asks for %s, and FileServer %s has %d that take new directories", plural(s.search.Servers, "data server"), s.fileServer, s.servers)
	}
	return text
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
