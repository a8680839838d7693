package rewound

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxDeleted bounds how many deleted objects a watch remembers. It forgets the oldest.
const maxDeleted = 1 << 14

// Watch calls back before an event that shows an earlier state of an object than an event before: an older version of it, or that it is there
// although it was deleted. One that was there before another of its name is an earlier state, too: a watch that begins again has both in one event.
// Events of one registration come one after the other, so the handler is for one of them.
func Watch(inner toolscache.ResourceEventHandlerFuncs, back func(client.Object)) toolscache.ResourceEventHandlerFuncs {
	deleted := lru.New(maxDeleted)
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if o, ok := object.(client.Object); ok {
				if _, was := deleted.Get(o.GetUID()); was {
					deleted.Remove(o.GetUID())
					back(o)
				}
			}
			inner.OnAdd(object, false)
		},
		UpdateFunc: func(old, object any) {
			before, known := old.(client.Object)
			after, ok := object.(client.Object)
			if known && ok && isBefore(after, before) {
				back(after)
			}
			if known && ok && after.GetUID() != before.GetUID() {
				deleted.Add(before.GetUID(), true)
				deleted.Remove(after.GetUID())
			}
			inner.OnUpdate(old, object)
		},
		DeleteFunc: func(object any) {
			last := object
			if unseen, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				last = unseen.Obj
			}
			if o, ok := last.(client.Object); ok {
				deleted.Add(o.GetUID(), true)
			}
			inner.OnDelete(object)
		},
	}
}

// IsEarlier tells whether an object is an earlier state of another one.
func IsEarlier(object, than client.Object) bool {
	return object.GetUID() == than.GetUID() && isBefore(object, than)
}

// isBefore compares versions. Another object of the same name that was made later has a later version.
func isBefore(object, than client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), than.GetResourceVersion())
	return err == nil && order < 0
}
