package fileshare

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// twoServers is a share that both data servers of its FileServer export.
func twoServers() *observed {
	o := &observed{
		now: noon, share: builders.FileShare("ns", "s", "fs").Created(noon).Build(), fileServer: builders.FileServer("ns", "fs").Build(),
		exports: map[string]*internalv1.ShareExport{},
	}
	o.share.UID = "share"
	generation := int64(1)
	for _, name := range []string{"fs-0", "fs-1"} {
		server := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		server.Status = internalv1.DataServerStatus{Conditions: builders.ReadyConditions(), ObservedGeneration: &generation}
		o.dataServers = append(o.dataServers, server)
		o.fileServer.Status.Servers = append(o.fileServer.Status.Servers, v1alpha1.FileServerServerStatus{Name: name, State: v1alpha1.ServerServing})
		export := desired.ShareExport(o.share, name)
		export.Spec.Access = desired.AccessDigest(export.Spec.Access) // As the cache has it.
		export.Generation = 1
		export.Status = internalv1.ShareExportStatus{Conditions: builders.ServingConditions(), ObservedGeneration: &generation}
		o.exports[name] = export
	}
	return o
}

func deleted(export *internalv1.ShareExport) {
	at := metav1.NewTime(noon)
	export.DeletionTimestamp = &at
}

// describe is a plan in a line: what is created, changed and removed.
func describe(plan exportPlan) string {
	var steps []string
	for _, export := range plan.create {
		steps = append(steps, "create "+export.Name)
	}
	for _, change := range plan.change {
		steps = append(steps, fmt.Sprintf("change %s (%s)", change.after.Name, change.after.Spec.DataPolicy))
	}
	for _, export := range plan.remove {
		steps = append(steps, "remove "+export.Name)
	}
	return strings.Join(steps, ", ")
}

func TestExportsOfALiveShare(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*observed)
		want   string
	}{
		"nothing to do":                   {func(*observed) {}, ""},
		"a new data server":               {func(o *observed) { delete(o.exports, "fs-1") }, "create s.fs-1"},
		"other access rules":              {func(o *observed) { o.exports["fs-0"].Spec.Access = desired.AccessDigest(nil) }, "change s.fs-0 (Retain)"},
		"a policy that is not the time's": {func(o *observed) { o.exports["fs-0"].Spec.DataPolicy = internalv1.DataDelete }, "change s.fs-0 (Retain)"},
		"a lost finalizer":                {func(o *observed) { o.exports["fs-0"].Finalizers = nil }, "change s.fs-0 (Retain)"},
		"an export that an earlier share left": {
			func(o *observed) { o.exports["fs-0"].OwnerReferences[0].UID = "another" }, "change s.fs-0 (Retain)",
		},
		"an earlier share's export still going": {func(o *observed) { deleted(o.exports["fs-1"]) }, ""},
		"a data server that is no more":         {func(o *observed) { o.dataServers = o.dataServers[:1] }, "remove s.fs-1"},
		"a data server being deleted": {func(o *observed) {
			at := metav1.NewTime(noon)
			o.dataServers[1].DeletionTimestamp = &at
		}, "remove s.fs-1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoServers()
			tc.change(o)
			o.accessDigest = new(digests).of(o.share)
			if got := describe(planExports(o)); got != tc.want {
				t.Errorf("%q, not %q", got, tc.want)
			}
		})
	}
}

// What is remembered of access rules is for one generation of one share.
func TestADigestIsOfTheNewestRules(t *testing.T) {
	var d digests
	share := builders.FileShare("ns", "s", "fs").Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, "10.0.0.0/8").Build()
	share.UID, share.Generation = "uid", 1
	first := d.of(share)
	if !equality.Semantic.DeepEqual(first, desired.AccessDigest(desired.ShareExport(share, "").Spec.Access)) {
		t.Errorf("%v", first)
	}
	other := share.DeepCopy()
	other.Spec.Access[0].Clients = []string{"10.0.0.0/9"}
	if d.of(other)[0].Clients[0] != first[0].Clients[0] {
		t.Error("the digest was computed again without a new generation")
	}
	newer := other.DeepCopy()
	newer.Generation++
	again := share.DeepCopy()
	again.UID = "another"
	for what, share := range map[string]*v1alpha1.FileShare{"a generation": newer, "another share of the name": again} {
		if want := desired.AccessDigest(desired.ShareExport(share, "").Spec.Access); !equality.Semantic.DeepEqual(d.of(share), want) {
			t.Errorf("%s: %v, not %v", what, d.of(share), want)
		}
	}
	if d.forget(client.ObjectKeyFromObject(share)); len(d.by) > 0 {
		t.Errorf("left: %v", d.by)
	}
}

func TestExportsOfADeletedShare(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  v1alpha1.ReclaimPolicy
		change  func(*observed)
		plan    string
		waiting string
		left    []string
	}{
		"with Retain": {
			"", func(*observed) {}, "remove s.fs-0, remove s.fs-1",
			"waiting for 2 of 2 data servers to stop exporting the share: fs-0, fs-1", nil,
		},
		"with Delete says so first": {
			v1alpha1.ReclaimDelete, func(*observed) {}, "change s.fs-0 (Delete), change s.fs-1 (Delete), remove s.fs-0, remove s.fs-1",
			"waiting for 2 of 2 data servers to stop exporting the share and to remove its data, 0 directories: fs-0, fs-1", nil,
		},
		"with Delete, deleted by accident before": {v1alpha1.ReclaimDelete, func(o *observed) {
			deleted(o.exports["fs-0"])
			delete(o.exports, "fs-1")
		}, "change s.fs-0 (Delete)", "waiting for 1 of 2 data servers to stop exporting the share and to remove its data, 0 directories: fs-0", nil},
		"one server lost": {"", func(o *observed) {
			deleted(o.exports["fs-1"])
			delete(o.exports, "fs-0")
			o.fileServer.Status.Servers[1].State = v1alpha1.ServerUnavailable
		}, "", "", []string{"fs-1"}},
		"a server that never started": {"", func(o *observed) {
			deleted(o.exports["fs-1"])
			delete(o.exports, "fs-0")
			o.fileServer.Status.Servers[1].State = v1alpha1.ServerPending
		}, "", "", []string{"fs-1"}},
		"a server that can't remove the data": {"", func(o *observed) {
			delete(o.exports, "fs-1")
			deleted(o.exports["fs-0"])
			o.exports["fs-0"].Status.Conditions = []metav1.Condition{{Type: internalv1.ExportRemoved, Status: metav1.ConditionFalse, Message: "read-only file system"}}
		}, "", "waiting for 1 of 2 data servers to stop exporting the share: fs-0 (read-only file system)", nil},
		"no FileServer any more": {"", func(o *observed) { o.fileServer = nil }, "remove s.fs-0, remove s.fs-1", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoServers()
			o.share.Spec.ReclaimPolicy = tc.policy
			tc.change(o)
			if got := describe(planRemoval(o)); got != tc.plan {
				t.Errorf("plan %q, not %q", got, tc.plan)
			}
			if got := waitForExports(o); got != tc.waiting {
				t.Errorf("waiting %q, not %q", got, tc.waiting)
			}
			if got := awayServers(o); !slices.Equal(got, tc.left) {
				t.Errorf("left behind %q, not %q", got, tc.left)
			}
		})
	}
}

func TestADeletedShareAsksForDataThatItWasNeverServedFrom(t *testing.T) {
	none, has := "", digestOf(t, "s")
	keptOut := func(reason string) func(*observed) {
		return func(o *observed) {
			o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileSharePlaced, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	for name, tc := range map[string]struct {
		policy v1alpha1.ReclaimPolicy
		change func(*observed)
		want   string
	}{
		"with Delete":                {v1alpha1.ReclaimDelete, func(*observed) {}, "create s.fs-0, create s.fs-1"},
		"with Retain":                {v1alpha1.ReclaimRetain, func(*observed) {}, ""},
		"a data server never had it": {v1alpha1.ReclaimDelete, func(o *observed) { o.dataServers[0].Status.Shares = &none }, "create s.fs-1"},
		"a data server can't tell":   {v1alpha1.ReclaimDelete, func(o *observed) { o.dataServers[0].Status.Shares = nil }, "create s.fs-0, create s.fs-1"},
		"a data server that goes":    {v1alpha1.ReclaimDelete, func(o *observed) { o.dataServers[1].DeletionTimestamp = &metav1.Time{Time: noon} }, "create s.fs-0"},
		"all were asked": {v1alpha1.ReclaimDelete, func(o *observed) {
			o.share.Status.Conditions = append(o.share.Status.Conditions, deletingConditions()...)
		}, ""},
		"no FileServer any more":             {v1alpha1.ReclaimDelete, func(o *observed) { o.fileServer = nil }, ""},
		"another share was in its way":       {v1alpha1.ReclaimDelete, keptOut(v1alpha1.ReasonPathConflict), ""},
		"no pass has looked at it yet":       {v1alpha1.ReclaimDelete, func(o *observed) { o.share.Status.Conditions = nil }, ""},
		"one share too many":                 {v1alpha1.ReclaimDelete, keptOut(v1alpha1.ReasonTooManyShares), ""},
		"a FileServer that does not know it": {v1alpha1.ReclaimDelete, func(o *observed) { o.refused = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoServers()
			clear(o.exports)
			keptOut(v1alpha1.ReasonInventoryPending)(o)
			for i := range o.dataServers {
				o.dataServers[i].Status.Shares = &has
			}
			o.share.Spec.ReclaimPolicy = tc.policy
			tc.change(o)
			if got := describe(exportPlan{create: planRecall(o)}); got != tc.want {
				t.Errorf("plan %q, not %q", got, tc.want)
			}
		})
	}
}

func deletingConditions() []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeleting}}
}

func digestOf(t *testing.T, names ...string) string {
	digest, ok := naming.DigestNames(names)
	if !ok {
		t.Fatal("there is no digest of so few names")
	}
	return digest
}

// A share that was never let in must not take away what an earlier share of its name left.
func TestAShareThatWasKeptOutLeavesTheDataOfEarlierOnes(t *testing.T) {
	o := twoServers()
	o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileSharePlaced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPathConflict}}
	deleted(o.exports["fs-0"]) // That of an earlier one, whose data server is away.
	delete(o.exports, "fs-1")
	if got := describe(planRemoval(o)); got != "" {
		t.Errorf("plan %q", got)
	}
}

// Between its finalizer and its first status a share has what such a pass made, or nothing.
func TestAShareThatNoPassHasLookedAtLeavesTheDataOfEarlierOnes(t *testing.T) {
	placed := func(o *observed, reason string) {
		o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileSharePlaced, Status: metav1.ConditionFalse, Reason: reason}}
	}
	owned := func(object client.Object, by types.UID) {
		object.SetOwnerReferences([]metav1.OwnerReference{{Kind: "FileShare", Name: "s", UID: by, Controller: ptr.To(true)}})
	}
	for name, tc := range map[string]struct {
		change  func(*observed)
		removes bool
	}{
		"nothing is there":          {func(o *observed) { clear(o.exports) }, false},
		"an earlier share's export": {func(o *observed) { owned(o.exports["fs-0"], "earlier"); delete(o.exports, "fs-1") }, false},
		"its own export":            {func(o *observed) { owned(o.exports["fs-0"], o.share.UID) }, true},
		"its own, which ends":       {func(o *observed) { owned(o.exports["fs-0"], o.share.UID); deleted(o.exports["fs-0"]) }, true},
		"its own place in the storage": {func(o *observed) {
			clear(o.exports)
			o.storage = &internalv1.ShareStorage{}
			owned(o.storage, o.share.UID)
		}, true},
		"an earlier place": {func(o *observed) {
			clear(o.exports)
			o.storage = &internalv1.ShareStorage{}
			owned(o.storage, "earlier")
		}, false},
		"its FileServer was not there": {func(o *observed) { clear(o.exports); placed(o, v1alpha1.ReasonFileServerNotFound) }, false},
		"its FileServer was not there, and an earlier share's export is": {func(o *observed) {
			placed(o, v1alpha1.ReasonFileServerNotFound)
			owned(o.exports["fs-0"], "earlier")
			delete(o.exports, "fs-1")
		}, false},
		"its FileServer was not there for a while": {func(o *observed) {
			placed(o, v1alpha1.ReasonFileServerNotFound)
			owned(o.exports["fs-0"], o.share.UID)
		}, true},
		"the operator did not look after its FileServer's namespace": {func(o *observed) { clear(o.exports); placed(o, v1alpha1.ReasonNamespaceNotWatched) }, false},
		"it waited for data servers":                                 {func(o *observed) { clear(o.exports); placed(o, v1alpha1.ReasonFileServerNotReady) }, true},
		"elsewhere, an earlier export":                               {func(o *observed) { foreign(o, -time.Minute) }, false},
		"elsewhere, its own export":                                  {func(o *observed) { foreign(o, time.Second) }, true},
		"elsewhere, and nothing is there":                            {func(o *observed) { foreign(o, 0); clear(o.exports) }, false},
	} {
		o := twoServers()
		o.share.UID, o.share.Spec.ReclaimPolicy, o.share.Status.Conditions = "this", v1alpha1.ReclaimDelete, nil
		for _, export := range o.exports {
			export.OwnerReferences = nil
		}
		if tc.change(o); removesData(o) != tc.removes {
			t.Errorf("%s: removes data: %v", name, removesData(o))
		}
	}
}

// foreign has the share's FileServer in another Kubernetes namespace, with exports that are younger than the share by so much.
func foreign(o *observed, younger time.Duration) {
	o.share.Spec.FileServerRef.Namespace, o.share.CreationTimestamp = "storage", metav1.NewTime(noon)
	for _, export := range o.exports {
		export.CreationTimestamp = metav1.NewTime(noon.Add(younger))
	}
}

func TestWhyAShareIsNotExported(t *testing.T) {
	failing := func(reason, message string) func(*observed) {
		return func(o *observed) {
			o.exports["fs-0"].Status.Conditions = []metav1.Condition{{Type: internalv1.ExportServing, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	notReady := func(since time.Duration) func(*observed) {
		return func(o *observed) {
			o.dataServers[0].Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: internalv1.ReasonStopping, LastTransitionTime: metav1.NewTime(noon.Add(-since)),
			}}
		}
	}
	storage := func(reason string, since time.Duration) func(*observed) {
		return func(o *observed) {
			o.fileServer.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.FileServerStorageAvailable, Status: metav1.ConditionFalse, Reason: reason, Message: "Ceph file system fs1 is failing: full", LastTransitionTime: metav1.NewTime(noon.Add(-since)),
			}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*observed)
		reason string
		says   string
	}{
		"the storage fails for long":     {storage(v1alpha1.ReasonStorageFailing, 10*time.Second), v1alpha1.ReasonStorageFailing, "as the storage of FileServer fs reports: Ceph file system fs1 is failing: full"},
		"the storage fails for a moment": {storage(v1alpha1.ReasonStorageFailing, 9*time.Second), v1alpha1.ReasonReady, ""},
		"another's claims are not there": {storage(v1alpha1.ReasonClaimsPending, time.Hour), v1alpha1.ReasonReady, ""},
		"the storage fails and a server is not done": {func(o *observed) {
			storage(v1alpha1.ReasonStorageFailing, time.Hour)(o)
			o.exports["fs-0"].Generation = 2
		}, v1alpha1.ReasonStorageFailing, "full"},
		"the server restarts":                 {notReady(4 * time.Second), v1alpha1.ReasonReady, ""},
		"the server restarts for long":        {notReady(10 * time.Second), v1alpha1.ReasonExportsPending, "fs-0 (is not ready: Stopping)"},
		"the server's clock is ahead of ours": {notReady(-time.Hour), v1alpha1.ReasonExportsPending, "fs-0 (is not ready: Stopping)"},
		"the server restarts and has not loaded the newest": {func(o *observed) {
			notReady(4 * time.Second)(o)
			o.exports["fs-0"].Generation = 2
		}, v1alpha1.ReasonExportsPending, "fs-0 (has not loaded the newest state of the export)"},
		"the server restarts and does not answer": {func(o *observed) {
			notReady(4 * time.Second)(o)
			o.dataServers[0].Status.Unreachable.SeenBy = "fs-namespace-0"
			since := metav1.NewTime(noon)
			o.dataServers[0].Status.Unreachable.SinceTime = &since
		}, v1alpha1.ReasonDataServersUnavailable, "fs-0 (no answer since 2026-11-22T12:00:00Z)"},
		"served":                      {func(*observed) {}, v1alpha1.ReasonReady, ""},
		"another's server generation": {func(o *observed) { o.dataServers[0].Generation = 7 }, v1alpha1.ReasonReady, ""},
		"not asked":                   {func(o *observed) { delete(o.exports, "fs-0") }, v1alpha1.ReasonExportsPending, "fs-0 (was not asked to yet)"},
		"a new generation":            {func(o *observed) { o.exports["fs-0"].Generation = 2 }, v1alpha1.ReasonExportsPending, "fs-0 (has not loaded the newest state of the export)"},
		"an earlier share's":          {func(o *observed) { deleted(o.exports["fs-0"]) }, v1alpha1.ReasonExportsPending, "fs-0 (has to drop the export of an earlier share of this name first)"},
		"the server is down":          {func(o *observed) { o.dataServers[0].Status.Conditions = nil }, v1alpha1.ReasonExportsPending, "fs-0 (is not ready"},
		"it fails":                    {failing(internalv1.ReasonExportsFailing, "/s/0: no such path"), v1alpha1.ReasonExportsPending, "fs-0 (/s/0: no such path)"},
		"no id is left":               {failing(internalv1.ReasonExportIDsExhausted, "at most 65535"), v1alpha1.ReasonTooManyShares, "fs-0 (at most 65535)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoServers()
			zero := int32(0)
			for _, server := range []string{"fs-0", "fs-1"} {
				directory := builders.ShareDirectory("ns", "fs", "s", server, server)
				directory.Spec.Volume = &zero
				if o.directories == nil {
					o.directories = map[string]*internalv1.ShareDirectory{}
				}
				o.directories[server] = directory
			}
			tc.change(o)
			got := exportedCondition(o, nil)
			if tc.reason == v1alpha1.ReasonReady {
				tc.says = "all 2 data servers that own directories export the share"
			}
			if got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%s: %s", got.Reason, got.Message)
			}
		})
	}
}

// No event comes when the allowance of a restarting data server is over, so the share's pass comes back by itself.
func TestARestartIsLookedAtAgain(t *testing.T) {
	for since, again := range map[time.Duration]time.Duration{0: fleet.RestartAllowance, 4 * time.Second: fleet.RestartAllowance - 4*time.Second, fleet.RestartAllowance: 0, -time.Hour: 0} {
		o := twoServers()
		o.dataServers[1].Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(-since)),
		}}
		if got := decide(o).again; got != again {
			t.Errorf("%s after the server reported not Ready: again in %s, not %s", since, got, again)
		}
	}
}

// Nor does it hear of storage that fails for a while.
func TestFailingStorageIsLookedAtAgain(t *testing.T) {
	for since, again := range map[time.Duration]time.Duration{0: failingAllowance, 4 * time.Second: failingAllowance - 4*time.Second, failingAllowance: 0, -time.Hour: 0} {
		o := twoServers()
		o.fileServer.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.FileServerStorageAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStorageFailing, LastTransitionTime: metav1.NewTime(noon.Add(-since)),
		}}
		if got := decide(o).again; got != again {
			t.Errorf("%s after the storage failed: again in %s, not %s", since, got, again)
		}
	}
}

// The removal of a FileServer's last share is judged by its own export, at its own generation: there is no other share whose state
// could stand for it, and a report from before the data was to go tells nothing of the data.
func TestTheLastShareIsDoneWhenItsDataServerSaysSo(t *testing.T) {
	generation := func(n int64) *int64 { return &n }
	removed := []metav1.Condition{{Type: internalv1.ExportRemoved, Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		status internalv1.ShareExportStatus
		want   bool
	}{
		"still served":                      {internalv1.ShareExportStatus{Conditions: builders.ServingConditions(), ObservedGeneration: generation(2)}, false},
		"nothing was reported":              {internalv1.ShareExportStatus{}, false},
		"removed before the data was to go": {internalv1.ShareExportStatus{Conditions: removed, ObservedGeneration: generation(1)}, false},
		"removed, of an unknown generation": {internalv1.ShareExportStatus{Conditions: removed}, false},
		"removed":                           {internalv1.ShareExportStatus{Conditions: removed, ObservedGeneration: generation(2)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoServers()
			export := o.exports["fs-0"]
			deleted(export)
			export.Generation, export.Spec.DataPolicy, export.Status = 2, internalv1.DataDelete, tc.status
			r := &Reconciler{Client: withDataServers{}}
			if done, err := r.isFinished(t.Context(), export); err != nil || done != tc.want {
				t.Errorf("done: %v, %v", done, err)
			}
		})
	}
}

// withDataServers is an API that has every object that it is asked for.
type withDataServers struct{ client.Client }

func (withDataServers) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}
