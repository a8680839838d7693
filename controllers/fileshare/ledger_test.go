package fileshare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// addUp is what a ledger must have, from all shares that exist: what the other shares of a FileServer have, what waiting
// ones request, and what all that are not admitted ask for. granted has the grants that no status shows.
func addUp(shares map[types.NamespacedName]*v1alpha1.FileShare, granted map[types.UID]limits.Usage, own *v1alpha1.FileShare) (waiting []limits.Demand, taken, asked limits.Taken) {
	for _, share := range shares {
		if share.UID == own.UID || naming.ServerNamespace(share) != naming.ServerNamespace(own) || share.Spec.FileServerRef.Name != own.Spec.FileServerRef.Name {
			continue
		}
		known := account{}
		if usage, ok := granted[share.UID]; ok {
			known.granted = &usage
		}
		demand := demandOf(share, known, 0)
		if demand.Admitted {
			taken.Add(demand.Tenant, demand.Has)
			continue
		}
		demand.Wants = wantsOf(share, nil)
		asked.Add(demand.Tenant, demand.Wants)
		if mayWait(share, crowdSurroundings(0).allows) {
			waiting = append(waiting, demand)
		}
	}
	return waiting, taken, asked
}

// Shares of two FileServers come, grow, shrink, are refused, recorded, deleted and made again under the same name, in
// any order; the ledger always has what adding up all shares gives.
func TestTheLedgerIsTheSumOfAllShares(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		var l ledger
		shares, granted := map[types.NamespacedName]*v1alpha1.FileShare{}, map[types.UID]limits.Usage{}
		caps := limits.Caps{FileServer: "fs", Namespace: "ns", Total: limits.Usage{Shares: 8, Directories: 60, AccessNetworks: 20}, PerNamespace: limits.Usage{Shares: 4, Directories: 40, AccessNetworks: 10}}
		for step := range 200 {
			namespace := []string{"ns", "team-a", "forbidden"}[random.IntN(3)]
			key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("s", random.IntN(6))}
			share := shares[key]
			if share == nil {
				share = builders.FileShare(namespace, key.Name, []string{"fs", "other"}[random.IntN(2)]).OnNamespace("ns").Build()
				share.UID, share.Generation, share.CreationTimestamp = types.UID(fmt.Sprint(seed, "-", step)), 1, metav1.Unix(int64(random.IntN(50)), 0)
			} else {
				share = share.DeepCopy()
			}
			switch random.IntN(7) {
			case 0: // Gone.
				l.forget(key, share.UID)
				delete(shares, key)
				continue
			case 1: // Another of its name, without the deletion having been seen.
				share.UID, share.Status = types.UID(fmt.Sprint(seed, "-", step)), v1alpha1.FileShareStatus{}
			case 2:
				share.Generation++
				share.Spec.Directories = []string{fmt.Sprintf("{0..%d}", random.IntN(30))}
			case 3: // A status of before there were limits.
				share.Status.InventoryGeneration, share.Status.Directories.Count = 1, ptr.To(int32(random.IntN(9)))
			case 4:
				share.DeletionTimestamp = ptr.To(metav1.Unix(99, 0))
			default: // A pass, whose status is seen, or is not yet.
				if _, exists := shares[key]; !exists || share.DeletionTimestamp != nil {
					continue
				}
				o := passOf(share)
				o.fileServer.Namespace, o.fileServer.Name = "ns", share.Spec.FileServerRef.Name
				grant := l.admit(o, caps, crowdSurroundings(0))
				delete(granted, share.UID)
				if grant.Admitted {
					granted[share.UID] = grant.Has
				}
				if random.IntN(2) == 0 {
					continue
				}
				record(&share.Status, grant)
			}
			shares[key] = share
			if usage, ok := granted[share.UID]; ok && isRecorded(share, usage) {
				delete(granted, share.UID)
			}
			l.see(share)
			compareLedger(t, fmt.Sprintf("seed %d, step %d", seed, step), &l, shares, granted)
		}
	}
}

func compareLedger(t *testing.T, at string, l *ledger, shares map[types.NamespacedName]*v1alpha1.FileShare, granted map[types.UID]limits.Usage) {
	t.Helper()
	for _, own := range shares {
		o := passOf(own)
		taken, asked := l.others(o, crowdSurroundings(0))
		waiting := l.waiting(o, crowdSurroundings(0))
		wantWaiting, wantTaken, wantAsked := addUp(shares, granted, own)
		for _, list := range [][]limits.Demand{waiting, wantWaiting} {
			slices.SortFunc(list, func(a, b limits.Demand) int { return strings.Compare(a.Key, b.Key) })
		}
		if diff := cmp.Diff([]limits.Taken{wantTaken, wantAsked}, []limits.Taken{taken, asked}, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s, without %s (-sum +ledger):\n%s", at, client.ObjectKeyFromObject(own), diff)
		}
		if diff := cmp.Diff(wantWaiting, waiting); diff != "" {
			t.Fatalf("%s, waiting beside %s (-sum +ledger):\n%s", at, client.ObjectKeyFromObject(own), diff)
		}
	}
}

// countingSurroundings counts how often a waiting share is looked at.
type countingSurroundings struct {
	crowdSurroundings
	asked *int
}

func (c countingSurroundings) allows(namespace string) bool {
	*c.asked++
	return c.crowdSurroundings.allows(namespace)
}

// With thousands of new shares, each of their passes would look through all the others.
func TestWaitingSharesAreLookedThroughOnlyIfThereIsNoRoomForAll(t *testing.T) {
	for most, looked := range map[int]bool{20: false, 19: true} {
		var c crowd
		for range 20 {
			c.add("team-a")
		}
		all := limits.Usage{Shares: most, Directories: 99, AccessNetworks: 99}
		asked := 0
		for i := range c.shares {
			grant := c.ledger.admit(passOf(&c.shares[i]), limits.Caps{FileServer: "fs", Namespace: "ns", Total: all, PerNamespace: all}, countingSurroundings{asked: &asked})
			if grant.Admitted != (i < most) {
				t.Errorf("share %d of at most %d: %+v", i, most, grant)
			}
		}
		if (asked > 0) != looked {
			t.Errorf("20 shares, at most %d: %d looks at others", most, asked)
		}
	}
}

// A pass that read its share before a deletion was seen notes it once more; the pass after that forgets it.
func TestAShareThatAPassNotedAfterItsEndIsForgotten(t *testing.T) {
	var c crowd
	share := c.add("ns")
	key := client.ObjectKeyFromObject(share)
	c.ledger.forget(key, share.UID)
	c.pass(0, false)
	if c.ledger.known(key) != share.UID {
		t.Fatal("the test is void: the pass did not note it")
	}
	c.ledger.forget(key, c.ledger.known(key))
	if len(c.ledger.shares) != 0 || len(c.ledger.books) != 0 {
		t.Errorf("left: %v, %v", c.ledger.shares, c.ledger.books)
	}
}

// What deleted shares left takes room, and stays what it is.
func TestRetainedDirectoriesTakeRoom(t *testing.T) {
	var c crowd
	c.add("ns", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"{1..5}"} })
	caps := limits.Caps{FileServer: "fs", Namespace: "ns", Total: limits.Usage{Shares: 9, Directories: 10, AccessNetworks: 9}, PerNamespace: limits.Usage{Shares: 9, Directories: 10, AccessNetworks: 9}}
	for left, fits := range map[int]bool{5: true, 6: false} {
		var l ledger
		if grant := l.admit(passOf(&c.shares[0]), caps, crowdSurroundings(left)); grant.Admitted != fits {
			t.Errorf("%d left: %+v", left, grant)
		}
	}
}
