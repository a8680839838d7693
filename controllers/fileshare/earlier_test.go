package fileshare

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

func TestWhatAnEarlierNamespaceLeftIsItsOwn(t *testing.T) {
	left := func(uid string) func(*observed) {
		return func(o *observed) {
			directory := builders.ShareDirectory("storage", "fs", "team.s", "d", "fs-0")
			directory.Labels = map[string]string{v1alpha1.RetainedLabel: v1alpha1.RetainedTrue}
			bind(directory, uid)
			o.directories = map[string]*internalv1.ShareDirectory{"d": directory}
		}
	}
	dataHandovers := func(namespace, uid string) func(*observed) {
		return func(o *observed) {
			left("earlier")(o)
			o.fileServer.Spec.DataHandovers = []v1alpha1.DataHandover{{Namespace: namespace, NamespaceUID: uid}}
		}
	}
	for name, tc := range map[string]struct {
		change  func(*observed)
		refused bool
	}{
		"nothing was left":                  {func(*observed) {}, false},
		"it left it itself":                 {left("this"), false},
		"it is older than the rule":         {left(""), false},
		"an earlier namespace did":          {left("earlier"), true},
		"which was handed over":             {dataHandovers("team", "this"), false},
		"handed over to a third":            {dataHandovers("team", "third"), true},
		"another name was handed over":      {dataHandovers("others", "this"), true},
		"it is in use, so it was looked at": {func(o *observed) { left("earlier")(o); o.directories["d"].Labels = nil }, false},
		"the FileServer is of its namespace": {func(o *observed) {
			left("earlier")(o)
			o.share.Spec.FileServerRef.Namespace, o.namespaceUID = "", ""
		}, false},
	} {
		o := &observed{
			share: builders.FileShare("team", "s", "fs").OnNamespace("storage").Build(), fileServer: builders.FileServer("storage", "fs").Build(), namespaceUID: "this",
		}
		tc.change(o)
		found := findEarlierNamespace(o)
		if (found != nil) != tc.refused {
			t.Errorf("%s: %+v", name, found)
		}
		plan := planAttachment(o, inventory{generation: 1})
		if (plan.create == nil) != tc.refused && o.share.Spec.FileServerRef.Namespace != "" {
			t.Errorf("%s: attached: %v", name, plan.create != nil)
		}
		if found == nil {
			continue
		}
		if found.reason != v1alpha1.ReasonDataOfDeletedNamespace || !strings.Contains(found.message, "spec.dataHandovers: [{namespace: team, namespaceUID: this}]") {
			t.Errorf("%s: %+v", name, found)
		}
		o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileSharePlaced, Status: metav1.ConditionFalse, Reason: found.reason}}
		if removesData(o) {
			t.Errorf("%s: its deletion takes the data of the earlier one with it", name)
		}
	}
}

func TestWhatIsLeftSaysWhichNamespaceItIsOf(t *testing.T) {
	directory := builders.ShareDirectory("storage", "fs", "team.s", "d", "fs-0")
	change, needed := retained(directory, "this")
	if !needed || change.after.Annotations[v1alpha1.NamespaceUIDAnnotation] != "this" || len(directory.Annotations[v1alpha1.NamespaceUIDAnnotation]) > 0 {
		t.Errorf("%+v", change.after)
	}
	if change, _ := retained(directory, ""); len(change.after.Annotations[v1alpha1.NamespaceUIDAnnotation]) > 0 {
		t.Errorf("beside its FileServer: %+v", change.after)
	}
	if _, again := retained(change.after, "other"); again {
		t.Error("what was left before is left as it was")
	}
}
