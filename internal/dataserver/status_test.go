package dataserver

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

func TestUsageIsReportedInStepsThatDoNotFlap(t *testing.T) {
	const step = 1 << 20
	at := func(used int64) backend.Usage { return backend.Usage{Total: 64 * step, Used: used} }
	tests := map[string]struct {
		real, reported backend.Usage
		want           int64
	}{
		"an empty volume":                    {at(0), backend.Usage{}, 0},
		"one byte":                           {at(1), backend.Usage{}, step},
		"a full volume":                      {at(64 * step), backend.Usage{}, 64 * step},
		"within the reported step":           {at(5*step - 1), at(5 * step), 5 * step},
		"a little above the reported step":   {at(5*step + 1), at(5 * step), 6 * step},
		"a little below the reported step":   {at(4*step - 1), at(5 * step), 5 * step},
		"well below the reported step":       {at(4*step - step/2), at(5 * step), 4 * step},
		"all removed":                        {at(0), at(5 * step), 0},
		"a volume that grew":                 {backend.Usage{Total: 128 * step, Used: step}, at(5 * step), 2 * step},
		"a volume of fewer bytes than steps": {backend.Usage{Total: 10, Used: 3}, backend.Usage{}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := coarse(tc.real, tc.reported); got.Used != tc.want || got.Total != tc.real.Total {
				t.Errorf("%+v, not %d", got, tc.want)
			}
		})
	}
}

func TestTheStatusSaysHowTheStorageIs(t *testing.T) {
	status := statusFrom(internalv1.DataServerStatus{}, observation{ready: true, reason: v1alpha1.ReasonReady}, metav1.Now())
	for name, tc := range map[string]struct {
		health       backend.Health
		want         metav1.ConditionStatus
		reason, says string
	}{
		"well":                 {backend.Health{}, metav1.ConditionTrue, v1alpha1.ReasonReady, "the storage is well"},
		"degraded":             {backend.Health{Degraded: "osd.1"}, metav1.ConditionTrue, v1alpha1.ReasonStorageDegraded, "osd.1"},
		"failing":              {backend.Health{Failing: "full"}, metav1.ConditionFalse, v1alpha1.ReasonStorageFailing, "full"},
		"failing and degraded": {backend.Health{Failing: "full", Degraded: "osd.1"}, metav1.ConditionFalse, v1alpha1.ReasonStorageFailing, "full; osd.1"},
	} {
		status = withHealth(status, tc.health, metav1.Now())
		got := meta.FindStatusCondition(status.Conditions, internalv1.StorageHealthy)
		if got == nil || got.Status != tc.want || got.Reason != tc.reason || got.Message != tc.says {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A pass writes what it knows, and leaves this.
	after := statusFrom(status, observation{reason: internalv1.ReasonServerDown}, metav1.Now())
	if len(after.Conditions) != 2 || meta.FindStatusCondition(after.Conditions, internalv1.StorageHealthy) == nil {
		t.Errorf("%+v", after.Conditions)
	}
}

func TestTheStatusSaysWhatIsServed(t *testing.T) {
	now := metav1.Now()
	seen := observation{
		nodeName: "node1", podIP: "10.0.0.1", generation: 4, loaded: true, ready: true, reason: v1alpha1.ReasonReady, message: "all",
		usage: []backend.Usage{{Total: 6400, Used: 150}},
	}
	good := statusFrom(internalv1.DataServerStatus{}, seen, now)
	if *good.ObservedGeneration != 4 || *good.Volumes[0].UsedBytes != 200 {
		t.Errorf("%+v", good)
	}
	if again := statusFrom(good, seen, metav1.NewTime(now.Add(1e9))); !equality.Semantic.DeepEqual(good, again) {
		t.Error("the same observation a second later is another status")
	}
	seen.generation, seen.loaded, seen.ready, seen.reason, seen.usage = 5, false, false, internalv1.ReasonReloadFailed, nil
	seen.message = strings.Repeat("ä", maxMessage)
	bad := statusFrom(good, seen, now)
	condition := meta.FindStatusCondition(bad.Conditions, v1alpha1.ConditionReady)
	if *bad.ObservedGeneration != 4 || condition.Status != metav1.ConditionFalse || condition.ObservedGeneration != 5 || len(bad.Volumes) != 1 {
		t.Errorf("%+v", bad)
	}
	if len(condition.Message) > maxMessage || strings.ContainsRune(condition.Message, '\uFFFD') {
		t.Errorf("a message of %d bytes", len(condition.Message))
	}
}

func TestTheStatusOfAnExport(t *testing.T) {
	now := metav1.Now()
	served := exportStatusFrom(internalv1.ShareExportStatus{}, exportSight{generation: 1, ids: []int32{7}, serves: true}, now)
	broken := &fault{internalv1.ReasonExportsFailing, errors.New("/a/0: no such path")}
	for name, tc := range map[string]struct {
		earlier internalv1.ShareExportStatus
		seen    exportSight
		// serving and removed are reason and status of the conditions, "" where there is none.
		serving, removed string
		observed         int64
	}{
		"not looked at yet":          {internalv1.ShareExportStatus{}, exportSight{generation: 1}, "", "", 0},
		"served":                     {internalv1.ShareExportStatus{}, exportSight{generation: 1, serves: true, ids: []int32{7}}, "True Ready", "", 1},
		"a new generation is served": {served, exportSight{generation: 2, serves: true, ids: []int32{7}}, "True Ready", "", 2},
		"served once, not looked at": {served, exportSight{generation: 2}, "True Ready", "", 1},
		"failing":                    {served, exportSight{generation: 2, fault: broken}, "False ExportsFailing", "", 1},
		"served, and a fault":        {served, exportSight{generation: 1, serves: true, fault: broken}, "False ExportsFailing", "", 1},
		"being deleted":              {served, exportSight{generation: 2, deleting: true}, "True Ready", "", 1},
		"gone":                       {served, exportSight{generation: 2, deleting: true, removed: true}, "False Removed", "True Removed", 2},
		"can't be dropped":           {served, exportSight{generation: 2, deleting: true, fault: broken}, "True Ready", "False ExportsFailing", 1},
	} {
		t.Run(name, func(t *testing.T) {
			status := exportStatusFrom(tc.earlier, tc.seen, now)
			said := func(kind string) string {
				if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
					return string(c.Status) + " " + c.Reason
				}
				return ""
			}
			observed := int64(0)
			if status.ObservedGeneration != nil {
				observed = *status.ObservedGeneration
			}
			if said(internalv1.ExportServing) != tc.serving || said(internalv1.ExportRemoved) != tc.removed || observed != tc.observed {
				t.Errorf("%+v", status)
			}
			if again := exportStatusFrom(status, tc.seen, metav1.NewTime(now.Add(1e9))); !equality.Semantic.DeepEqual(status, again) {
				t.Error("the same sight a second later is another status")
			}
		})
	}
}

func TestGaneshasLinesKeepTheirWeight(t *testing.T) {
	tests := map[string]struct {
		text, message string
		level         slog.Level
	}{
		"an event": {
			"21/11/2026 14:06:09 : epoch 00003039 : training-0 : ganesha.nfsd-1[sigmgr] reread_exports :CONFIG :EVENT :Reread exports complete",
			lineReloaded, slog.LevelInfo,
		},
		"the banner": {
			"21/11/2026 14:06:05 : epoch 00003039 : training-0 : ganesha.nfsd-1[main] nfs_start :NFS STARTUP :EVENT :             NFS SERVER INITIALIZED",
			lineInitialized, slog.LevelInfo,
		},
		"a critical one": {
			"21/11/2026 14:05:37 : epoch 00003039 : training-0 : ganesha.nfsd-1[main] fsal_cfg_commit :CONFIG :CRIT :Could not create export for (/a/0) to (/volumes/0/a)",
			"Could not create export for (/a/0) to (/volumes/0/a)", slog.LevelError,
		},
		"no capability for it, on purpose": {
			"21/11/2026 14:06:05 : epoch 00003039 : training-0 : ganesha.nfsd-1[main] main :MAIN :WARN :Failed to set PR_SET_IO_FLUSHER due to EPERM, ignoring...",
			"Failed to set PR_SET_IO_FLUSHER due to EPERM, ignoring...", slog.LevelDebug,
		},
		"something of the libraries": {"ld.so: whatever", "ld.so: whatever", slog.LevelInfo},
		"a line cut short":           {"21/11/2026 14:06:09 : epoch 1 : h : ganesha.nfsd-1[main] x :A", "21/11/2026 14:06:09 : epoch 1 : h : ganesha.nfsd-1[main] x :A", slog.LevelInfo},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			line := parseLogLine(tc.text)
			if line.message != tc.message || line.severity() != tc.level {
				t.Errorf("%+v of %v", line, line.severity())
			}
		})
	}
}

func TestTheOwnerComesFromTheNameAndTheUID(t *testing.T) {
	dataServer := sampleServer(1)
	dataServer.Spec.FileServerRef.Name, dataServer.Name = "a-1", "a-1-12"
	if owner, err := serverOwner(dataServer); err != nil || owner != dataServer.Spec.ServerScope+"-12" {
		t.Errorf("%q, %v", owner, err)
	}
	for _, name := range []string{"a-1", "a-1-", "a-1-x", "a-1--1", "b-1-0", "a-1-99999999999"} {
		dataServer.Name = name
		if owner, err := serverOwner(dataServer); err == nil {
			t.Errorf("%s is owner %s", name, owner)
		}
	}
}

func TestAValueOfALaterVersionLetsNobodyIn(t *testing.T) {
	for name, rule := range map[string]v1alpha1.AccessRule{
		"an accessType": {Clients: []string{"10.0.0.0/8"}, AccessType: "Append"},
		"ports":         {Clients: []string{"10.0.0.0/8"}, SourcePorts: "High"},
		"a squash":      {Clients: []string{"10.0.0.0/8"}, Squash: "Some"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := &exportids.Table{Parts: []map[string]exportids.Entry{{}}}
			mustWork(t, "allocate", ids.Allocate("a", nil))
			exports := []*internalv1.ShareExport{newExport(shareSpec("a", rule))}
			if config, err := desiredConfig(sampleServer(1), exports, ids, volumes.New("/volumes", quiet), ownAddress(), 0); err == nil {
				t.Errorf("%+v", config)
			}
		})
	}
}
