package view

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/test/builders"
)

func TestTreeShowsOwners(t *testing.T) {
	w := brokenWorld()
	golden(t, "tree.txt", NewTree(w, &w.FileShares[0]).Text(text.Page{Width: 100}, false))
	golden(t, "tree-narrow-colours.txt", NewTree(w, &w.FileShares[0]).Text(text.Page{Width: 40, Colour: true}, false))
	golden(t, "tree-single.txt", NewTree(w, &w.FileShares[1]).Text(text.Page{}, false))
	viewer := viewersWorld(brokenWorld())
	golden(t, "tree-viewer.txt", NewTree(viewer, &viewer.FileShares[0]).Text(text.Page{Width: 100}, false))

	for i := range 10_000 {
		w.Directories = append(w.Directories, *builders.ShareDirectory("default", "training", "unet3d", fmt.Sprintf("valid/%d", i), naming.DataServer("training", int32(i%3))))
	}
	w.Directories[len(w.Directories)-1].Status.State = internalv1.DirectoryRemoving
	golden(t, "tree-ten-thousand.txt", NewTree(w, &w.FileShares[0]).Text(text.Page{}, false))
	if all := NewTree(w, &w.FileShares[0]).Text(text.Page{}, true); strings.Count(all, "\n") < 10_000 {
		t.Error("--directories lists all")
	}
}

func TestAQuotaIsShownWithItsUsage(t *testing.T) {
	w := wellWorld()
	share := &w.FileShares[1]
	share.Spec.Quota.Size = ptr.To(resource.MustParse("10Gi"))
	share.Status.Quota = v1alpha1.ShareQuotaStatus{Size: ptr.To(resource.MustParse("100Gi")), Used: ptr.To(resource.MustParse("37Gi"))}
	refused := is(v1alpha1.FileShareQuotaEnforced, metav1.ConditionFalse, v1alpha1.ReasonQuotaBelowUse,
		"spec.quota.size is 10Gi and the share's files take 37.2Gi: the quota stays 100Gi; remove files, or set spec.quota.size to 37.2Gi or more")
	share.Status.Conditions = []metav1.Condition{refused, is(v1alpha1.ConditionReady, metav1.ConditionFalse, refused.Reason, "QuotaEnforced: "+refused.Message)}
	w.FileShares[0].Status.Quota.Used = ptr.To(resource.MustParse("5Gi"))
	golden(t, "tree-quota.txt", NewTree(w, share).Text(text.Page{Width: 100}, false))
	golden(t, "status-quota.txt", NewStatus(w, false).Text(text.Page{}, false))
	golden(t, "explain-quota.txt", ExplainFileShare(w, share).Text(text.Page{Width: 100}))
}

func TestPlansAreMadeByTheCodeThatPlaces(t *testing.T) {
	w := wellWorld()
	share := &w.FileShares[0]
	plan, err := PlanMkdir(w, share, []string{"train/6", "/train/0", "valid", "train/7/deep", "train/6/x"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-mkdir.txt", plan.Text(text.Page{Width: 100}))
	plan, err = PlanMkdir(w, share, nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-mkdir-thousand.txt", plan.Text(text.Page{Width: 100}))

	// training-1 does not answer: nothing new goes there.
	broken := brokenWorld()
	if plan, err = PlanMkdir(broken, share, nil, 10); err != nil || plan.Servers[1].After != plan.Servers[1].Before || plan.Servers[1].Ready {
		t.Errorf("%v %+v", err, plan.Servers)
	}
	share.Spec.MaxDirectories = 8
	if plan, err = PlanMkdir(w, share, nil, 3); err != nil || !strings.Contains(plan.Refused, "room for 2 more") {
		t.Errorf("%v %q", err, plan.Refused)
	}
	if _, err = PlanMkdir(w, share, []string{"/"}, 0); err == nil {
		t.Error("the share's root is no directory to be made")
	}
	for i := range w.DataServers {
		w.DataServers[i].Status.Conditions = nil
	}
	if plan, err = PlanMkdir(w, share, nil, 1); err != nil || !strings.Contains(plan.Refused, "no data server can take a new directory") {
		t.Errorf("%v %q", err, plan.Refused)
	}

	w = wellWorld()
	golden(t, "plan-scale-out.txt", PlanScale(w, &w.FileServers[0], 5).Text(text.Page{Width: 100}))
	golden(t, "plan-scale-in-refused.txt", PlanScale(w, &w.FileServers[0], 1).Text(text.Page{Width: 100}))
	w.Directories = w.Directories[:1]
	golden(t, "plan-scale-in.txt", PlanScale(w, &w.FileServers[0], 1).Text(text.Page{Width: 100}))
}

func TestReportOfABenchmark(t *testing.T) {
	job := &v1alpha1.MLPerfStorageJob{Spec: v1alpha1.MLPerfStorageJobSpec{
		FileShareRef: v1alpha1.FileShareReference{Name: "unet3d"}, Workload: v1alpha1.WorkloadUnet3d, Clients: 2,
		Accelerator: v1alpha1.Accelerator{Type: v1alpha1.AcceleratorA100, Count: 2},
	}}
	job.Namespace, job.Name = "default", "unet3d"
	job.Status.Progress = "epoch 2/3, step 30/40"
	set(&job.Status.Conditions, is(v1alpha1.JobSucceeded, "Unknown", v1alpha1.ReasonRunning, "clients run the workload"))
	running := NewBench(job)
	golden(t, "bench-running.txt", running.Text(text.Page{}))
	if running.Ended() || running.Line() != "Running: epoch 2/3, step 30/40" {
		t.Errorf("%v %q", running.Ended(), running.Line())
	}
	begun, done := ago(90e9), ago(0)
	job.Status.StartTime, job.Status.CompletionTime = &begun, &done
	set(&job.Status.Conditions, is(v1alpha1.JobSucceeded, "True", v1alpha1.ReasonCompleted, "AU 98.30 %"))
	job.Status.Result = v1alpha1.BenchmarkResult{
		Verdict: v1alpha1.VerdictPassed, Label: "Result not verified by MLCommons Association", AUPercent: "98.30", SamplesPerSecond: "21.60",
		BytesPerSecond: ptr.To[int64](8_640_000), BytesRead: ptr.To[int64](201_600_000),
		PerClient: []v1alpha1.ClientResult{{Name: "unet3d-0", NodeName: "node1", AUPercent: "98.20", CPUIdlePercent: "63.20", BytesPerSecond: ptr.To[int64](4_320_000)}},
		PerServer: []v1alpha1.ServerResult{{Name: "training-0", BytesRead: ptr.To[int64](67_200_000), BytesPerSecond: ptr.To[int64](2_880_000)}},
		Rules:     []v1alpha1.RuleResult{{Name: "dataset-size", State: v1alpha1.RuleBroken, Message: "168 samples; 3500 for each accelerator are asked for"}},
	}
	golden(t, "bench-passed.txt", NewBench(job).Text(text.Page{Width: 80}))
	set(&job.Status.Conditions, is(v1alpha1.JobSucceeded, "False", v1alpha1.ReasonClientFailed, "unet3d-1: no space left on device"))
	job.Status.Result = v1alpha1.BenchmarkResult{}
	failed := NewBench(job)
	golden(t, "bench-failed.txt", failed.Text(text.Page{Width: 80}))
	if !failed.Ended() || failed.Verdict() != "" {
		t.Errorf("%+v", failed)
	}
}
