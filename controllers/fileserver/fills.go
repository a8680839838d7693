package fileserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// Reasons of events about volumes that fill up, and that have room again.
const (
	eventVolumeFillingUp = "VolumeFillingUp"
	eventVolumeFull      = "VolumeFull"
	eventVolumeHasRoom   = "VolumeHasRoom"
)

// fillEvent is an event about the volumes of a data server.
type fillEvent struct{ kind, reason, message string }

// fillEvents are the events for what changed between two statuses: one for each data server whose fullest volume got fuller, and one when the
// last has room again. The condition's own event says the same when its reason changes, so there is none then.
func (o *observed) fillEvents(before, after *v1alpha1.FileServerStatus) (all []fillEvent) {
	const condition = v1alpha1.FileServerStorageAvailable
	if conditions.Reason(before.Conditions, condition) != conditions.Reason(after.Conditions, condition) && reportsFill(after) {
		return nil
	}
	levels := map[string]v1alpha1.VolumeFill{}
	for _, server := range before.Servers {
		levels[server.Name] = server.Fill
	}
	for _, server := range after.Servers {
		was := levels[server.Name]
		switch {
		case server.Fill.Rank() > was.Rank():
			reason := eventVolumeFillingUp
			if server.Fill == v1alpha1.FillFull {
				reason = eventVolumeFull
			}
			all = append(all, fillEvent{corev1.EventTypeWarning, reason, o.describeFills(server.Name, server.Fill)})
		case server.Fill == "" && was != "":
			all = append(all, fillEvent{corev1.EventTypeNormal, eventVolumeHasRoom, fmt.Sprintf("the volumes of %s have room again", server.Name)})
		}
	}
	return all
}

// reportsFill tells whether the condition is about volumes that fill up.
func reportsFill(status *v1alpha1.FileServerStatus) bool {
	switch conditions.Reason(status.Conditions, v1alpha1.FileServerStorageAvailable) {
	case v1alpha1.ReasonVolumesNearlyFull, v1alpha1.ReasonVolumesFull:
		return true
	}
	return false
}

// describeFills names the volumes of a data server that have a level, and what to do.
func (o *observed) describeFills(name string, level v1alpha1.VolumeFill) string {
	server := o.dataServers[name]
	ordinal, _ := naming.DataServerOrdinal(o.fileServer.Name, name)
	var volumes []string
	for i := range server.Status.Volumes {
		if volume := &server.Status.Volumes[i]; volume.Fill == level {
			claim := naming.VolumeClaim(o.fileServer.Name, ordinal, ptr.Deref(volume.Index, 0))
			volumes = append(volumes, fmt.Sprintf("claim %s is %s", claim, fleet.DescribeFill(volume)))
		}
	}
	return fmt.Sprintf("%s: %s; %s", name, conditions.List(volumes, maxPaths), o.storage.Remedy())
}

func (o *observed) tellFills(recorder events.EventRecorder, object *v1alpha1.FileServer, before *v1alpha1.FileServerStatus) {
	for _, event := range o.fillEvents(before, &object.Status) {
		recorder.Eventf(object, nil, event.kind, event.reason, "Reconcile", "%s", event.message)
	}
}
