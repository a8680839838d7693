package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/conditions"
)

// maxNote is the maximum size of an event's note in bytes. The API refuses longer notes, and the event is lost.
const maxNote = 1024

// Brief wraps a recorder. It cuts notes to maxNote, and escapes characters that control terminals.
func Brief(recorder events.EventRecorder) events.EventRecorder { return brief{recorder} }

type brief struct{ events.EventRecorder }

// Eventf makes an event.
func (b brief) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	b.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", conditions.Shown(fmt.Sprintf(note, args...), maxNote))
}

// Tell records events for changes of an object's conditions. Call it after the new conditions are written.
func Tell(recorder events.EventRecorder, object client.Object, before, after []metav1.Condition) {
	for _, news := range conditions.NewsBetween(before, after) {
		recorder.Eventf(object, nil, news.Type, news.Reason, "Reconcile", "%s", news.Message)
	}
}
