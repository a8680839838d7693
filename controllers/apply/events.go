package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/conditions"
)

// maxNote is how long the API takes the note of an event, in bytes; one that is longer is refused, and nobody hears of it.
const maxNote = 1024

// Brief is a recorder that cuts notes to what the API takes, and leaves nothing in them that steers a terminal.
func Brief(recorder events.EventRecorder) events.EventRecorder { return brief{recorder} }

type brief struct{ events.EventRecorder }

// Eventf makes an event.
func (b brief) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	b.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", conditions.Shown(fmt.Sprintf(note, args...), maxNote))
}

// Tell makes events of what is news in an object's conditions. It is to be called once the new ones are written.
func Tell(recorder events.EventRecorder, object client.Object, before, after []metav1.Condition) {
	for _, news := range conditions.NewsBetween(before, after) {
		recorder.Eventf(object, nil, news.Type, news.Reason, "Reconcile", "%s", news.Message)
	}
}
