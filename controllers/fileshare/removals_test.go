package fileshare

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/test/builders"
)

// Only what was Removing to its end was removed by a client.
func TestWhatClientsHaveRemovedIsNotLost(t *testing.T) {
	share := builders.FileShare("ns", "s", "fs").Created(decideTime).Directories("{a,b}").Build()
	directory := func(state internalv1.DirectoryState, uid types.UID) *internalv1.ShareDirectory {
		d := desired.ShareDirectory(share, "b", &placement.Owner{Server: "fs-1"})
		d.Status.State, d.UID = state, uid
		return d
	}
	removing, ready := directory(internalv1.DirectoryRemoving, "1"), directory(internalv1.DirectoryReady, "1")
	undeclared := directory(internalv1.DirectoryRemoving, "1")
	delete(undeclared.Annotations, v1alpha1.DeclaredAnnotation)
	create := func(d *internalv1.ShareDirectory) any { return event.CreateEvent{Object: d} }
	update := func(d *internalv1.ShareDirectory) any { return event.UpdateEvent{ObjectOld: d, ObjectNew: d} }
	remove := func(d *internalv1.ShareDirectory) any { return event.DeleteEvent{Object: d} }
	for name, tc := range map[string]struct {
		events        []any
		removed, over bool
	}{
		"nothing is known":                     {},
		"it is lost":                           {events: []any{create(ready), remove(ready)}},
		"it is removed":                        {events: []any{create(ready), update(removing), remove(removing)}, removed: true, over: true},
		"its end is not known yet":             {events: []any{create(ready), update(removing)}, removed: true},
		"the removal was refused":              {events: []any{update(removing), update(ready)}},
		"it is lost after that":                {events: []any{update(removing), update(ready), remove(ready)}},
		"the watch was interrupted at its end": {events: []any{update(removing), event.DeleteEvent{Object: removing, DeleteStateUnknown: true}}},
		"it is made again":                     {events: []any{update(removing), remove(removing), create(directory(internalv1.DirectoryCreating, "2"))}},
		"and lost":                             {events: []any{update(removing), remove(removing), create(directory(internalv1.DirectoryReady, "2")), remove(directory(internalv1.DirectoryReady, "2"))}},
		"it was not declared":                  {events: []any{update(undeclared), remove(undeclared)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			events := r.directoryEvents()
			for _, e := range tc.events {
				switch e := e.(type) {
				case event.CreateEvent:
					events.Create(t.Context(), e, queue)
				case event.UpdateEvent:
					events.Update(t.Context(), e, queue)
				case event.DeleteEvent:
					events.Delete(t.Context(), e, queue)
				}
			}
			over, removed := r.removals.among(passOf(share))["b"]
			if removed != tc.removed || over != tc.over {
				t.Errorf("removed %v, over %v", removed, over)
			}
		})
	}
}
