package gitops

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

const top = "../.."

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func scripts(t *testing.T) Scripts {
	t.Helper()
	all, err := ReadScripts(top + "/config/argocd/customizations")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// reasons are all reasons of the API, by its source: a new one is in the tests without anybody's doing.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), top+"/api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	if len(all) < 40 {
		t.Fatalf("%d reasons: %v", len(all), all)
	}
	return all
}

func object(t *testing.T, from runtime.Object, kind string, generation int64) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{Object: content}
	version := v1alpha1.GroupVersion
	if _, isInternal := map[string]bool{"DataServer": true, "ShareExport": true, "ShareDirectory": true, "ShareSnapshot": true}[kind]; isInternal {
		version = internalv1.GroupVersion
	}
	out.SetGroupVersionKind(version.WithKind(kind))
	out.SetGeneration(generation)
	return out
}

// judged holds what both tools say of an object to what is wanted.
func judged(t *testing.T, what string, object *unstructured.Unstructured, health string, flux status.Status) {
	t.Helper()
	got, err := scripts(t).Judge(object)
	if err != nil || got.Status != health {
		t.Errorf("%s: Argo CD says %v (%v), want %s", what, got, err, health)
	}
	result, err := status.Compute(object)
	if err != nil || result.Status != flux {
		t.Errorf("%s: kstatus says %v (%v), want %s", what, result, err, flux)
	}
}

// ofKind makes an object of a kind with a status.
func ofKind(t *testing.T, kind string, list []metav1.Condition, generation int64, observed *int64) *unstructured.Unstructured {
	t.Helper()
	switch kind {
	case "FileServer":
		return object(t, &v1alpha1.FileServer{Status: v1alpha1.FileServerStatus{Conditions: list, ObservedGeneration: observed}}, kind, generation)
	case "FileShare":
		return object(t, &v1alpha1.FileShare{Status: v1alpha1.FileShareStatus{Conditions: list, ObservedGeneration: observed}}, kind, generation)
	case "FileShareSnapshot":
		return object(t, &v1alpha1.FileShareSnapshot{Status: v1alpha1.FileShareSnapshotStatus{Conditions: list, ObservedGeneration: observed}}, kind, generation)
	case "FileShareSnapshotSchedule":
		return object(t, &v1alpha1.FileShareSnapshotSchedule{Status: v1alpha1.FileShareSnapshotScheduleStatus{Conditions: list, ObservedGeneration: observed}}, kind, generation)
	case "MLPerfStorageJob":
		return object(t, &v1alpha1.MLPerfStorageJob{Status: v1alpha1.MLPerfStorageJobStatus{Conditions: list, ObservedGeneration: observed}}, kind, generation)
	}
	t.Fatalf("kind %s", kind)
	return nil
}

var kinds = map[string]string{
	"FileServer": v1alpha1.ConditionReady, "FileShare": v1alpha1.ConditionReady, "FileShareSnapshot": v1alpha1.ConditionReady,
	"FileShareSnapshotSchedule": v1alpha1.ConditionReady, "MLPerfStorageJob": v1alpha1.JobSucceeded,
}

// Every reason, as the operator writes it, on every kind, after every earlier state: True is done, a reason that needs an action of a user
// is Degraded, everything else is Progressing.
func TestEveryReason(t *testing.T) {
	one := int64(1)
	for kind, summary := range kinds {
		for _, reason := range reasons(t) {
			for _, before := range []string{"", v1alpha1.ReasonReady, v1alpha1.ReasonPending, v1alpha1.ReasonNameTaken} {
				for _, holds := range []bool{true, false} {
					var list []metav1.Condition
					if before != "" {
						conditions.SetSummary(&list, 1, noon, metav1.Condition{Type: summary, Status: conditionStatus(before == v1alpha1.ReasonReady), Reason: before})
					}
					conditions.SetSummary(&list, 1, noon, metav1.Condition{Type: summary, Status: conditionStatus(holds), Reason: reason, Message: "because"})
					health, flux := Progressing, status.InProgressStatus
					switch {
					case holds:
						health, flux = Healthy, status.CurrentStatus
					case v1alpha1.NeedsUser(reason):
						health, flux = Degraded, status.FailedStatus
					case reason == v1alpha1.ReasonSuspended && kind == "MLPerfStorageJob":
						health, flux = Suspended, status.CurrentStatus
					case reason == v1alpha1.ReasonSuspended:
						continue // of jobs alone
					}
					what := fmt.Sprintf("%s %s=%v %s after %q", kind, summary, holds, reason, before)
					judged(t, what, ofKind(t, kind, list, 1, &one), health, flux)
					// It was so, and the object was changed since.
					judged(t, what+", changed", ofKind(t, kind, list, 2, &one), Progressing, status.InProgressStatus)
				}
			}
		}
	}
}

func conditionStatus(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func TestTheHealthMessageIsTheConditionsMessage(t *testing.T) {
	one := int64(1)
	for reason, want := range map[string]Health{
		v1alpha1.ReasonNameTaken:       {Degraded, "NameTaken: Service x belongs to another owner"},
		v1alpha1.ReasonServersNotReady: {Progressing, "ServersNotReady: Service x belongs to another owner"},
	} {
		var list []metav1.Condition
		conditions.SetSummary(&list, 1, noon, conditions.False(v1alpha1.ConditionReady, reason, "Service x belongs to another owner"))
		if got, err := scripts(t).Judge(ofKind(t, "FileServer", list, 1, &one)); err != nil || got != want {
			t.Errorf("%v (%v), want %v", got, err, want)
		}
	}
}

// As the API server returns an object that no controller has seen: with the default of its status. kstatus takes one
// without any status for Current, and who waits for it would not wait.
func TestAnObjectWithoutAStatusIsProgressing(t *testing.T) {
	none := int64(0)
	for kind := range kinds {
		judged(t, "a new "+kind, ofKind(t, kind, nil, 1, &none), Progressing, status.InProgressStatus)
		if got, err := scripts(t).Judge(ofKind(t, kind, nil, 1, nil)); err != nil || got.Status != Progressing {
			t.Errorf("a %s without any status: %v, %v", kind, got, err)
		}
	}
}

func TestWhatIsPausedIsSuspended(t *testing.T) {
	one := int64(1)
	server := &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}}}
	for reason, flux := range map[string]status.Status{v1alpha1.ReasonReady: status.CurrentStatus, v1alpha1.ReasonNameTaken: status.FailedStatus} {
		list := []metav1.Condition{}
		conditions.SetSummary(&list, 1, noon, metav1.Condition{Type: v1alpha1.ConditionReady, Status: conditionStatus(reason == v1alpha1.ReasonReady), Reason: reason})
		conditions.SetPaused(&list, server, noon)
		judged(t, "paused, "+reason, ofKind(t, "FileServer", list, 1, &one), Suspended, flux)
	}
}

func TestWhatIsBeingDeleted(t *testing.T) {
	one := int64(1)
	for kind, summary := range kinds {
		list := []metav1.Condition{}
		conditions.SetSummary(&list, 1, noon, conditions.False(summary, v1alpha1.ReasonDeleting, "it waits"))
		object := ofKind(t, kind, list, 1, &one)
		now := metav1.NewTime(noon)
		object.SetDeletionTimestamp(&now)
		judged(t, kind, object, Progressing, status.TerminatingStatus)
	}
}

// Kinds that Argo CD shows below those of users.
func TestInternalKinds(t *testing.T) {
	one := int64(1)
	condition := func(name string, holds bool) []metav1.Condition {
		return []metav1.Condition{{Type: name, Status: conditionStatus(holds), Reason: "Because", Message: "of that"}}
	}
	since := metav1.NewTime(noon)
	for what, tc := range map[string]struct {
		object runtime.Object
		kind   string
		want   string
	}{
		"a data server that serves":       {&internalv1.DataServer{Status: internalv1.DataServerStatus{Conditions: condition("Ready", true), ObservedGeneration: &one}}, "DataServer", Healthy},
		"one that does not serve yet":     {&internalv1.DataServer{Status: internalv1.DataServerStatus{Conditions: condition("Ready", false)}}, "DataServer", Progressing},
		"one without a report":            {&internalv1.DataServer{}, "DataServer", Progressing},
		"one that does not answer":        {&internalv1.DataServer{Status: internalv1.DataServerStatus{Conditions: condition("Ready", true), ObservedGeneration: &one, Unreachable: internalv1.Unreachable{SinceTime: &since, SeenBy: "x"}}}, "DataServer", Degraded},
		"an export that is served":        {&internalv1.ShareExport{Status: internalv1.ShareExportStatus{Conditions: condition(internalv1.ExportServing, true), ObservedGeneration: &one}}, "ShareExport", Healthy},
		"an export that is not served":    {&internalv1.ShareExport{Status: internalv1.ShareExportStatus{Conditions: condition(internalv1.ExportServing, false)}}, "ShareExport", Progressing},
		"a snapshot":                      {&internalv1.ShareSnapshot{Status: internalv1.ShareSnapshotStatus{Conditions: condition("Ready", true)}}, "ShareSnapshot", Healthy},
		"one that is yet to be made":      {&internalv1.ShareSnapshot{}, "ShareSnapshot", Progressing},
		"a directory":                     {directory("fs-0", "", internalv1.DirectoryReady), "ShareDirectory", Healthy},
		"a directory on its way":          {directory("fs-0", "", ""), "ShareDirectory", Progressing},
		"one of the namespace alone":      {directory("", "", ""), "ShareDirectory", Healthy},
		"one that gets another name":      {directory("", "a", ""), "ShareDirectory", Progressing},
		"one that is being removed":       {directory("fs-0", "", internalv1.DirectoryRemoving), "ShareDirectory", Progressing},
		"one that was renamed, and is it": {directory("fs-0", "a", internalv1.DirectoryReady), "ShareDirectory", Healthy},
	} {
		if got, err := scripts(t).Judge(object(t, tc.object, tc.kind, 1)); err != nil || got.Status != tc.want || got.Message == "" && tc.kind != "ShareDirectory" {
			t.Errorf("%s: %v, %v; want %s", what, got, err, tc.want)
		}
	}
}

func directory(server, from string, state internalv1.DirectoryState) *internalv1.ShareDirectory {
	out := &internalv1.ShareDirectory{}
	out.Spec.Path, out.Spec.DataServerRef.Name, out.Spec.RenamedFrom, out.Status.State = "train/0", server, from, state
	return out
}

// A kind of the API without a check is shown without health.
func TestEveryKindHasACheck(t *testing.T) {
	var checked []string
	for kind := range scripts(t) {
		checked = append(checked, kind)
	}
	slices.Sort(checked)
	// ShareAttachments have no status: that they are there is all.
	want := []string{
		"howdah.io/FileServer", "howdah.io/FileShare", "howdah.io/FileShareSnapshot", "howdah.io/FileShareSnapshotSchedule", "howdah.io/MLPerfStorageJob",
		"internal.howdah.io/DataServer", "internal.howdah.io/ShareDirectory", "internal.howdah.io/ShareExport", "internal.howdah.io/ShareSnapshot",
	}
	if !slices.Equal(checked, want) {
		t.Errorf("%v, want %v", checked, want)
	}
}

func TestEntries(t *testing.T) {
	for _, what := range []string{"health", "actions"} {
		if got, err := parseEntry("resource.customizations." + what + ".a.b_C=d"); got != (entry{what, "a.b/C", "d"}) || err != nil {
			t.Errorf("%v %v", got, err)
		}
	}
	for _, bad := range []string{"resource.customizations.health.a.b_C", "resource.customizations.health.C=d.lua", "other.a_C=d.lua", "resource.customizations.icons.a_C=d"} {
		if _, err := parseEntry(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestABadCheckIsAnError(t *testing.T) {
	for what, script := range map[string]string{
		"no table":            "return 1",
		"no such health":      `return {status = "Fine"}`,
		"a mistake":           "return obj.status.x.y",
		"a library it hasn't": `return {status = string.upper("healthy")}`,
		"no end":              "while true do end",
	} {
		s := Scripts{"howdah.io/FileServer": script}
		if health, err := s.Judge(ofKind(t, "FileServer", nil, 1, nil)); err == nil {
			t.Errorf("%s: %v", what, health)
		}
	}
	if _, err := (Scripts{}).Judge(ofKind(t, "FileServer", nil, 1, nil)); err == nil {
		t.Error("a kind without a check has a health")
	}
}
