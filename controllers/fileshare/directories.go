package fileshare

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/brace"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/placement"
)

const (
	// maxDeclared is how many directories a share may declare.
	maxDeclared = 10_000
	// createPerPass bounds a pass, so that the status shows progress and other shares are not delayed.
	createPerPass = 500
)

// directoryPlan has the changes of a share's ShareDirectories.
type directoryPlan struct {
	// fault is why some declared directories can't be placed.
	fault *finding
	// declared is the number of directories that the share declares.
	declared int
	// create are the new ShareDirectories, parents first.
	create []*internalv1.ShareDirectory
	// left is the number of directories for a later pass.
	left int
	// change has the ShareDirectories to patch.
	change []directoryChange
	// forget has ShareDirectories whose directories no longer exist.
	forget []*internalv1.ShareDirectory
	// refused has the paths of directories that are no longer declared and hold data.
	refused []string
}

// directoryChange is a ShareDirectory before and after.
type directoryChange struct{ before, after *internalv1.ShareDirectory }

// changes returns the writes of a plan, in stages. A ShareDirectory that already exists is no error: a client's mkdir
// was faster, and its owner applies. Namespace servers also write ShareDirectories; a conflict causes another pass.
func (p *directoryPlan) changes() [][]apply.Change {
	var create, forget []apply.Change
	for _, directory := range p.create {
		create = append(create, apply.Change{Create: directory})
	}
	for _, directory := range p.forget {
		forget = append(forget, apply.Change{Delete: directory, AsRead: true})
	}
	return [][]apply.Change{create, patches(p.change), forget}
}

func patches(changes []directoryChange) (all []apply.Change) {
	for _, change := range changes {
		all = append(all, apply.Change{Before: change.before, After: change.after})
	}
	return all
}

// declaredPaths returns the directories that a share declares.
func declaredPaths(share *v1alpha1.FileShare) ([]string, error) {
	if share.Spec.Layout == v1alpha1.LayoutSingle {
		return []string{tree.RootPath}, nil
	}
	return brace.Directories(share.Spec.Directories, int(share.Spec.Depth), maxDeclared)
}

// directories is the number of directories that count against the limit: all except the root.
func directories(o *observed) int {
	n := len(o.directories)
	if o.directories[tree.RootPath] != nil {
		n--
	}
	return n
}

// parents returns the directories above the paths, parents before children.
func parents(paths []string) []string {
	seen := map[string]bool{}
	for _, path := range paths {
		for at, c := range path {
			if c == '/' {
				seen[path[:at]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// needsPlacement reports whether the share declares directories that have no ShareDirectory.
func needsPlacement(o *observed) bool {
	if o.fileServer == nil || o.refused || o.share.DeletionTimestamp != nil {
		return false
	}
	paths, err := declaredPaths(o.share)
	return err == nil && slices.ContainsFunc(paths, func(path string) bool { return o.directories[path] == nil })
}

// planDirectories decides about all ShareDirectories of the share.
func planDirectories(o *observed, found inventory) directoryPlan {
	var plan directoryPlan
	paths, err := declaredPaths(o.share)
	if err != nil {
		// The list can't be read, so nothing is made or removed.
		plan.fault = &finding{v1alpha1.ReasonInvalidDirectories, err.Error()}
		return plan
	}
	plan.declared = len(paths)
	above := parents(paths)
	if n := len(above) + len(paths); o.share.Spec.Layout != v1alpha1.LayoutSingle && n > int(o.share.Spec.MaxDirectories) {
		plan.fault = &finding{v1alpha1.ReasonInvalidDirectories, fmt.Sprintf(
			"spec.directories declares %s, with those above them, and spec.maxDirectories allows %d: raise it, or declare fewer", plural(n, "directory"), o.share.Spec.MaxDirectories)}
		return plan
	}
	wanted := map[string]bool{}
	for _, path := range slices.Concat(above, paths) {
		wanted[path] = true
	}
	switch refused := o.grant.Directories; {
	case refused != nil:
		plan.fault = describeGrowth(o, "directories that were added to spec.directories are not made", refused)
	case needsPlacement(o):
		plan.place(o, found, above, paths)
	}
	plan.forget = slices.Clone(o.retainedElsewhere)
	for _, path := range slices.Sorted(maps.Keys(o.directories)) {
		if path == tree.RootPath && o.share.Spec.Layout == v1alpha1.LayoutSingle && ownerOf(o.directories[path]) == nil {
			// It has attributes that clients set on the root of an earlier, distributed share. Its name is needed for
			// the owner.
			plan.forget = append(plan.forget, o.directories[path])
			continue
		}
		if isRetained(o.directories[path]) {
			plan.useAgain(o, o.directories[path])
			continue
		}
		plan.keepOrRemove(o, o.directories[path], wanted[path])
	}
	return plan
}

// place adds the ShareDirectories of new directories.
func (p *directoryPlan) place(o *observed, found inventory, above, paths []string) {
	slots, fault := placeable(o)
	if fault != nil {
		p.fault = fault
		return
	}
	if !found.complete {
		seen := inventoriedCondition(found)
		p.fault = &finding{seen.Reason, seen.Message}
		return
	}
	if o.share.Spec.Layout == v1alpha1.LayoutSingle {
		if slots, p.fault = whereTheDataIs(o, slots); p.fault != nil {
			return
		}
	}
	current := map[string]placement.Owner{}
	for path, directory := range o.directories {
		if owner := ownerOf(directory); owner != nil {
			current[path] = *owner
		}
	}
	assignments, err := placement.Plan(placement.Count(slots, o.key(), owned(o)), current, paths)
	if errors.Is(err, placement.ErrNoneEligible) {
		p.fault = &finding{v1alpha1.ReasonFileServerNotReady, err.Error()}
		return
	}
	if err != nil {
		p.fault = &finding{v1alpha1.ReasonInvalidDirectories, err.Error()}
		return
	}
	for _, path := range above {
		if o.directories[path] == nil {
			p.create = append(p.create, desired.ShareDirectory(o.share, path, nil))
		}
	}
	for _, assignment := range assignments {
		switch {
		// A client renames or removes the directory. Wait until its ShareDirectory is done.
		case o.directories[assignment.Path] != nil:
		case isBeingRemoved(o, assignment.Path):
			p.left++ // The deletion's event causes another pass.
		case isRetainedElsewhere(o, assignment.Path):
			p.left++ // That one has the name and must be removed first.
		case len(p.create) < createPerPass:
			p.create = append(p.create, desired.ShareDirectory(o.share, assignment.Path, &assignment.Owner))
		default:
			p.left++
		}
	}
}

func isRetainedElsewhere(o *observed, path string) bool {
	return slices.ContainsFunc(o.retainedElsewhere, func(d *internalv1.ShareDirectory) bool { return d.Spec.Path == path })
}

// whereTheDataIs reduces the volumes to the one that has data of a Single share, if there is one.
func whereTheDataIs(o *observed, slots []placement.Slot) ([]placement.Slot, *finding) {
	switch owners := occupied(o); len(owners) {
	case 0:
		return slots, nil
	case 1:
		// The data server may be drained or unavailable: it has the data anyway.
		return []placement.Slot{{Owner: owners[0], Ready: true}}, nil
	default:
		var places []string
		for _, owner := range owners {
			places = append(places, placeOf(o, owner.Server, owner.Volume, ""))
		}
		return nil, &finding{v1alpha1.ReasonDataInSeveralPlaces, "the share is one directory on one data server, and there is data of it in " +
			conditions.List(places, maxNamed) + ": name the data servers whose data is not wanted in spec.ignoreDataOn, or empty the directories there"}
	}
}

// owned returns all directories of the FileServer that have an owner.
func owned(o *observed) []placement.Directory {
	all := make([]placement.Directory, 0, len(o.directories)+len(o.others))
	for _, directory := range slices.Concat(slices.Collect(maps.Values(o.directories)), o.others) {
		if owner := ownerOf(directory); owner != nil {
			all = append(all, placement.Directory{Share: directory.Spec.FileShareRef.Name, Path: directory.Spec.Path, Owner: *owner})
		}
	}
	return all
}

func ownerOf(directory *internalv1.ShareDirectory) *placement.Owner {
	if directory.Spec.DataServerRef.Name == "" || directory.Spec.Volume == nil {
		return nil
	}
	return &placement.Owner{Server: directory.Spec.DataServerRef.Name, Volume: *directory.Spec.Volume}
}

// keepOrRemove decides about a ShareDirectory that exists.
func (p *directoryPlan) keepOrRemove(o *observed, directory *internalv1.ShareDirectory, wanted bool) {
	declared := directory.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue
	asked := directory.Spec.Removal == internalv1.RemovalWhenEmpty
	ready := directory.State() == internalv1.DirectoryReady
	switch {
	case wanted && (!declared || asked && ready):
		// A client made it first, or it is declared again. From now on it is declared like the others.
		after := directory.DeepCopy()
		setAnnotation(after, v1alpha1.DeclaredAnnotation, v1alpha1.DeclaredTrue)
		after.Spec.Removal, after.Status.RemovalRefusedTime = "", nil
		p.change = append(p.change, directoryChange{directory, after})
	case wanted || !declared || !ready:
		// Nothing to do, or a namespace server works on it; the ShareDirectory's next change causes another pass.
	case isParent(o, directory.Spec.Path):
		// It is removed after its children.
	case asked:
		if directory.Status.RemovalRefusedTime != nil {
			p.refused = append(p.refused, directory.Spec.Path)
		}
	default:
		after := directory.DeepCopy()
		after.Spec.Removal = internalv1.RemovalWhenEmpty
		p.change = append(p.change, directoryChange{directory, after})
	}
}

// isParent reports whether there are ShareDirectories below path.
func isParent(o *observed, path string) bool {
	for other := range o.directories {
		if strings.HasPrefix(other, path+"/") {
			return true
		}
	}
	return false
}

func setAnnotation(directory *internalv1.ShareDirectory, key, value string) {
	if directory.Annotations == nil {
		directory.Annotations = map[string]string{}
	}
	directory.Annotations[key] = value
}

// describeRefused is for messages.
func describeRefused(refused []string) string {
	verb := "holds data, so it stays"
	if len(refused) > 1 {
		verb = "hold data, so they stay"
	}
	return fmt.Sprintf("%s left spec.directories and %s: list what is to stay, or empty it and remove it with rmdir", quoteList(refused), verb)
}
