package fileshare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// maxNamed is how many things a message names before it only counts.
const maxNamed = 5

// inFlight is how long a client's mkdir may take before its ShareDirectory counts as stuck. After this time the leader
// completes it.
const inFlight = 15 * time.Second

// A data server may report itself not Ready for fleet.RestartAllowance before its shares are not Ready. Otherwise the
// restart of a server with 4,096 shares would cause 8,192 status writes and as many events, and the FileServer's status
// reports it anyway. If a data server does not answer the namespace servers, that counts at once.

// outcome is the result of executing a decision.
type outcome struct {
	// created are the new ShareDirectories that exist now.
	created int
	// The errors of each part: ShareAttachment, ShareStorage, ShareDirectories, ShareExports, and volume and claim.
	attachment, storage, directories, exports, claim error
}

// statusOf is the status of the share after a pass. It is pure: equal input, equal status.
func statusOf(o *observed, d decision, out outcome) v1alpha1.FileShareStatus {
	share := o.share
	status := *share.Status.DeepCopy()
	found := conditionsOf(o, d, out)
	setQuota(&status, d.quota)
	setHot(&status, d.hot)
	record(&status, o.grant)
	conditions.SetWithReady(&status.Conditions, share.Generation, o.now, found...)
	if out.attachment == nil && out.storage == nil && out.directories == nil && out.exports == nil && out.claim == nil || conditions.IsStalled(status.Conditions) {
		generation := share.Generation
		status.ObservedGeneration = &generation
	}
	if d.blocked == nil {
		status.InventoryGeneration = d.inventory.generation
	}
	status.Directories = countDirectories(o)
	status.Mount = v1alpha1.ShareMount{}
	if d.blocked == nil && o.fileServer.Status.Address != "" {
		status.Mount = desired.ShareMount(share, o.fileServer.Status.Address, o.reservedPorts)
		if out.claim != nil || o.claim == nil && d.claim.waiting != nil {
			status.Mount.ClaimName = ""
		}
	}
	return status
}

// conditionsOf are the conditions of the share but for Ready, the most important first.
func conditionsOf(o *observed, d decision, out outcome) []metav1.Condition {
	if d.blocked != nil {
		placed := conditions.False(v1alpha1.FileSharePlaced, d.blocked.reason, d.blocked.message)
		if out.attachment != nil {
			placed = conditions.False(v1alpha1.FileSharePlaced, apply.Reason(out.attachment), "attaching the share to its FileServer failed: "+out.attachment.Error())
		}
		found := []metav1.Condition{placed}
		for _, other := range []string{v1alpha1.FileShareExported, v1alpha1.FileShareInventoried, v1alpha1.FileShareJunctionsResolved, v1alpha1.FileShareClaimAvailable} {
			found = append(found, conditions.Unknown(other, v1alpha1.ReasonPending, "waiting for the share to be placed"))
		}
		return withClone(d.cloned, withHot(withQuota(found, d.quota), d.hot))
	}
	return withClone(d.cloned, withHot(withQuota([]metav1.Condition{
		placedCondition(o, d.directories, out), exportedCondition(o, cmp.Or(out.storage, out.exports)), inventoriedCondition(d.inventory), junctionsCondition(o, d.directories),
		claimCondition(o, d.claim, out.claim),
	}, d.quota), d.hot))
}

func placedCondition(o *observed, plan directoryPlan, out outcome) metav1.Condition {
	const kind = v1alpha1.FileSharePlaced
	missing := plan.left + len(plan.create) - out.created
	switch {
	case out.directories != nil:
		return conditions.False(kind, apply.Reason(out.directories), "writing ShareDirectories failed: "+out.directories.Error())
	case plan.fault != nil:
		return conditions.False(kind, plan.fault.reason, plan.fault.message)
	case missing > 0:
		return conditions.False(kind, v1alpha1.ReasonProgressing, fmt.Sprintf("%d of %s have an owner", plan.declared-missing, plural(plan.declared, "declared directory")))
	case len(plan.refused) > 0:
		return conditions.True(kind, v1alpha1.ReasonDirectoryInUse, describeRefused(plan.refused))
	case o.share.Spec.Layout == v1alpha1.LayoutSingle:
		return conditions.True(kind, v1alpha1.ReasonReady, "the share has an owner")
	case directories(o) >= int(o.share.Spec.MaxDirectories):
		return conditions.True(kind, v1alpha1.ReasonTooManyDirectories, fmt.Sprintf("the share has %s, as many as spec.maxDirectories allows: "+
			"clients can't make more, and others that its volumes have are not shown; raise it, or remove some", plural(directories(o), "directory")))
	case plan.declared == 0:
		return conditions.True(kind, v1alpha1.ReasonReady, "no directories are declared; those that clients make are placed as they come")
	default:
		verb := "have"
		if plan.declared == 1 {
			verb = "has"
		}
		return conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("%s %s an owner", plural(plan.declared, "declared directory"), verb))
	}
}

// exportedCondition is about the data servers that own directories. A share without directories needs one server that
// could own some.
func exportedCondition(o *observed, failed error) metav1.Condition {
	const kind = v1alpha1.FileShareExported
	if failed != nil {
		return conditions.False(kind, v1alpha1.ReasonApplyFailed, failed.Error())
	}
	if refused := o.grant.AccessNetworks; refused != nil {
		found := describeGrowth(o, "spec.access is not taken over, and data servers go by the rules of before", refused)
		return conditions.False(kind, found.reason, found.message)
	}
	servers := map[string]*internalv1.DataServer{}
	for i := range o.dataServers {
		servers[o.dataServers[i].Name] = &o.dataServers[i]
	}
	owners := map[string]bool{}
	for _, directory := range o.directories {
		if owner := ownerOf(directory); owner != nil {
			owners[owner.Server] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(owners), byNumber)
	if len(names) == 0 {
		names = slices.SortedFunc(maps.Keys(servers), byNumber)
	}
	var waiting, silent []string
	serving, reason := 0, v1alpha1.ReasonExportsPending
	for _, name := range names {
		if why := whyUnavailable(servers[name]); why != "" {
			silent = append(silent, name+" ("+why+")")
		}
		if why := whyNotExported(o, servers[name]); why != "" {
			waiting = append(waiting, name+" ("+why+")")
			if export := o.exports[name]; export != nil && conditions.Reason(export.Status.Conditions, internalv1.ExportServing) == internalv1.ReasonExportIDsExhausted {
				reason = v1alpha1.ReasonTooManyShares
			}
		} else {
			serving++
		}
	}
	withoutPlace, placeReason := whyNoStorage(o)
	failing, _ := failsFor(o)
	switch {
	case len(names) == 0:
		return conditions.False(kind, v1alpha1.ReasonExportsPending, "there is no data server yet")
	case len(silent) > 0 && len(owners) > 0:
		return conditions.False(kind, v1alpha1.ReasonDataServersUnavailable, fmt.Sprintf("%d of %s that own directories of the share do not answer; "+
			"those directories wait, others go on: %s", len(silent), plural(len(names), "data server"), conditions.List(silent, maxNamed)))
	case failing != "" && serving > 0:
		return conditions.False(kind, v1alpha1.ReasonStorageFailing, failing)
	case len(owners) == 0 && serving > 0:
		return conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("%d of %s export the share, which has no directories yet", serving, plural(len(names), "data server")))
	case len(waiting) > 0 && withoutPlace != "":
		return conditions.False(kind, placeReason, withoutPlace)
	case len(waiting) > 0:
		return conditions.False(kind, reason, fmt.Sprintf("%d of %s export the share; waiting for %s",
			serving, plural(len(names), "data server"), conditions.List(waiting, maxNamed)))
	case len(names) == 1:
		return conditions.True(kind, v1alpha1.ReasonReady, "the data server that owns the share's directories exports it")
	default:
		return conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("all %d data servers that own directories export the share", serving))
	}
}

// whyUnavailable returns why a data server that has served is unavailable, and since when; "" if it answers.
func whyUnavailable(server *internalv1.DataServer) string {
	if server == nil || server.Status.Unreachable.SeenBy == "" {
		return ""
	}
	why := "no answer since " + server.Status.Unreachable.SinceTime.UTC().Format(time.RFC3339)
	if node := server.Status.NodeName; node != "" {
		why = "on node " + node + ", " + why
	}
	return why
}

// whyNotExported returns what a data server's export of the share waits for; "" if it serves. It depends on this
// share's export and the server's readiness only, not on other shares.
func whyNotExported(o *observed, server *internalv1.DataServer) string {
	if server == nil {
		return "does not exist"
	}
	export := o.exports[server.Name]
	switch {
	case export == nil:
		return "was not asked to yet"
	case export.DeletionTimestamp != nil:
		return "has to drop the export of an earlier share of this name first"
	case server.Status.ObservedGeneration == nil:
		return "has not started yet"
	case !conditions.IsTrue(server.Status.Conditions, v1alpha1.ConditionReady) && fleet.Observe(server, fleet.PodUnknown).RestartLeft(o.now) == 0:
		return "is not ready: " + conditions.Reason(server.Status.Conditions, v1alpha1.ConditionReady)
	case conditions.IsFalse(export.Status.Conditions, internalv1.ExportServing):
		return conditions.Message(export.Status.Conditions, internalv1.ExportServing)
	case export.Status.ObservedGeneration == nil:
		return "has not loaded the export yet"
	case *export.Status.ObservedGeneration != export.Generation:
		return "has not loaded the newest state of the export"
	default:
		return ""
	}
}

// restartIn is the time until the first restarting data server has exceeded its allowance; 0 if none restarts.
func restartIn(o *observed) time.Duration {
	var first time.Duration
	for i := range o.dataServers {
		first = requeue.Soonest(first, fleet.Observe(&o.dataServers[i], fleet.PodUnknown).RestartLeft(o.now))
	}
	return first
}

func junctionsCondition(o *observed, plan directoryPlan) metav1.Condition {
	const kind = v1alpha1.FileShareJunctionsResolved
	owned, missing := 0, []string{}
	for _, path := range slices.SortedFunc(maps.Keys(o.directories), byNumber) {
		directory := o.directories[path]
		if ownerOf(directory) == nil {
			continue
		}
		owned++
		if isUnresolved(o, directory) {
			missing = append(missing, fmt.Sprintf("%q on %s", path, describeOwner(o, directory.Spec.DataServerRef.Name)))
		}
	}
	for _, directory := range plan.create {
		if ownerOf(directory) != nil {
			owned++
			missing = append(missing, fmt.Sprintf("%q on %s", directory.Spec.Path, directory.Spec.DataServerRef.Name))
		}
	}
	if lost := findMissing(o); len(lost.directories) > 0 {
		return lost.condition(kind, owned)
	}
	switch {
	case len(missing) > 0:
		return conditions.False(kind, v1alpha1.ReasonDirectoriesPending, fmt.Sprintf("%d of %s do not exist on their data servers yet: %s",
			len(missing), plural(owned, "directory"), conditions.List(missing, maxNamed)))
	case owned == 0 && o.share.Spec.Layout == v1alpha1.LayoutSingle:
		return conditions.False(kind, v1alpha1.ReasonDirectoriesPending, "the share has no owner yet")
	case owned == 0:
		return conditions.True(kind, v1alpha1.ReasonReady, "there are no directories yet")
	default:
		return conditions.True(kind, v1alpha1.ReasonReady, "all directories exist on their data servers")
	}
}

// isUnresolved reports whether the directory should exist and does not. A directory that a client is making or renaming
// does not count; otherwise each mkdir would make the share not Ready.
func isUnresolved(o *observed, directory *internalv1.ShareDirectory) bool {
	switch {
	case isRetained(directory), directory.State() == internalv1.DirectoryMissing:
		return true
	case directory.State() == internalv1.DirectoryReady, directory.State() == internalv1.DirectoryRemoving, directory.State() == internalv1.DirectoryMoving:
		return false
	default:
		return directory.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue || inFlightFor(o, directory) <= 0
	}
}

// inFlightFor is how much longer a change of a ShareDirectory may take before it counts as stuck.
func inFlightFor(o *observed, directory *internalv1.ShareDirectory) time.Duration {
	return directory.CreationTimestamp.Add(inFlight).Sub(o.now)
}

// stragglersIn is the time until the first unfinished ShareDirectory counts as stuck; 0 if there is none.
func stragglersIn(o *observed) time.Duration {
	var first time.Duration
	for _, directory := range o.directories {
		if directory.State() == internalv1.DirectoryCreating || directory.State() == internalv1.DirectoryRenaming {
			first = requeue.Soonest(first, inFlightFor(o, directory))
		}
	}
	return first
}

func claimCondition(o *observed, plan claimPlan, failed error) metav1.Condition {
	const kind = v1alpha1.FileShareClaimAvailable
	if taken, ok := apply.IsNameTaken(failed); ok {
		return conditions.False(kind, v1alpha1.ReasonNameTaken, taken.Error())
	}
	if failed != nil {
		return conditions.False(kind, apply.Reason(failed), failed.Error())
	}
	if plan.waiting != nil {
		return conditions.False(kind, plan.waiting.reason, plan.waiting.message)
	}
	if ref := o.share.Spec.ClaimRef; naming.IsProvisioned(o.share) {
		return conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("the share is for the claim %s of namespace %s", ref.Name, ref.Namespace))
	}
	return conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("pods can use the claim %s", o.share.Name))
}

// countDirectories counts the directories that data servers own.
func countDirectories(o *observed) v1alpha1.ShareDirectories {
	count, ready := int32(0), int32(0)
	perServer := map[string]int32{}
	for _, directory := range o.directories {
		if ownerOf(directory) == nil {
			continue
		}
		count++
		perServer[directory.Spec.DataServerRef.Name]++
		if state := directory.State(); state == internalv1.DirectoryReady || state == internalv1.DirectoryRemoving || state == internalv1.DirectoryMoving {
			ready++
		}
	}
	counts := v1alpha1.ShareDirectories{Count: &count, Ready: &ready}
	for _, server := range slices.SortedFunc(maps.Keys(perServer), byNumber) {
		number := perServer[server]
		counts.PerServer = append(counts.PerServer, v1alpha1.ServerDirectories{Name: server, Count: &number})
	}
	return counts
}

// byNumber orders "fs-2" before "fs-10".
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// quoteList names some of the paths.
func quoteList(paths []string) string {
	quoted := make([]string, 0, len(paths))
	for _, path := range paths {
		quoted = append(quoted, strconv.Quote(path))
	}
	return conditions.List(quoted, maxNamed)
}
