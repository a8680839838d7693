package dataserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/printable"
)

// maxMessage is the largest message of a condition, in bytes (metav1.Condition).
const maxMessage = 32768

// maxSharedFileSystem is the schema's limit of sharedFileSystem, in bytes.
const maxSharedFileSystem = 1024

// observation is what the instance manager knows of its data server at the end of a pass.
type observation struct {
	nodeName, podIP string
	// generation is the DataServer's generation.
	generation int64
	// loaded is true if ganesha serves everything that this generation asks for.
	loaded bool
	// ready, reason and message are the Ready condition.
	ready           bool
	reason, message string
	// shares is the number of shares that serve on every volume.
	shares int
	// failing is the number of shares that something is wrong with.
	failing int
	usage   []backend.Usage
	// held is the digest of the shares that have a directory on the volumes, nil if that is not known.
	held *string
	// volumeIDs are the identities of volumes, by number.
	volumeIDs map[int32]string
	// connections are those of clients, and maxConnections how many there may be; 0: not known.
	connections, maxConnections int32
}

// exportSight is what the instance manager knows of an export at the end of a pass that looked at all of them.
type exportSight struct {
	generation int64
	deleting   bool
	data       internalv1.DataPolicy
	ids        []int32
	// rootIDs are the identities of the share\'s directories, by volume.
	rootIDs []string
	// serves is true if ganesha serves it on every volume as this generation asks for.
	serves bool
	// removed is true if the export is gone, and its data where that was asked for.
	removed bool
	// fault is nil unless something is wrong with this very export.
	fault *fault
}

// exportStatusFrom is the status to report of an export. What was served once and can't be told now keeps its earlier word.
func exportStatusFrom(earlier internalv1.ShareExportStatus, seen exportSight, now metav1.Time) internalv1.ShareExportStatus {
	status := *earlier.DeepCopy()
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: truncate(message, maxMessage),
			ObservedGeneration: seen.generation, LastTransitionTime: now,
		})
	}
	switch {
	case seen.deleting && seen.removed:
		message := "ganesha has dropped the export; its data stays"
		if seen.data == internalv1.DataDelete {
			message = "ganesha has dropped the export, and its data is removed"
		}
		set(internalv1.ExportServing, metav1.ConditionFalse, internalv1.ExportRemoved, message)
		set(internalv1.ExportRemoved, metav1.ConditionTrue, internalv1.ExportRemoved, message)
		status.ObservedGeneration = &seen.generation
	case seen.deleting && seen.fault != nil:
		set(internalv1.ExportRemoved, metav1.ConditionFalse, seen.fault.reason, seen.fault.Error())
	case seen.deleting:
	case seen.fault != nil:
		set(internalv1.ExportServing, metav1.ConditionFalse, seen.fault.reason, seen.fault.Error())
	case seen.serves:
		set(internalv1.ExportServing, metav1.ConditionTrue, v1alpha1.ReasonReady, "ganesha serves the export")
		status.ObservedGeneration, status.ExportIDs, status.RootIDs = &seen.generation, seen.ids, seen.rootIDs
	}
	return status
}

// describeFailing names some of the shares that something is wrong with.
func describeFailing(failing map[string]*fault) string {
	const most = 5
	names := slices.Sorted(maps.Keys(failing))
	told := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		told = append(told, fmt.Sprintf("share %s: %v", name, failing[name].err))
	}
	text := strings.Join(told, "; ")
	if more := len(names) - len(told); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// statusFrom is the status to report. What is unknown now keeps its earlier value.
func statusFrom(earlier internalv1.DataServerStatus, seen observation, now metav1.Time) internalv1.DataServerStatus {
	status := *earlier.DeepCopy()
	status.NodeName, status.PodIP = seen.nodeName, seen.podIP
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: seen.reason,
		Message: truncate(seen.message, maxMessage), ObservedGeneration: seen.generation, LastTransitionTime: now,
	}
	if seen.ready {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if seen.loaded {
		status.ObservedGeneration = &seen.generation
	}
	if seen.maxConnections > 0 {
		status.Connections = reportConnections(earlier.Connections, seen.connections, seen.maxConnections)
	}
	if seen.held != nil {
		status.Shares = seen.held
	}
	status.VolumeIDs = reportVolumeIDs(status.VolumeIDs, seen.volumeIDs)
	if seen.usage != nil {
		status.Volumes = reportUsage(earlier.Volumes, seen.usage)
	}
	return status
}

// withHealth is the status with what the storage says of itself.
func withHealth(status internalv1.DataServerStatus, health backend.Health, now metav1.Time) internalv1.DataServerStatus {
	condition := metav1.Condition{Type: internalv1.StorageHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "the storage is well", LastTransitionTime: now}
	said := slices.DeleteFunc([]string{health.Failing, health.Degraded}, func(words string) bool { return words == "" })
	if len(said) > 0 {
		condition.Reason, condition.Message = v1alpha1.ReasonStorageDegraded, truncate(strings.Join(said, "; "), maxMessage)
	}
	if health.Failing != "" {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonStorageFailing
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// reportVolumeIDs are the identities to report: those of volumes that were not looked at stay.
func reportVolumeIDs(earlier []internalv1.VolumeIdentity, seen map[int32]string) []internalv1.VolumeIdentity {
	if len(seen) == 0 {
		return earlier
	}
	known := map[int32]string{}
	for _, volume := range earlier {
		if volume.Index != nil {
			known[*volume.Index] = volume.ID
		}
	}
	maps.Copy(known, seen)
	reported := make([]internalv1.VolumeIdentity, 0, len(known))
	for _, index := range slices.Sorted(maps.Keys(known)) {
		reported = append(reported, internalv1.VolumeIdentity{Index: &index, ID: known[index]})
	}
	return reported
}

func reportUsage(earlier []internalv1.VolumeUsage, seen []backend.Usage) []internalv1.VolumeUsage {
	reported := map[int32]backend.Usage{}
	for _, volume := range earlier {
		if volume.Index != nil && volume.TotalBytes != nil && volume.UsedBytes != nil {
			reported[*volume.Index] = backend.Usage{Total: *volume.TotalBytes, Used: *volume.UsedBytes}
		}
	}
	volumes := make([]internalv1.VolumeUsage, 0, len(seen))
	for i, real := range seen {
		index := int32(i)
		rounded := coarse(real, reported[index])
		volumes = append(volumes, internalv1.VolumeUsage{
			Index: &index, TotalBytes: &rounded.Total, UsedBytes: &rounded.Used, SharedFileSystem: truncate(real.Shared, maxSharedFileSystem),
		})
	}
	return volumes
}

// truncate is a text as people are to read it: without what steers their terminals, and of at most so many bytes.
func truncate(text string, limit int) string {
	text = printable.Text(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}
