package rewound

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func object(uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), ResourceVersion: version}}
}

func TestAnEarlierStateIsNoticedBeforeItIsTaken(t *testing.T) {
	var events []string
	record := func(what string) func(any) {
		return func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			events = append(events, what+" "+o.(client.Object).GetName())
		}
	}
	w := Watch(toolscache.ResourceEventHandlerFuncs{
		AddFunc: record("add"), UpdateFunc: func(_, o any) { record("update")(o) }, DeleteFunc: record("delete"),
	}, func(o client.Object) { record("back")(o) })
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{func() { w.OnAdd(object("a", "5"), true) }, []string{"add a"}},
		{func() { w.OnUpdate(object("a", "5"), object("a", "9")) }, []string{"update a"}},
		{func() { w.OnUpdate(object("a", "9"), object("a", "9")) }, []string{"update a"}},
		{func() { w.OnUpdate(object("a", "9"), object("a", "7")) }, []string{"back a", "update a"}},
		{func() { w.OnUpdate(object("a", "9"), object("b", "12")) }, []string{"update b"}}, // Deleted and made again meanwhile.
		{func() { w.OnUpdate(object("b", "12"), object("a", "9")) }, []string{"back a", "update a"}},
		{func() { w.OnUpdate(object("a", "9"), object("a", "none")) }, []string{"update a"}},
		{func() { w.OnDelete(object("a", "9")) }, []string{"delete a"}},
		{func() { w.OnAdd(object("c", "3"), false) }, []string{"add c"}},
		{func() { w.OnAdd(object("a", "7"), false) }, []string{"back a", "add a"}},
		{func() { w.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "c", Obj: object("c", "3")}) }, []string{"delete c"}},
		{func() { w.OnAdd(object("c", "3"), false) }, []string{"back c", "add c"}},
		{func() { w.OnUpdate(object("c", "3"), object("c", "4")) }, []string{"update c"}},
	} {
		events = nil
		if step.do(); !slices.Equal(events, step.want) {
			t.Errorf("events %q, want %q", events, step.want)
		}
	}
}
