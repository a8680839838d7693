package gitops

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/test/builders"
)

func actions(t *testing.T) Actions {
	t.Helper()
	all, err := ReadActions(top + "/config/argocd/customizations")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatIsOffered(t *testing.T) {
	paused := map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
	asked := builders.FileServer("ns", "fs").Ceph().Build()
	asked.Annotations = map[string]string{v1alpha1.RebalanceAnnotation: "100"}
	copying := builders.FileServer("ns", "fs").Build()
	copying.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	askedToCopy := copying.DeepCopy()
	askedToCopy.Annotations = map[string]string{v1alpha1.MovesAnnotation: "[]"}
	pausedShare := builders.FileShare("ns", "s", "fs").Build()
	pausedShare.Annotations = paused
	job := func(execution v1alpha1.Execution, ended bool) *unstructured.Unstructured {
		job := &v1alpha1.MLPerfStorageJob{Spec: v1alpha1.MLPerfStorageJobSpec{FileShareRef: v1alpha1.FileShareReference{Name: "s"}, Execution: execution}}
		if ended {
			job.Status.CompletionTime = &metav1.Time{Time: noon}
		}
		return object(t, job, "MLPerfStorageJob", 1)
	}
	schedule := func(execution v1alpha1.Execution) *unstructured.Unstructured {
		return object(t, &v1alpha1.FileShareSnapshotSchedule{Spec: v1alpha1.FileShareSnapshotScheduleSpec{Schedule: "@daily", Execution: execution}}, "FileShareSnapshotSchedule", 1)
	}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   string // ! before what can't be chosen.
	}{
		"on volumes nothing moves":  {object(t, builders.FileServer("ns", "fs").Build(), "FileServer", 1), "!move !rebalance !resume pause"},
		"by a copy it does":         {object(t, copying, "FileServer", 1), "!resume move pause rebalance"},
		"and one after the other":   {object(t, askedToCopy, "FileServer", 1), "!move !rebalance !resume pause"},
		"in Ceph it does":           {object(t, builders.FileServer("ns", "fs").Ceph().Build(), "FileServer", 1), "!resume move pause rebalance"},
		"one thing after the other": {object(t, asked, "FileServer", 1), "!move !rebalance !resume pause"},
		"a share":                   {object(t, builders.FileShare("ns", "s", "fs").Build(), "FileShare", 1), "!resume pause"},
		"a share that is paused":    {object(t, pausedShare, "FileShare", 1), "!pause resume"},
		"a job that runs":           {job("", false), "!resume !run-again suspend"},
		"a job that is suspended":   {job(v1alpha1.ExecutionSuspended, false), "!run-again !suspend resume"},
		"a job that has ended":      {job(v1alpha1.ExecutionActive, true), "!resume !suspend run-again"},
		"a schedule":                {schedule(v1alpha1.ExecutionActive), "!resume snapshot-now suspend"},
		"a schedule that waits":     {schedule(v1alpha1.ExecutionSuspended), "!suspend resume snapshot-now"},
	} {
		offered, err := actions(t).Offered(tc.object)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for action, offer := range offered {
			if !offer.Enabled {
				action = "!" + action
			}
			got = append(got, action)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// Each offer has an action behind it, and the other way round.
func TestOffersAndActionsAreTheSame(t *testing.T) {
	for kind, its := range actions(t) {
		var got []string
		for _, definition := range its.Definitions {
			got = append(got, definition.Name)
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": strings.TrimPrefix(kind, "howdah.io/"),
			"metadata": map[string]any{}, "spec": map[string]any{"storage": map[string]any{"ceph": map[string]any{"external": map[string]any{}}}},
		}}
		offered, err := actions(t).Offered(o)
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(offered)), got); err != nil || diff != "" {
			t.Errorf("%s: %v (-offered +there):\n%s", kind, err, diff)
		}
	}
}

func TestActionsOfAFileServer(t *testing.T) {
	fs := builders.FileServer("ns", "fs").Ceph().Build()
	fs.Annotations = map[string]string{"mine": "stays"}
	for name, tc := range map[string]struct {
		action     string
		parameters map[string]string
		key, want  string
	}{
		"pause":     {"pause", nil, v1alpha1.PausedAnnotation, v1alpha1.PausedTrue},
		"rebalance": {"rebalance", nil, v1alpha1.RebalanceAnnotation, "100"},
		"move": {
			"move",
			map[string]string{"share": "unet3d", "path": "train/7", "to": "fs-2"},
			v1alpha1.MovesAnnotation,
			placement.FormatRequests([]placement.Request{{Share: "unet3d", Path: "train/7", To: "fs-2"}}),
		},
	} {
		got, err := actions(t).Do(object(t, fs, "FileServer", 1), tc.action, tc.parameters)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]string{"mine": "stays", tc.key: tc.want}
		if diff := cmp.Diff(want, got.Object.GetAnnotations()); got.Operation != "patch" || diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, got.Operation, diff)
		}
		spec, _, _ := unstructured.NestedMap(object(t, fs, "FileServer", 1).Object, "spec", "storage", "ceph", "external")
		after, _, _ := unstructured.NestedMap(got.Object.Object, "spec", "storage", "ceph", "external")
		if diff := cmp.Diff(spec["monitors"], after["monitors"]); diff != "" {
			t.Errorf("%s changes the spec:\n%s", name, diff)
		}
	}
	fs.Annotations[v1alpha1.PausedAnnotation] = v1alpha1.PausedTrue
	got, err := actions(t).Do(object(t, fs, "FileServer", 1), "resume", nil)
	if err != nil || !maps.Equal(got.Object.GetAnnotations(), map[string]string{"mine": "stays"}) {
		t.Errorf("resume: %v, %v", got.Object, err)
	}
	fs.Annotations[v1alpha1.MovesAnnotation] = "[]"
	for want, parameters := range map[string]map[string]string{
		"to is missing":    {"share": "s", "path": "d", "to": ""},
		"share is missing": {"path": "d", "to": "fs-1"},
		"not done yet":     {"share": "s", "path": "d", "to": "fs-1"},
	} {
		if _, err := actions(t).Do(object(t, fs, "FileServer", 1), "move", parameters); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("move with %v: %v, want %q in it", parameters, err, want)
		}
	}
}

// Who runs what can't be, by the CLI for example, gets to know why; the pages show it in the action's place.
func TestMovesOnVolumesAreRefusedUnlessTheyAreAllowed(t *testing.T) {
	moved := map[string]string{"share": "unet3d", "path": "train/7", "to": "fs-2"}
	fs := builders.FileServer("ns", "fs").Build()
	for action, parameters := range map[string]map[string]string{"move": moved, "rebalance": nil} {
		const needs = "spec.moves.copying: Allow"
		if got, err := actions(t).Do(object(t, fs, "FileServer", 1), action, parameters); err == nil || !strings.Contains(err.Error(), needs) {
			t.Errorf("%s: %v, %v, want %s in it", action, got.Object, err, needs)
		}
		offered, err := actions(t).Offered(object(t, fs, "FileServer", 1))
		if err != nil || !strings.Contains(offered[action].Label, needs) {
			t.Errorf("%s is shown as %q (%v), want %s in it", action, offered[action].Label, err, needs)
		}
	}
	fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	for action, want := range map[string]string{"move": v1alpha1.MovesAnnotation, "rebalance": v1alpha1.RebalanceAnnotation} {
		got, err := actions(t).Do(object(t, fs, "FileServer", 1), action, moved)
		if err != nil || got.Object.GetAnnotations()[want] == "" {
			t.Errorf("%s: %v, %v, want the annotation %s", action, got.Object, err, want)
		}
		offered, err := actions(t).Offered(object(t, fs, "FileServer", 1))
		if err != nil || strings.Contains(offered[action].Label, "needs") {
			t.Errorf("%s is shown as %q (%v)", action, offered[action].Label, err)
		}
	}
	root := map[string]string{"share": "home", "path": ".", "to": "fs-2"}
	if got, err := actions(t).Do(object(t, fs, "FileServer", 1), "move", root); err == nil || !strings.Contains(err.Error(), "layout Single can't move on volumes") {
		t.Errorf("the root of a share: %v, %v", got.Object, err)
	}
	if _, err := actions(t).Do(object(t, builders.FileServer("ns", "fs").Ceph().Build(), "FileServer", 1), "move", root); err != nil {
		t.Errorf("the root of a share in Ceph: %v", err)
	}
}

func TestActionsThatMakeAnotherObject(t *testing.T) {
	job := &v1alpha1.MLPerfStorageJob{
		ObjectMeta: metav1.ObjectMeta{Name: "gate", Namespace: "ns"},
		Spec: v1alpha1.MLPerfStorageJobSpec{
			FileShareRef: v1alpha1.FileShareReference{Name: "unet3d"}, Accelerator: v1alpha1.Accelerator{Type: v1alpha1.AcceleratorA100, Count: 2},
			Clients: 2, Mount: &v1alpha1.BenchmarkMount{Nconnect: 16}, Execution: v1alpha1.ExecutionActive,
		},
		Status: v1alpha1.MLPerfStorageJobStatus{CompletionTime: &metav1.Time{Time: noon}},
	}
	job.Annotations = map[string]string{"argocd.argoproj.io/hook": "PostSync"}
	from := object(t, job, "MLPerfStorageJob", 1)
	got, err := actions(t).Do(from, "run-again", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Operation != "create" || !regexp.MustCompile(`^gate-[0-9]{12}$`).MatchString(got.Object.GetName()) || got.Object.GetNamespace() != "ns" ||
		got.Object.GetAnnotations() != nil || got.Object.Object["status"] != nil || got.Object.GroupVersionKind() != from.GroupVersionKind() {
		t.Errorf("%s %v", got.Operation, got.Object)
	}
	if diff := cmp.Diff(from.Object["spec"], got.Object.Object["spec"]); diff != "" {
		t.Errorf("the spec (-want +got):\n%s", diff)
	}
	from.SetName(strings.Repeat("x", 38))
	if _, err := actions(t).Do(from, "run-again", nil); err == nil || !strings.Contains(err.Error(), "more than 37 characters") {
		t.Errorf("%v", err)
	}

	schedule := &v1alpha1.FileShareSnapshotSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ns"},
		Spec:       v1alpha1.FileShareSnapshotScheduleSpec{FileShareRef: v1alpha1.FileShareReference{Name: "home"}},
	}
	from = object(t, schedule, "FileShareSnapshotSchedule", 1)
	got, err = actions(t).Do(from, "snapshot-now", nil)
	share, _, _ := unstructured.NestedString(got.Object.Object, "spec", "fileShareRef", "name")
	if err != nil || got.Object.GetKind() != "FileShareSnapshot" || share != "home" || !strings.HasPrefix(got.Object.GetName(), "nightly-") || got.Object.GetLabels() != nil {
		t.Errorf("%v, %v", got.Object, err)
	}
	for action, want := range map[string]string{"suspend": "Suspended", "resume": "Active"} {
		for _, object := range []*unstructured.Unstructured{from, object(t, job, "MLPerfStorageJob", 1)} {
			got, err := actions(t).Do(object, action, nil)
			execution, _, _ := unstructured.NestedString(got.Object.Object, "spec", "execution")
			if err != nil || execution != want {
				t.Errorf("%s: %v, %v", action, got.Object, err)
			}
		}
	}
}
