package volumes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/test/builders"
)

func TestExpansionSaysHowFarItIs(t *testing.T) {
	resizing := func(status corev1.ClaimResourceStatus, all ...corev1.PersistentVolumeClaimCondition) corev1.PersistentVolumeClaim {
		c := claim("data-0-fs-1", "1Gi", "512Mi", corev1.ClaimBound)
		if status != "" {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
		}
		c.Status.Conditions = all
		return c
	}
	condition := func(kind corev1.PersistentVolumeClaimConditionType, message string) corev1.PersistentVolumeClaimCondition {
		return corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, Message: message}
	}
	const growing = "1 of 2 claims are growing to 1Gi: data-0-fs-1 from 512Mi"
	for name, tc := range map[string]struct {
		claim           corev1.PersistentVolumeClaim
		reason, message string
	}{
		"begun":              {resizing(""), v1alpha1.ReasonProgressing, growing},
		"in the storage":     {resizing(corev1.PersistentVolumeClaimControllerResizeInProgress), v1alpha1.ReasonProgressing, growing},
		"file system waits":  {resizing("", condition(corev1.PersistentVolumeClaimFileSystemResizePending, "")), v1alpha1.ReasonProgressing, growing + fileSystemPending},
		"waits for its node": {resizing(corev1.PersistentVolumeClaimNodeResizePending), v1alpha1.ReasonProgressing, growing + fileSystemPending},
		"fails": {
			resizing(corev1.PersistentVolumeClaimControllerResizeInProgress, condition(corev1.PersistentVolumeClaimControllerResizeError, "pool is full\n")),
			v1alpha1.ReasonExpansionFailing, growing + ", which fails: pool is full",
		},
		"fails on the node": {resizing("", condition(corev1.PersistentVolumeClaimNodeResizeError, "resize2fs")), v1alpha1.ReasonExpansionFailing, growing + ", which fails: resize2fs"},
		"failed once": {
			resizing("", corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionFalse}),
			v1alpha1.ReasonProgressing, growing,
		},
		"not possible": {
			resizing(corev1.PersistentVolumeClaimControllerResizeInfeasible), v1alpha1.ReasonExpansionFailing,
			growing + ", which the storage can't do: kubectl describe pvc has the reason",
		},
	} {
		o := storageWith(claim("data-0-fs-0", "1Gi", "1Gi", corev1.ClaimBound), tc.claim)
		if got := o.Condition(2, backendapi.Decision{}); got.Reason != tc.reason || got.Message != tc.message {
			t.Errorf("%s: %s %q, want %s %q", name, got.Reason, got.Message, tc.reason, tc.message)
		}
	}
}

func storageWith(claims ...corev1.PersistentVolumeClaim) *Storage {
	o := &Storage{Observation: backendapi.Observation{FileServer: builders.FileServer("n", "fs").Build(), DataServers: map[string]internalv1.DataServer{}}, All: map[string]corev1.PersistentVolumeClaim{}}
	for _, c := range claims {
		o.All[c.Name] = c
	}
	return o
}

// with reports a volume of a data server.
func (s *Storage) with(name string, total, used int64, change func(*internalv1.VolumeUsage)) *Storage {
	usage := internalv1.VolumeUsage{Index: ptr.To[int32](0), TotalBytes: &total, UsedBytes: &used, FreeBytes: ptr.To(total - used)}
	if change != nil {
		change(&usage)
	}
	server := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	server.Status.Volumes = []internalv1.VolumeUsage{usage}
	s.DataServers[name] = server
	return s
}

func bothBound() *Storage {
	return storageWith(claim("data-0-fs-0", "1Gi", "1Gi", corev1.ClaimBound), claim("data-0-fs-1", "1Gi", "1Gi", corev1.ClaimBound))
}

func TestFillingVolumesAreACaveat(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 25, 21, 40, 0, 0, time.UTC))
	filled := func(fill v1alpha1.VolumeFill) func(*internalv1.VolumeUsage) {
		return func(u *internalv1.VolumeUsage) { u.Fill = fill }
	}
	for name, tc := range map[string]struct {
		storage *Storage
		reason  string
		says    []string
	}{
		"room": {bothBound().with("fs-0", 100, 10, nil), v1alpha1.ReasonReady, []string{"2 of 2 claims are bound"}},
		"80 %, with a forecast": {
			bothBound().with("fs-0", 100, 81, func(u *internalv1.VolumeUsage) { u.Fill, u.FullTime = v1alpha1.FillAbove80, &at }), v1alpha1.ReasonVolumesNearlyFull,
			[]string{"claim data-0-fs-0 of fs-0 is more than 80 % full, and full about 2026-11-25 21:40 UTC at the present rate", "raise spec.storage.volumes.size, or remove files"},
		},
		"the fullest comes first": {
			bothBound().with("fs-0", 100, 81, filled(v1alpha1.FillAbove80)).with("fs-1", 100, 100, filled(v1alpha1.FillFull)), v1alpha1.ReasonVolumesFull,
			[]string{"claim data-0-fs-1 of fs-1 is full, claim data-0-fs-0 of fs-0 is more than 80 % full", "No space left on device"},
		},
		"inodes": {
			bothBound().with("fs-1", 100, 1, func(u *internalv1.VolumeUsage) {
				u.Fill, u.TotalFiles, u.UsedFiles = v1alpha1.FillAbove95, ptr.To[int64](100), ptr.To[int64](96)
			}), v1alpha1.ReasonVolumesNearlyFull, []string{"claim data-0-fs-1 of fs-1 is more than 95 % full of inodes"},
		},
	} {
		got := tc.storage.Condition(2, backendapi.Decision{})
		if got.Reason != tc.reason || got.Status != metav1.ConditionTrue {
			t.Errorf("%s: %s %s", name, got.Status, got.Reason)
		}
		for _, words := range tc.says {
			if !strings.Contains(got.Message, words) {
				t.Errorf("%s: %q does not say %q", name, got.Message, words)
			}
		}
	}
}

func TestTheRemedyFollowsTheClass(t *testing.T) {
	plain, expandable := builders.StorageClass("plain").Build(), builders.StorageClass("big").Expandable().Build()
	for class, want := range map[string]string{
		"big": "raise spec.storage.volumes.size, or remove files", "plain": `StorageClass "plain" does not expand volumes`, "gone": `StorageClass "gone" does not expand volumes`,
	} {
		o := bothBound()
		o.StatefulSet, o.Classes = templateOf(class, "1Gi"), []storagev1.StorageClass{*plain, *expandable}
		if got := o.Remedy(); !strings.Contains(got, want) {
			t.Errorf("%s: %q", class, got)
		}
	}
}

func TestCapacityTellsPromisesFromFileSystems(t *testing.T) {
	disk := func(u *internalv1.VolumeUsage) { u.FileSystemID = "disk" }
	o := bothBound().with("fs-0", 100, 10, disk).with("fs-1", 100, 10, disk)
	got := o.Capacity([]string{"fs-1", "fs-0"})
	if *got.TotalBytes != 100 || *got.UsedBytes != 10 || *got.FreeBytes != 90 || *got.ProvisionedBytes != 2<<30 {
		t.Errorf("two claims on one disk: %d, %d, %d, %d", *got.TotalBytes, *got.UsedBytes, *got.FreeBytes, *got.ProvisionedBytes)
	}
	if one := o.Capacity([]string{"fs-1"}); *one.TotalBytes != 100 || *one.ProvisionedBytes != 1<<30 {
		t.Errorf("one of them: %+v", one)
	}
	if none := o.Capacity([]string{"fs-2"}); none.TotalBytes != nil || none.ProvisionedBytes != nil {
		t.Errorf("one that is unknown: %+v", none)
	}
}

func TestTheSizeThatEveryClaimHas(t *testing.T) {
	of := func(request, capacity string) *Storage {
		return storageWith(claim("data-0-fs-0", "4Gi", "4Gi", corev1.ClaimBound), claim("data-0-fs-1", request, capacity, corev1.ClaimBound))
	}
	going := claim("data-0-fs-1", "1Gi", "1Gi", corev1.ClaimBound)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	waiting := claim("data-0-fs-1", "1Gi", "1Gi", corev1.ClaimPending)
	waiting.Status.Capacity = nil
	for name, tc := range map[string]struct {
		storage *Storage
		want    string
	}{
		"no claims":                  {storageWith(), ""},
		"a small one":                {of("1Gi", "1Gi"), "1Gi"},
		"it was made larger by hand": {of("9Gi", "9Gi"), "4Gi"},
		"its expansion has not come": {of("9Gi", "1Gi"), "1Gi"},
		"it got more than it asked":  {of("1500Mi", "2Gi"), "1500Mi"},
		"it is being deleted":        {storageWith(claim("data-0-fs-0", "4Gi", "4Gi", corev1.ClaimBound), going), "4Gi"},
		"it is not bound":            {storageWith(claim("data-0-fs-0", "4Gi", "4Gi", corev1.ClaimBound), waiting), "1Gi"},
	} {
		got := ""
		if size := tc.storage.VolumeSize(); size != nil {
			got = size.String()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
