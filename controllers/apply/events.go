package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/conditions"
)

// Tell makes events of what is news in an object's conditions. It is to be called once the new ones are written.
func Tell(recorder events.EventRecorder, object client.Object, before, after []metav1.Condition) {
	for _, news := range conditions.NewsBetween(before, after) {
		recorder.Eventf(object, nil, news.Type, news.Reason, "Reconcile", "%s", news.Message)
	}
}
