package fileshare

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// ShareDirectories are an index; the volumes are the truth. Before a directory gets an owner, it must be known that no
// volume has it: from the inventories of the data servers, or because a data server reports that it never had the
// share.

// inventory has what is known about the directories of a share on data servers.
type inventory struct {
	// generation is that of the inventories that count.
	generation int64
	// complete: each directory of the share that a data server may have has a ShareDirectory.
	complete bool
	// waiting has the data servers without an inventory, with the reason.
	waiting []string
	// away: one of them does not answer.
	away bool
	// misplaced has some places of data that clients don't see; misplacedCount is their number.
	misplaced      []string
	misplacedCount int
	// silent are owners of such places that can't be asked whether they have the directory.
	silent []string
	// elsewhere has some places of directories that their owners do not have.
	elsewhere []string
	// skipped has some directories that can't have a ShareDirectory; skippedCount is their number.
	skipped      []string
	skippedCount int
}

// takeInventory evaluates the reports of the data servers. A complete inventory stays complete until ShareDirectories
// are lost, because new directories get their ShareDirectory first.
func takeInventory(o *observed) inventory {
	found := inventory{generation: max(1, o.share.Status.InventoryGeneration)}
	found.complete = conditions.IsTrue(o.share.Status.Conditions, v1alpha1.FileShareInventoried)
	if found.complete && isLosing(o) {
		found.complete = false
		found.generation++
	}
	found.findMisplaced(o)
	if found.complete {
		return found
	}
	if _, fault := placeable(o); fault != nil {
		found.waiting = []string{fault.message}
		return found
	}
	if found.complete = isSeenByAny(o, found.generation); found.complete {
		return found
	}
	for i := range o.dataServers {
		server := &o.dataServers[i]
		if server.DeletionTimestamp != nil || isIgnored(o, server.Name) || isInventoried(o, server, found.generation) || neverHad(o, server, found.generation) {
			continue
		}
		why, away := whyUnavailable(server), o.stateOf(server.Name).IsDown()
		if away && why == "" {
			why = "is unavailable"
		}
		found.away = found.away || away
		why = cmp.Or(why, whyNotExported(o, server), "was not checked yet")
		found.waiting = append(found.waiting, server.Name+" ("+why+")")
	}
	slices.SortFunc(found.waiting, byNumber)
	found.complete = len(found.waiting) == 0
	return found
}

// isLosing reports whether ShareDirectories that should exist are gone: some of an unchanged list whose directories all
// had owners, or some of an unavailable data server, which can't have removed a directory. What clients have removed was not lost; if the operator
// does not know of it, because it has started since, there is an inventory.
func isLosing(o *observed) bool {
	placed := meta.FindStatusCondition(o.share.Status.Conditions, v1alpha1.FileSharePlaced)
	if placed != nil && placed.Status == metav1.ConditionTrue && placed.ObservedGeneration == o.share.Generation && missesDeclared(o) {
		return true
	}
	if o.fileServer == nil {
		return false
	}
	now, total, before := map[string]int32{}, int32(0), int32(0)
	for _, directory := range o.directories {
		if owner := ownerOf(directory); owner != nil {
			now[owner.Server]++
			total++
		}
	}
	for _, server := range o.share.Status.Directories.PerServer {
		before += ptr.Deref(server.Count, 0)
	}
	if total >= before && backend.Of(o.fileServer).IsShared() {
		return false // Directories moved: other data servers have more.
	}
	return slices.ContainsFunc(o.share.Status.Directories.PerServer, func(before v1alpha1.ServerDirectories) bool {
		known := slices.ContainsFunc(o.dataServers, func(s internalv1.DataServer) bool { return s.Name == before.Name })
		return known && now[before.Name] < ptr.Deref(before.Count, 0) && o.stateOf(before.Name).IsAway()
	})
}

// missesDeclared reports whether a declared directory has no ShareDirectory, and no client has removed it.
func missesDeclared(o *observed) bool {
	if !needsPlacement(o) {
		return false
	}
	paths, err := declaredPaths(o.share)
	return err == nil && slices.ContainsFunc(paths, func(path string) bool {
		_, removed := o.removed[path]
		return o.directories[path] == nil && !removed
	})
}

// isBeingRemoved reports whether it is not known yet that a client has removed a directory.
func isBeingRemoved(o *observed, path string) bool {
	over, removed := o.removed[path]
	return removed && !over
}

func isIgnored(o *observed, server string) bool {
	return slices.Contains(o.share.Spec.IgnoreDataOn, server)
}

// isInventoried reports whether the data server has an inventory for this share since the last loss of
// ShareDirectories, or has only data of an earlier share that is being removed.
func isInventoried(o *observed, server *internalv1.DataServer, generation int64) bool {
	export := o.exports[server.Name]
	if export != nil && export.DeletionTimestamp != nil && export.Spec.DataPolicy == internalv1.DataDelete {
		return true
	}
	return isLookedAt(o, export, generation)
}

func isLookedAt(o *observed, export *internalv1.ShareExport, generation int64) bool {
	return export != nil && export.DeletionTimestamp == nil && export.Status.Inventory.FileShareUID == string(o.share.UID) &&
		export.Status.Inventory.Generation >= generation
}

// isSeenByAny reports whether all data servers have the same storage and one of them has an inventory.
func isSeenByAny(o *observed, generation int64) bool {
	if !backend.Of(o.fileServer).IsShared() {
		return false
	}
	for _, export := range o.exports {
		if isLookedAt(o, export, generation) {
			return true
		}
	}
	return false
}

// neverHad reports whether the volumes had no directory of a share with this name at the last report. A data server
// reports before it serves a new share.
func neverHad(o *observed, server *internalv1.DataServer, generation int64) bool {
	return generation == 1 && server.Status.Shares != nil && !naming.DigestMayHave(*server.Status.Shares, naming.ShareDirectoryName(o.key()))
}

// findMisplaced collects the data that clients don't see, from the inventories.
func (i *inventory) findMisplaced(o *observed) {
	found, count := displacedDirectories(o)
	i.misplacedCount = count
	for _, d := range found {
		if owned := o.directories[d.path]; owned != nil && owned.State() == internalv1.DirectoryMissing {
			i.elsewhere = append(i.elsewhere, d.place)
		} else {
			i.misplaced = append(i.misplaced, d.place)
			if owner := silentOwner(o, owned); owner != "" && !slices.Contains(i.silent, owner) {
				i.silent = append(i.silent, owner)
			}
		}
	}
	for _, export := range inventoriedExports(o) {
		for _, left := range export.Status.Inventory.Skipped {
			i.skipped = append(i.skipped, export.Spec.DataServerRef.Name+", "+left)
		}
		i.skippedCount += int(ptr.Deref(export.Status.Inventory.SkippedCount, 0))
	}
}

// silentOwner is the owner of a directory if nothing is known of it now: what another data server has may be the data, as after a restore of the API from
// a backup of before a move.
func silentOwner(o *observed, directory *internalv1.ShareDirectory) string {
	if directory == nil || ownerOf(directory) == nil {
		return ""
	}
	owner := ownerOf(directory).Server
	at := slices.IndexFunc(o.dataServers, func(s internalv1.DataServer) bool { return s.Name == owner })
	if at < 0 || whyUnavailable(&o.dataServers[at]) != "" || o.stateOf(owner).IsDown() {
		return owner
	}
	return ""
}

// displaced is a directory that lies on another volume than its owner's.
type displaced struct{ path, place string }

// displacedDirectories are some of those that the inventories have, and their number.
func displacedDirectories(o *observed) (found []displaced, count int) {
	for _, export := range inventoriedExports(o) {
		for _, copied := range export.Status.Inventory.Misplaced {
			found = append(found, displaced{copied.Path, placeOf(o, export.Spec.DataServerRef.Name, ptr.Deref(copied.Volume, 0), copied.Path)})
		}
		count += int(ptr.Deref(export.Status.Inventory.MisplacedCount, 0))
	}
	root := o.directories[tree.RootPath]
	if o.share.Spec.Layout != v1alpha1.LayoutSingle || root == nil || ownerOf(root) == nil {
		return found, count
	}
	for _, at := range occupied(o) {
		if at != *ownerOf(root) {
			found = append(found, displaced{tree.RootPath, placeOf(o, at.Server, at.Volume, tree.RootPath)})
			count++
		}
	}
	return found, count
}

// inventoriedExports returns the exports with an inventory of this share, in the order of their servers.
func inventoriedExports(o *observed) []*internalv1.ShareExport {
	var exports []*internalv1.ShareExport
	for _, export := range o.exports {
		if export.Status.Inventory.FileShareUID == string(o.share.UID) && !isIgnored(o, export.Spec.DataServerRef.Name) {
			exports = append(exports, export)
		}
	}
	slices.SortFunc(exports, func(a, b *internalv1.ShareExport) int {
		return byNumber(a.Spec.DataServerRef.Name, b.Spec.DataServerRef.Name)
	})
	return exports
}

// occupied returns the volumes where the root of a Single share is not empty.
func occupied(o *observed) []placement.Owner {
	var owners []placement.Owner
	for _, export := range inventoriedExports(o) {
		for _, volume := range export.Status.Inventory.OccupiedVolumes {
			owners = append(owners, placement.Owner{Server: export.Spec.DataServerRef.Name, Volume: volume})
		}
	}
	return owners
}

// placeOf formats a place for messages.
func placeOf(o *observed, server string, volume int32, rel string) string {
	return server + ":" + path.Join(naming.ExportDirectory(naming.VolumesRoot, o.key(), volume), rel)
}

func inventoriedCondition(found inventory) metav1.Condition {
	const kind = v1alpha1.FileShareInventoried
	switch {
	case !found.complete && found.away:
		return conditions.False(kind, v1alpha1.ReasonDataServersUnavailable, waitForInventory(found)+
			"; if one never comes back, name it in spec.ignoreDataOn")
	case !found.complete:
		return conditions.False(kind, v1alpha1.ReasonInventoryPending, waitForInventory(found))
	case len(found.elsewhere) > 0:
		return conditions.True(kind, v1alpha1.ReasonDirectoriesElsewhere, "the owners of these directories do not have them, and others do: "+
			conditions.List(found.elsewhere, maxNamed)+". Remove nothing there: condition "+v1alpha1.FileShareJunctionsResolved+" has what to do")
	case found.misplacedCount > 0:
		text := conditions.List(found.misplaced, maxNamed)
		if more := found.misplacedCount - len(found.misplaced); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		if len(found.silent) > 0 {
			return conditions.True(kind, v1alpha1.ReasonDataMisplaced, "clients don't see what is in "+text+". Remove nothing there: it may be the data. Whether "+
				conditions.List(found.silent, maxNamed)+" has these directories is known when it answers")
		}
		return conditions.True(kind, v1alpha1.ReasonDataMisplaced, "clients don't see what is in "+text+
			", because the share has these directories elsewhere: move the content by hand and remove them there")
	case found.skippedCount > 0:
		text := conditions.List(found.skipped, maxNamed)
		if more := found.skippedCount - len(found.skipped); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		return conditions.True(kind, v1alpha1.ReasonDirectoriesSkipped, "clients don't see "+text+
			": the administrator of the FileServer renames them on the volume")
	default:
		return conditions.True(kind, v1alpha1.ReasonReady, "no data server has a directory that the share does not know")
	}
}

func waitForInventory(found inventory) string {
	return fmt.Sprintf("no directory is placed, and clients' mkdir waits, before it is known which ones the data servers have already; waiting for %s",
		conditions.List(found.waiting, maxNamed))
}
