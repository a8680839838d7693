package instance

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// maxMessage is the largest message of a condition, in bytes (metav1.Condition).
const maxMessage = 32768

// observation is what the instance manager knows of its data server at the end of a pass.
type observation struct {
	nodeName, podIP string
	// generation is the record's generation.
	generation int64
	// loaded is true if ganesha serves everything that this generation asks for.
	loaded bool
	// ready, reason and message are the Ready condition.
	ready           bool
	reason, message string
	// exports are those that serve on every volume.
	exports []internalv1.ServedExport
	removed []string
	usage   []volumeUsage
	// connections are those of clients, and maxConnections how many there may be; 0: not known.
	connections, maxConnections int32
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
	status.Exports = slices.Clone(seen.exports)
	slices.SortFunc(status.Exports, func(a, b internalv1.ServedExport) int { return strings.Compare(a.ShareName, b.ShareName) })
	status.Removed = slices.Sorted(slices.Values(seen.removed))
	if seen.maxConnections > 0 {
		status.Connections = reportConnections(earlier.Connections, seen.connections, seen.maxConnections)
	}
	if seen.usage != nil {
		status.Volumes = reportUsage(earlier.Volumes, seen.usage)
	}
	return status
}

func reportUsage(earlier []internalv1.VolumeUsage, seen []volumeUsage) []internalv1.VolumeUsage {
	reported := map[int32]volumeUsage{}
	for _, volume := range earlier {
		if volume.Index != nil && volume.TotalBytes != nil && volume.UsedBytes != nil {
			reported[*volume.Index] = volumeUsage{total: *volume.TotalBytes, used: *volume.UsedBytes}
		}
	}
	volumes := make([]internalv1.VolumeUsage, 0, len(seen))
	for i, real := range seen {
		index := int32(i)
		rounded := coarse(real, reported[index])
		volumes = append(volumes, internalv1.VolumeUsage{Index: &index, TotalBytes: &rounded.total, UsedBytes: &rounded.used})
	}
	return volumes
}

func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}
