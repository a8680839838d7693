package fileshare

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// holds has the data servers report a directory of the share, whose content is not known yet.
func (o *observed) holds(servers ...string) {
	digest, _ := naming.DigestNames([]string{naming.ShareDirectoryName(o.share.Name)})
	for i := range o.dataServers {
		if slices.Contains(servers, o.dataServers[i].Name) {
			o.dataServers[i].Status.Shares = &digest
		}
	}
}

// looked has a data server looked at, for a generation of the inventory.
func (o *observed) looked(server string, generation int64, edit ...func(*internalv1.ShareInventory)) {
	export := desired.ShareExport(o.share, server)
	export.Status.Inventory = internalv1.ShareInventory{FileShareUID: string(o.share.UID), Generation: generation}
	for _, e := range edit {
		e(&export.Status.Inventory)
	}
	if o.exports == nil {
		o.exports = map[string]*internalv1.ShareExport{}
	}
	o.exports[server] = export
}

// wasDone is what the status of a share says after a pass that found everything.
func (o *observed) wasDone(generation int64) {
	o.share.Status.InventoryGeneration = generation
	conditions.Set(&o.share.Status.Conditions, o.share.Generation, decideTime, conditions.True(v1alpha1.FileSharePlaced, v1alpha1.ReasonReady, ""),
		conditions.True(v1alpha1.FileShareInventoried, v1alpha1.ReasonReady, ""))
	o.share.Status.Directories = countDirectories(o)
}

func onVolume(volumes ...int32) func(*internalv1.ShareInventory) {
	return func(i *internalv1.ShareInventory) { i.OccupiedVolumes = volumes }
}

func goneAway(o *observed, server string) {
	for i := range o.dataServers {
		if o.dataServers[i].Name == server {
			o.dataServers[i].Status.Unreachable = internalv1.Unreachable{SinceTime: ptr.To(metav1.NewTime(decideTime)), SeenBy: "ns-0"}
		}
	}
}

func TestNothingIsPlacedBeforeItIsKnownWhatTheVolumesHave(t *testing.T) {
	const ready = internalv1.DirectoryReady
	const waits, unavailable = "fault " + v1alpha1.ReasonInventoryPending, "fault " + v1alpha1.ReasonDataServersUnavailable
	spread := builders.FileShare("ns", "s", "fs").Created(decideTime).Directories("{a,b}").Build()
	single := builders.FileShare("ns", "s", "fs").Created(decideTime).Single().Build()
	for name, tc := range map[string]struct {
		share  *v1alpha1.FileShare
		change func(*observed)
		want   []string
		// message has to be in the condition Inventoried, generation is the one that is asked for afterwards.
		message    string
		generation int64
	}{
		"no data server ever had the share":          {spread, nil, []string{"create a fs-0", "create b fs-1"}, "", 1},
		"a data server has not reported yet":         {spread, func(o *observed) { o.dataServers[1].Status.Shares = nil }, []string{waits}, "fs-1 (was not asked to yet)", 1},
		"a data server has a directory of the share": {spread, func(o *observed) { o.holds("fs-1") }, []string{waits}, "fs-1 (", 1},
		"it was looked at for this share": {
			spread, func(o *observed) { o.holds("fs-1"); o.looked("fs-1", 1) }, []string{"create a fs-0", "create b fs-1"}, "", 1,
		},
		"it was looked at for an earlier share of the name": {spread, func(o *observed) {
			o.holds("fs-1")
			o.looked("fs-1", 1, func(i *internalv1.ShareInventory) { i.FileShareUID = "earlier" })
		}, []string{waits}, "fs-1 (", 1},
		"it is about to drop the export of an earlier share": {spread, func(o *observed) {
			o.holds("fs-1")
			o.looked("fs-1", 1)
			o.exports["fs-1"].DeletionTimestamp = ptr.To(metav1.NewTime(decideTime))
		}, []string{waits}, "fs-1 (has to drop the export of an earlier share of this name first)", 1},
		"it does not answer": {
			spread, func(o *observed) { o.holds("fs-1"); goneAway(o, "fs-1") }, []string{unavailable}, "fs-1 (no answer since 2026-11-22T12:00:00Z)", 1,
		},
		"one that does not answer never had the share": {spread, func(o *observed) { goneAway(o, "fs-1") }, []string{"create a fs-0", "create b fs-0"}, "", 1},
		"what it has of an earlier share is to be removed": {spread, func(o *observed) {
			o.holds("fs-1")
			o.looked("fs-1", 1)
			o.exports["fs-1"].DeletionTimestamp, o.exports["fs-1"].Spec.DataPolicy = ptr.To(metav1.NewTime(decideTime)), internalv1.DataDelete
			o.exports["fs-1"].Status.Inventory.FileShareUID = "earlier"
		}, []string{"create a fs-0", "create b fs-1"}, "", 1},
		"the user gives up what it has": {spread, func(o *observed) {
			o.holds("fs-1")
			goneAway(o, "fs-1")
			o.share.Spec.IgnoreDataOn = []string{"fs-1"}
		}, []string{"create a fs-0", "create b fs-0"}, "", 1},
		"all was seen, and a server goes away": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.wasDone(1)
			o.share.Generation = 2 // b is new
			o.holds("fs-0", "fs-1")
			goneAway(o, "fs-1")
		}, []string{"create b fs-0"}, "", 1},
		"a ShareDirectory of a list that was placed is lost": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.wasDone(1)
			o.holds("fs-0", "fs-1")
			o.looked("fs-0", 1)
			o.looked("fs-1", 1)
		}, []string{waits}, "fs-0 (", 2},
		"a client has removed it, and a server is away": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.wasDone(1)
			o.holds("fs-0", "fs-1")
			goneAway(o, "fs-1")
			o.removed = map[string]bool{"b": true}
		}, []string{"create b fs-0"}, "", 1},
		"a client removes it right now": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.wasDone(1)
			o.holds("fs-0", "fs-1")
			o.removed = map[string]bool{"b": false}
		}, nil, "", 1},
		"a client has removed one, and the other is lost": {spread, func(o *observed) {
			o.wasDone(1)
			o.holds("fs-0", "fs-1")
			o.looked("fs-0", 1)
			o.looked("fs-1", 1)
			o.removed = map[string]bool{"b": true}
		}, []string{waits}, "fs-0 (", 2},
		"after that one server was looked at again": {spread, func(o *observed) {
			o.share.Status.InventoryGeneration = 2
			o.holds("fs-0", "fs-1")
			o.looked("fs-0", 2)
			o.looked("fs-1", 1)
		}, []string{waits}, "fs-1 (", 2},
		"after that both were": {spread, func(o *observed) {
			o.share.Status.InventoryGeneration = 2
			o.put("a", "fs-1", ready)
			o.looked("fs-0", 2)
			o.looked("fs-1", 2)
		}, []string{"create b fs-0"}, "", 2},
		"a new server says that it never had the share, after a loss": {spread, func(o *observed) {
			o.share.Status.InventoryGeneration = 2
			o.looked("fs-0", 2)
		}, []string{waits}, "fs-1 (", 2},
		"a ShareDirectory of a server that is away is lost": {
			builders.FileShare("ns", "s", "fs").Created(decideTime).Build(), func(o *observed) {
				o.put("x", "fs-1", ready, madeByClient)
				o.wasDone(1)
				delete(o.directories, "x")
				goneAway(o, "fs-1")
			}, nil, "fs-1 (", 2,
		},
		"all data servers have the same, and none was looked at": {spread, func(o *observed) {
			o.fileServer.Spec.Storage = builders.FileServer("ns", "fs").Ceph().Build().Spec.Storage
			o.dataServers[0].Status.Shares, o.dataServers[1].Status.Shares = nil, nil
		}, []string{waits}, "fs-0 (", 1},
		"all data servers have the same, and one was looked at while the other is away": {spread, func(o *observed) {
			o.fileServer.Spec.Storage = builders.FileServer("ns", "fs").Ceph().Build().Spec.Storage
			o.dataServers[0].Status.Shares, o.dataServers[1].Status.Shares = nil, nil
			goneAway(o, "fs-1")
			o.looked("fs-0", 1)
		}, []string{"create a fs-0", "create b fs-0"}, "", 1},
		"all data servers have the same, and one was looked at for an earlier share": {spread, func(o *observed) {
			o.fileServer.Spec.Storage = builders.FileServer("ns", "fs").Ceph().Build().Spec.Storage
			o.dataServers[0].Status.Shares, o.dataServers[1].Status.Shares = nil, nil
			o.looked("fs-0", 1, func(i *internalv1.ShareInventory) { i.FileShareUID = "earlier" })
		}, []string{waits}, "fs-0 (", 1},
		"a client removes its directory": {
			builders.FileShare("ns", "s", "fs").Created(decideTime).Build(), func(o *observed) {
				o.put("x", "fs-1", ready, madeByClient)
				o.wasDone(1)
				delete(o.directories, "x")
				conditions.Set(&o.dataServers[1].Status.Conditions, 1, decideTime, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, ""))
			}, nil, "", 1,
		},
		"a Single share has its data on one volume": {
			single, func(o *observed) { o.looked("fs-0", 1); o.looked("fs-1", 1, onVolume(0)) }, []string{"create . fs-1"}, "", 1,
		},
		"a Single share has data on two": {
			single, func(o *observed) { o.looked("fs-0", 1, onVolume(0)); o.looked("fs-1", 1, onVolume(0)) },
			[]string{"fault " + v1alpha1.ReasonDataInSeveralPlaces},
			"", 1,
		},
		"one of the two does not count": {single, func(o *observed) {
			o.looked("fs-0", 1, onVolume(0))
			o.looked("fs-1", 1, onVolume(0))
			o.share.Spec.IgnoreDataOn = []string{"fs-0"}
		}, []string{"create . fs-1"}, "", 1},
		"a Single share has data on a volume that does not own it": {single, func(o *observed) {
			o.put(".", "fs-0", ready)
			o.wasDone(1)
			o.looked("fs-1", 1, onVolume(0))
		}, nil, "fs-1:/volumes/0/s", 1},
		"a directory is on two servers": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.put("b", "fs-0", ready)
			o.wasDone(1)
			o.looked("fs-1", 1, func(i *internalv1.ShareInventory) {
				i.Misplaced = []internalv1.MisplacedDirectory{{Volume: ptr.To(int32(3)), Path: "a"}}
				i.MisplacedCount = ptr.To(int32(1))
			})
		}, nil, "fs-1:/volumes/3/s/a", 1},
		"a directory is on another server than its owner, which does not have it": {spread, func(o *observed) {
			o.put("a", "fs-0", internalv1.DirectoryMissing, missed("00000000000000aa"))
			o.put("b", "fs-0", ready)
			o.wasDone(1)
			o.looked("fs-1", 1, hasCopies("a"))
		}, nil, "others do: fs-1:/volumes/0/s/a. Remove nothing there: condition JunctionsResolved", 1},
		"a directory is on another server than its owner, which does not answer": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.put("b", "fs-0", ready)
			o.wasDone(1)
			o.dataServers[0].Status.Unreachable = internalv1.Unreachable{SeenBy: "fs-namespace-0", SinceTime: ptr.To(metav1.NewTime(decideTime))}
			o.looked("fs-1", 1, hasCopies("a"))
		}, nil, "clients don't see what is in fs-1:/volumes/0/s/a. Remove nothing there: it may be the data. Whether fs-0 has these directories is known when it answers", 1},
		"a directory can't be recorded": {spread, func(o *observed) {
			o.put("a", "fs-0", ready)
			o.put("b", "fs-0", ready)
			o.wasDone(1)
			o.looked("fs-1", 1, func(i *internalv1.ShareInventory) {
				i.Skipped, i.SkippedCount = []string{`volume 0: "long…" (its path has 1,400 characters, and can have 1024)`}, ptr.To(int32(3))
			})
		}, nil, `clients don't see fs-1, volume 0: "long…" (its path has 1,400 characters, and can have 1024) and 2 more: the administrator of the FileServer renames them`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			share := tc.share.DeepCopy()
			share.UID, share.Generation = types.UID("uid-of-s"), 1
			o := passOf(share)
			if tc.change != nil {
				tc.change(o)
			}
			d := decide(o)
			if got := whatIsDecided(d); !slices.Equal(got, tc.want) {
				t.Errorf("decided:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			status := statusOf(o, d, outcome{created: len(d.directories.create)})
			if got := conditions.Message(status.Conditions, v1alpha1.FileShareInventoried); !strings.Contains(got, tc.message) {
				t.Errorf("Inventoried says %q, not %q", got, tc.message)
			}
			if waits := tc.generation > 1 || d.directories.fault != nil; waits && conditions.IsTrue(status.Conditions, v1alpha1.FileShareInventoried) && tc.message != "" {
				t.Error("Inventoried is True")
			}
			if got := status.InventoryGeneration; got != tc.generation {
				t.Errorf("inventories of generation %d are asked for, want %d", got, tc.generation)
			}
		})
	}
}

// A pass that reads from a cache that is behind must not place by inventories that are older than the loss.
func TestALossIsRememberedUntilAllDataServersWereLookedAt(t *testing.T) {
	share := builders.FileShare("ns", "s", "fs").Created(decideTime).Directories("{a,b}").Build()
	share.UID, share.Generation = "uid-of-s", 1
	o := passOf(share)
	o.wasDone(1)
	o.holds("fs-0", "fs-1")
	o.looked("fs-0", 1)
	o.looked("fs-1", 1)
	for pass := range 3 {
		d := decide(o)
		if len(d.directories.create) > 0 {
			t.Fatalf("pass %d places %v", pass, whatIsDecided(d))
		}
		o.share.Status = statusOf(o, d, outcome{})
		o.now = o.now.Add(time.Second)
	}
	if got := o.share.Status.InventoryGeneration; got != 2 {
		t.Errorf("one loss raises the generation to %d", got)
	}
	o.looked("fs-0", 2)
	o.looked("fs-1", 2)
	if got := whatIsDecided(decide(o)); len(got) != 2 {
		t.Errorf("after the look: %v", got)
	}
}
