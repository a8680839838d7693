package fileshare

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// finding is the reason why something is not done.
type finding struct {
	reason  string
	message string
}

// decision has what a pass changes and reports.
type decision struct {
	// blocked is why nothing may be made for the share; nil if something may.
	blocked *finding
	// attachment has the changes of the ShareAttachment.
	attachment attachmentPlan
	// inventory has what is known about existing directories of the share.
	inventory inventory
	// directories has the changes of the ShareDirectories.
	directories directoryPlan
	// storage has the changes of the ShareStorage.
	storage storagePlan
	// exports has the changes of the exports.
	exports exportPlan
	// claim has the changes of the ready-made volume and claim.
	claim claimPlan
	// quota has the change of the share's quota.
	quota quotaPlan
	// hot is the condition for the share's hot directories; nil if the share has none.
	hot *metav1.Condition
	// cloned is the condition for the copy of the share's source; nil if the share has no source.
	cloned *metav1.Condition
	// again is the time until the next pass if no object changes; 0 means none.
	again time.Duration
}

// decide decides everything. It neither reads nor writes.
func decide(o *observed) decision {
	d := decision{blocked: findBlock(o), quota: unknownQuota(o), hot: unknownHot(o)}
	if d.blocked == nil {
		d.blocked = findSourceFault(o)
	}
	d.cloned = planClone(o, d.blocked != nil)
	d.inventory = inventory{generation: max(1, o.share.Status.InventoryGeneration)}
	if d.blocked == nil {
		d.inventory = takeInventory(o)
	}
	d.attachment = planAttachment(o, d.inventory)
	if isForbidden(o) || o.fileServer != nil && isOfOthers(o) {
		d.exports, d.storage = planWithdrawal(o), planStorageEnd(o, internalv1.DataRetain)
	}
	if d.blocked != nil {
		if o.grant.Refused != nil {
			d.again = lookForRoom
		}
		return d
	}
	d.directories = planDirectories(o, d.inventory)
	d.quota = planQuota(quotaOf(o))
	d.hot = hotCondition(hotOf(o))
	d.storage, d.exports = planStorage(o, d.quota.request), planExports(o)
	d.claim = planClaim(o, d.quota.status)
	if isFilling(o, d.inventory) {
		d.claim = claimPlan{waiting: &finding{v1alpha1.ReasonProgressing, "waiting for the share to have all that its source has"}}
	}
	_, failsIn := failsFor(o)
	d.again = requeue.Soonest(stragglersIn(o), restartIn(o), failsIn)
	if o.grant.Directories != nil || o.grant.AccessNetworks != nil {
		d.again = requeue.Soonest(d.again, lookForRoom)
	}
	return d
}

// findBlock returns why the share can't exist now; nil if it can.
func findBlock(o *observed) *finding {
	share := o.share
	if o.unwatched {
		return &finding{v1alpha1.ReasonNamespaceNotWatched, fmt.Sprintf(
			"this operator does not watch namespace %q, where FileServer %q is to be; ask the administrator of Howdah to add it to the chart's watchNamespaces, "+
				"or delete this share and make one that names another FileServer", o.namespace(), share.Spec.FileServerRef.Name)}
	}
	if o.refused || naming.IsForeign(share) && o.attachment == nil && o.fileServer.DeletionTimestamp != nil {
		return &finding{v1alpha1.ReasonNamespaceNotAllowed, describeNotAllowed(o)}
	}
	if o.fileServer == nil {
		return &finding{v1alpha1.ReasonFileServerNotFound, fmt.Sprintf(
			"there is no FileServer %q in namespace %q; create it, or delete this share and make one that names another",
			share.Spec.FileServerRef.Name, share.Namespace)}
	}
	if earlier := findEarlierNamespace(o); earlier != nil {
		return earlier
	}
	if naming.IsForeign(share) && !isAttached(o) {
		if other := takenBy(o); other != nil {
			return describeConflict(o, other)
		}
		if refused := findLimit(o); refused != nil {
			return refused
		}
		return &finding{v1alpha1.ReasonProgressing, fmt.Sprintf("attaching the share to FileServer %s of namespace %s", share.Spec.FileServerRef.Name, o.namespace())}
	}
	if older := fleet.Older(asSeen(o), o.conflicts); older != nil {
		return describeConflict(o, older)
	}
	return findLimit(o)
}

// describeConflict names the other share if it is in the same namespace. Names in other namespaces are not revealed.
func describeConflict(o *observed, other *fleet.Share) *finding {
	relates := relation(o.share.Spec.Path, other.Path)
	namespace, name := naming.ShareOfKey(o.namespace(), other.Key)
	if namespace != o.share.Namespace {
		return &finding{v1alpha1.ReasonPathConflict, fmt.Sprintf(
			"the path %s %s that of an older share of another namespace; delete this share and make it with another path", o.share.Spec.Path, relates)}
	}
	return &finding{v1alpha1.ReasonPathConflict, fmt.Sprintf(
		"the path %s %s that of the older share %q, %s; delete this share and make it with another path, or delete the other share",
		o.share.Spec.Path, relates, name, other.Path)}
}

// takenBy returns the share that has the path of a share that is not attached yet; nil if there is none. It is checked
// before the attachment is made, because creation times have a resolution of seconds: an attachment that exists could
// win against a served share.
func takenBy(o *observed) *fleet.Share {
	if len(o.conflicts) == 0 {
		return nil
	}
	return &o.conflicts[0]
}

func relation(path, other string) string {
	switch {
	case path == other:
		return "is"
	case strings.HasPrefix(path, other+"/"):
		return "lies in"
	default:
		return "contains"
	}
}

// placeable returns the volumes for new directories. It waits until every data server of the FileServer has a
// DataServer; otherwise the first ones would get all directories. They need not serve yet: their directories are made
// when they do.
func placeable(o *observed) ([]placement.Slot, *finding) {
	wanted := o.fileServer.Status.Replicas
	present := 0
	var slots []placement.Slot
	for i := range o.dataServers {
		server := &o.dataServers[i]
		if server.DeletionTimestamp != nil {
			continue
		}
		present++
		switch obstacle := fleet.MayTake(fleet.Soon(o.fileServer, server, o.now), o.share.Spec.IgnoreDataOn); obstacle {
		case fleet.None, fleet.NotServing:
			slots = append(slots, backend.Of(o.fileServer).Slots(server, obstacle == fleet.None)...)
		}
	}
	if wanted == nil || *wanted == 0 || present < int(*wanted) {
		number := "its data servers"
		if wanted != nil && *wanted > 0 {
			number = fmt.Sprintf("%d of %s", present, plural(int(*wanted), "data server"))
		}
		return nil, &finding{v1alpha1.ReasonFileServerNotReady, fmt.Sprintf("waiting for FileServer %s to have %s", o.fileServer.Name, wait(number, wanted))}
	}
	return slots, nil
}

func wait(number string, wanted *int32) string {
	if wanted == nil || *wanted == 0 {
		return number
	}
	return "all data servers known: " + number + " so far"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, found := strings.CutSuffix(noun, "y"); found {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
