package kubeapi

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

// Observation is what the exporter knows of its data server at the end of a pass.
type Observation struct {
	NodeName, PodIP, PodUID string
	// FirstPort is the first of the pod's ports on its node's network, 0 if it has a network of its own.
	FirstPort int32
	// NetworkAddresses are the addresses of the node at which the data server is to be reached, none if it is reached at the pod's.
	NetworkAddresses []string
	// Generation is the DataServer's generation.
	Generation int64
	// Loaded is true if ganesha serves everything that this generation asks for.
	Loaded bool
	// Ready, Reason and Message are the Ready condition.
	Ready           bool
	Reason, Message string
	// Shares is the number of shares that serve on every volume.
	Shares int
	// Failing is the number of shares with a fault.
	Failing int
	Usage   []backend.Usage
	// Held is the digest of the shares that have a directory on the volumes, nil if that is not known.
	Held *string
	// VolumeIDs are the identities of volumes, by number.
	VolumeIDs map[int32]string
	// Connections is the number of the clients' connections, MaxConnections its limit; 0 if it is not known.
	Connections, MaxConnections int32
	// RestartPending are fields whose values ganesha has only from its next start; they are known if Loaded is true.
	RestartPending []string
	// Up means that ganesha runs and takes clients, InGrace that they still reclaim their state.
	Up, InGrace bool
	// LastEnd is the last end of the data server, nil if there was none.
	LastEnd *v1alpha1.ServerEnd
}

// ExportObservation is what the exporter knows of an export at the end of a pass that checked all of them.
type ExportObservation struct {
	Generation int64
	Deleting   bool
	Data       internalv1.DataPolicy
	IDs        []int32
	// RootIDs are the identities of the share's directories, by volume.
	RootIDs []string
	// Serves is true if ganesha serves it on every volume as this generation asks for.
	Serves bool
	// Removed is true if the export is gone, and its data where that was asked for.
	Removed bool
	// Fault is the fault of this export, nil if it has none.
	Fault *Fault
}

// ExportStatusFrom is the status to report of an export. What is unknown now keeps its earlier value.
func ExportStatusFrom(earlier internalv1.ShareExportStatus, seen ExportObservation, now metav1.Time) internalv1.ShareExportStatus {
	status := *earlier.DeepCopy()
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: truncate(message, maxMessage),
			ObservedGeneration: seen.Generation, LastTransitionTime: now,
		})
	}
	switch {
	case seen.Deleting && seen.Removed:
		message := "ganesha has dropped the export; its data stays"
		if seen.Data == internalv1.DataDelete {
			message = "ganesha has dropped the export, and its data is removed"
		}
		set(internalv1.ExportServing, metav1.ConditionFalse, internalv1.ExportRemoved, message)
		set(internalv1.ExportRemoved, metav1.ConditionTrue, internalv1.ExportRemoved, message)
		status.ObservedGeneration = &seen.Generation
	case seen.Deleting && seen.Fault != nil:
		set(internalv1.ExportRemoved, metav1.ConditionFalse, seen.Fault.Reason, seen.Fault.Error())
	case seen.Deleting:
	case seen.Fault != nil:
		set(internalv1.ExportServing, metav1.ConditionFalse, seen.Fault.Reason, seen.Fault.Error())
	case seen.Serves:
		set(internalv1.ExportServing, metav1.ConditionTrue, v1alpha1.ReasonReady, "ganesha serves the export")
		status.ObservedGeneration, status.ExportIDs, status.RootIDs = &seen.Generation, seen.IDs, seen.RootIDs
	}
	return status
}

// DescribeFailing describes the faults of some of the failing shares.
func DescribeFailing(failing map[string]*Fault) string {
	const most = 5
	names := slices.Sorted(maps.Keys(failing))
	described := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		described = append(described, fmt.Sprintf("share %s: %v", name, failing[name].Err))
	}
	text := strings.Join(described, "; ")
	if more := len(names) - len(described); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// StatusFrom is the status to report. What is unknown now keeps its earlier value.
func StatusFrom(earlier internalv1.DataServerStatus, seen Observation, now metav1.Time) internalv1.DataServerStatus {
	status := *earlier.DeepCopy()
	status.NodeName, status.PodIP, status.PodUID, status.FirstPort = seen.NodeName, seen.PodIP, seen.PodUID, seen.FirstPort
	status.NetworkAddresses = seen.NetworkAddresses
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: seen.Reason,
		Message: truncate(seen.Message, maxMessage), ObservedGeneration: seen.Generation, LastTransitionTime: now,
	}
	if seen.Ready {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if seen.Up {
		meta.SetStatusCondition(&status.Conditions, graceCondition(seen, now))
	}
	if seen.Loaded {
		status.ObservedGeneration, status.RestartPending = &seen.Generation, seen.RestartPending
	}
	if seen.MaxConnections > 0 {
		status.Connections = reportConnections(earlier.Connections, seen.Connections, seen.MaxConnections)
	}
	if seen.Held != nil {
		status.Shares = seen.Held
	}
	if seen.LastEnd != nil {
		status.LastEnd = seen.LastEnd
	}
	status.VolumeIDs = ReportVolumeIDs(status.VolumeIDs, seen.VolumeIDs)
	if seen.Usage != nil {
		status.Volumes = reportUsage(earlier.Volumes, seen.Usage, now.Time)
	}
	return status
}

func graceCondition(seen Observation, now metav1.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: internalv1.GraceEnded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "clients may open files and take locks",
		ObservedGeneration: seen.Generation, LastTransitionTime: now,
	}
	if seen.InGrace {
		condition.Status, condition.Reason = metav1.ConditionFalse, internalv1.ReasonInGrace
		condition.Message = "clients reclaim the files and locks that they had before the start; others wait"
	}
	return condition
}

// WithHealth is the status with the health that the storage reports.
func WithHealth(status internalv1.DataServerStatus, health backend.Health, now metav1.Time) internalv1.DataServerStatus {
	condition := metav1.Condition{Type: internalv1.StorageHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "the storage is well", LastTransitionTime: now}
	faults := slices.DeleteFunc([]string{health.Failing, health.Degraded}, func(words string) bool { return words == "" })
	if len(faults) > 0 {
		condition.Reason, condition.Message = v1alpha1.ReasonStorageDegraded, truncate(strings.Join(faults, "; "), maxMessage)
	}
	if health.Failing != "" {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonStorageFailing
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// ReportVolumeIDs are the identities to report: those of volumes that were not looked at stay.
func ReportVolumeIDs(earlier []internalv1.VolumeIdentity, seen map[int32]string) []internalv1.VolumeIdentity {
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

// truncate makes a text printable: without control characters of terminals, and at most limit bytes long.
func truncate(text string, limit int) string {
	text = printable.Text(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}

// reportConnections is the report for used connections of at most limit, coarse so that it changes rarely.
func reportConnections(earlier internalv1.Connections, used, limit int32) internalv1.Connections {
	if earlier.Used != nil && earlier.Limit == limit {
		used = v1alpha1.CoarseConnections(*earlier.Used, used, limit)
	}
	return internalv1.Connections{Used: &used, Limit: limit}
}
