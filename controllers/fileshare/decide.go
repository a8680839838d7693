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

// finding is why something is not done.
type finding struct {
	reason  string
	message string
}

// decision is what a pass is to do and what it found.
type decision struct {
	// blocked tells why nothing at all may be made for the share.
	blocked *finding
	// attachment is what is to happen to the ShareAttachment.
	attachment attachmentPlan
	// inventory is what is known of directories that the share may have already.
	inventory inventory
	// directories is what is to happen to the ShareDirectories.
	directories directoryPlan
	// storage is what is to happen to the ShareStorage.
	storage storagePlan
	// exports is what is to happen to the exports.
	exports exportPlan
	// claim is what is to happen to the ready-made volume and claim.
	claim claimPlan
	// quota is what is to happen to the share's quota.
	quota quotaPlan
	// cloned is the condition about the copy of the share's source, nil if it has none.
	cloned *metav1.Condition
	// again is when to look again though nothing happened; 0 means never.
	again time.Duration
}

// decide is the whole pass but for reading and writing.
func decide(o *observed) decision {
	d := decision{blocked: findBlock(o), quota: unknownQuota(o)}
	if d.blocked == nil {
		d.blocked = findSourceFault(o)
	}
	d.cloned = planClone(o, d.blocked != nil)
	d.inventory = inventory{generation: max(1, o.share.Status.InventoryGeneration)}
	if d.blocked == nil {
		d.inventory = takeInventory(o)
	}
	d.attachment = planAttachment(o, d.inventory)
	if isForbidden(o) {
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

// findBlock tells why the share can't exist at present, nil if it can.
func findBlock(o *observed) *finding {
	share := o.share
	if o.unwatched {
		return &finding{v1alpha1.ReasonNamespaceNotWatched, fmt.Sprintf(
			"this operator does not look after namespace %q, where FileServer %q is to be; ask whoever installed Howdah to add it to the chart's watchNamespaces, "+
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

// describeConflict names the other share, unless it is in another namespace: names there are not for this one to know.
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

// takenBy is a share that has the path of one that is not attached yet, nil if there is none. Creation times have seconds: an attachment that was made
// first and compared then could win against a share that is served already.
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

// placeable are the volumes that new directories may go to. It waits until the
// FileServer has a DataServer for each of its data servers, or those that come first would
// get everything. They need not serve yet: directories on them are made as soon as they do.
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
