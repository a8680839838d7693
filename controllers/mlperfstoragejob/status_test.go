package mlperfstoragejob

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/benchmark"
)

var (
	began = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now   = began.Add(time.Minute)
)

// begun is what a pass knows of a job of 2 clients that began a minute ago on a share that is ready.
func begun(changes ...func(*observed)) *observed {
	start := metav1.NewTime(began)
	job := &v1alpha1.MLPerfStorageJob{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "n", Generation: 1}}
	job.Spec.Clients, job.Spec.FileShareRef.Name = 2, "s"
	job.Status.StartTime = &start
	share := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n"}}
	share.Status.Mount.Address = "10.0.0.1"
	conditions.Set(&share.Status.Conditions, 1, began, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, ""))
	o := &observed{job: job, now: now, certain: now, share: share}
	for _, c := range changes {
		c(o)
	}
	return o
}

func jobWith(uid string, ending ...batchv1.JobConditionType) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j-" + uid, UID: "1"}}
	for _, c := range ending {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Message: "backoff limit"})
	}
	return job
}

func planned(o *observed)    { o.hasPlan = true }
func generating(o *observed) { planned(o); o.generate = jobWith("generate") }
func generated(o *observed)  { planned(o); o.generate = jobWith("generate", batchv1.JobComplete) }
func running(o *observed)    { generated(o); o.run = jobWith("run") }
func ran(o *observed)        { generated(o); o.run = jobWith("run", batchv1.JobComplete) }
func lost(o *observed) {
	ran(o)
	o.run.Status.CompletionTime = &metav1.Time{Time: now.Add(-5 * time.Minute)}
}
func refused(o *observed) { o.refusal = "exceeded quota: few" }
func suspend(o *observed) { o.job.Spec.Execution = v1alpha1.ExecutionSuspended }
func noShare(o *observed) { o.share = nil }
func limited(o *observed) { o.job.Spec.ActiveDeadlineSeconds = 60 }

// withPods gives the Job its two pods.
func withPods(o *observed) {
	for _, index := range []string{"0", "1"} {
		o.pods = append(o.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "p-" + index, Labels: map[string]string{batchv1.JobCompletionIndexAnnotation: index},
			OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: ptr.To(true)}},
		}})
	}
}

func writes(key, value string) func(*observed) {
	return func(o *observed) {
		if o.journal == nil {
			o.journal = map[string]string{}
		}
		o.journal[key] = value
	}
}

func result(verdict v1alpha1.Verdict) func(*observed) {
	text, err := json.Marshal(v1alpha1.BenchmarkResult{Verdict: verdict, AUPercent: "70.00", Accelerators: 2, Message: "m", Label: "l"})
	if err != nil {
		panic(err)
	}
	return writes(benchmark.KeyResult, string(text))
}

// ended is a job that a former pass has seen end.
func ended(status metav1.ConditionStatus, reason, message string) func(*observed) {
	return func(o *observed) {
		at := metav1.NewTime(began.Add(time.Second))
		o.job.Status.CompletionTime = &at
		conditions.Set(&o.job.Status.Conditions, 1, at.Time, metav1.Condition{Type: v1alpha1.JobSucceeded, Status: status, Reason: reason, Message: message})
	}
}

func TestReport(t *testing.T) {
	const isTrue, isFalse, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	tests := map[string]struct {
		observed *observed
		stepErr  error
		status   metav1.ConditionStatus
		reason   string
		message  string
		dataset  metav1.ConditionStatus
		ends     bool
	}{
		"there is no share": {begun(noShare), nil, unknown, "FileShareNotFound", `spec.fileShareRef: there is no FileShare "s" in namespace "n"; create it, or delete this job and make one that names another`, unknown, false},
		"the share says nothing yet": {
			begun(func(o *observed) { o.share.Status = v1alpha1.FileShareStatus{} }), nil,
			unknown, "WaitingForShare", "FileShare s is not ready: it has no status yet", unknown, false,
		},
		"it is prepared": {begun(), nil, unknown, "Preparing", "what the client pods need is being made", unknown, false},
		"Kubernetes does not know the volume": {
			begun(), &notYet{"Kubernetes to call PersistentVolume v Available"},
			unknown, "Preparing", "waiting for Kubernetes to call PersistentVolume v Available", unknown, false,
		},
		"it can't run on this share":     {begun(), &invalidSpec{errors.New("why")}, isFalse, "InvalidSpec", "why", unknown, true},
		"the API server does not answer": {begun(), errors.New("why"), unknown, "Progressing", "why", unknown, false},
		"the API server refuses":         {begun(), apierrors.NewBadRequest("why"), unknown, "ApplyFailed", "why", unknown, false},
		"pods write":                     {begun(generating), nil, unknown, "GeneratingDataset", "2 client pods write the dataset", unknown, false},
		"pods that write are refused":    {begun(generating, refused), nil, unknown, "PodsRefused", "client pods are refused: exceeded quota: few", unknown, false},
		"pods that run are refused":      {begun(running, refused), nil, unknown, "PodsRefused", "client pods are refused: exceeded quota: few", isTrue, false},
		"the dataset is there":           {begun(generated), nil, unknown, "DatasetReady", "the dataset is complete; the run starts", isTrue, false},
		"pods run":                       {begun(running), nil, unknown, "Running", "2 client pods run the workload", isTrue, false},
		"pods run without their share":   {begun(running, noShare), nil, unknown, "Running", "2 client pods run the workload", isTrue, false},
		"the result is on its way":       {begun(ran), nil, unknown, "Running", "the client pods have ended; the result is awaited", isTrue, false},
		"the result was deleted": {
			begun(lost), nil, isFalse, "ClientFailed",
			"all client pods have ended well, and ConfigMap j-result has no result of theirs: it was deleted or changed meanwhile; delete this job and make it again", isTrue, true,
		},
		"AU is high enough":                             {begun(ran, result("Passed")), nil, isTrue, "Completed", "AU is 70.00 %, at least 90 % is asked for; l", isTrue, true},
		"AU is too low":                                 {begun(ran, result("Failed")), nil, isFalse, "UtilizationTooLow", "AU is 70.00 %, below 90 %: the share does not feed 2 accelerators; l", isTrue, true},
		"a client had no CPU":                           {begun(ran, result("Invalid")), nil, isFalse, "MeasurementInvalid", "the run says nothing about the share (AU was 70.00 %): m", isTrue, true},
		"the result is garbage":                         {begun(ran, writes(benchmark.KeyResult, "x")), nil, isFalse, "ClientFailed", "the result can't be read: invalid character 'x' looking for beginning of value", isTrue, true},
		"the clients say why they fail":                 {begun(running, writes(benchmark.KeyFailure("1"), "why")), nil, isFalse, "ClientFailed", "why", isTrue, true},
		"clients of an earlier run say why they failed": {begun(running, writes(benchmark.KeyFailure("0"), "why")), nil, unknown, "Running", "2 client pods run the workload", isTrue, false},
		"the dataset can't be written": {
			begun(func(o *observed) { planned(o); o.generate = jobWith("generate", batchv1.JobFailed) }), nil,
			isFalse, "ClientFailed", "Job j-generate failed: backoff limit", isFalse, true,
		},

		"suspended at once": {
			begun(suspend), nil, unknown, "Suspended",
			"spec.execution is Suspended: there are no client pods, and the dataset stays; set it to Active to continue", unknown, false,
		},
		"suspended with pods that still end": {
			begun(suspend, generated, func(o *observed) { o.pods = make([]corev1.Pod, 2) }), nil, unknown, "Suspended",
			"spec.execution is Suspended: there are no client pods, and the dataset stays; set it to Active to continue; waiting for 2 client pods to end", isTrue, false,
		},
		"at the deadline": {begun(limited, generating, func(o *observed) {
			conditions.Set(&o.job.Status.Conditions, 1, began, conditions.Unknown(v1alpha1.JobSucceeded, "GeneratingDataset", "2 client pods write the dataset"))
		}), nil, isFalse, "DeadlineExceeded", "the job did not end within 60 s (spec.activeDeadlineSeconds); its last step: 2 client pods write the dataset", isFalse, true},
		"just before the deadline":        {begun(limited, generating, func(o *observed) { o.now = now.Add(-1) }), nil, unknown, "GeneratingDataset", "2 client pods write the dataset", unknown, false},
		"suspended, with a deadline":      {begun(limited, suspend, generated), nil, unknown, "Suspended", "spec.execution is Suspended: there are no client pods, and the dataset stays; set it to Active to continue", isTrue, false},
		"a result at the deadline counts": {begun(limited, ran, result("Passed")), nil, isTrue, "Completed", "AU is 70.00 %, at least 90 % is asked for; l", isTrue, true},

		"how it ended is final":             {begun(ended(isFalse, "DeadlineExceeded", "late"), ran, result("Passed")), nil, isFalse, "DeadlineExceeded", "late", "", true},
		"it ended and its Jobs are no more": {begun(ended(isFalse, "ClientFailed", "why"), generated), nil, isFalse, "ClientFailed", "why", "", true},
		"it ended, and why is heard later":  {begun(ended(isFalse, "ClientFailed", "Job j-run failed"), running, writes(benchmark.KeyFailure("1"), "why")), nil, isFalse, "ClientFailed", "why", isTrue, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := report(tc.observed, tc.stepErr)
			condition := func(of string) metav1.Condition {
				if c := meta.FindStatusCondition(got.Conditions, of); c != nil {
					return *c
				}
				return metav1.Condition{}
			}
			succeeded := condition(v1alpha1.JobSucceeded)
			if succeeded.Status != tc.status || succeeded.Reason != tc.reason || succeeded.Message != tc.message {
				t.Errorf("%s %s %q", succeeded.Status, succeeded.Reason, succeeded.Message)
			}
			if dataset := condition(v1alpha1.JobDatasetReady); dataset.Status != tc.dataset {
				t.Errorf("DatasetReady is %q, want %q", dataset.Status, tc.dataset)
			}
			if (got.CompletionTime != nil) != tc.ends {
				t.Errorf("completionTime is %v", got.CompletionTime)
			}
		})
	}
}

func TestWhenAJobBegan(t *testing.T) {
	tests := map[string]struct {
		observed *observed
		want     *time.Time
	}{
		"its first pass":              {begun(func(o *observed) { o.job.Status.StartTime = nil }), &now},
		"while it waits for a share":  {begun(noShare, func(o *observed) { o.job.Status.StartTime = nil }), &now},
		"later passes":                {begun(running), &began},
		"while it is suspended":       {begun(running, suspend), nil},
		"suspended after it ended":    {begun(ended(metav1.ConditionFalse, "ClientFailed", "x"), suspend), &began},
		"active again, it begins now": {begun(generated, func(o *observed) { o.job.Status.StartTime = nil }), &now},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := report(tc.observed, nil).StartTime
			if (got == nil) != (tc.want == nil) || got != nil && !got.Time.Equal(*tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestWhenAJobIsLookedAtAgain(t *testing.T) {
	ttl := func(seconds int32) func(*observed) {
		return func(o *observed) { o.job.Spec.TTLSecondsAfterFinished = &seconds }
	}
	end := ended(metav1.ConditionTrue, "Completed", "") // 59 s ago
	tests := map[string]struct {
		observed *observed
		want     time.Duration
		expired  bool
	}{
		"no limits":                              {begun(running, withPods), 0, false},
		"pods are missing":                       {begun(running), 10 * time.Second, false},
		"pods of a new Job are missing":          {begun(running, func(o *observed) { o.run.CreationTimestamp.Time = now }), 2 * time.Second, false},
		"a pod has failed and is not replaced":   {begun(generating, withPods, func(o *observed) { o.pods[1].Status.Phase = corev1.PodFailed }), 10 * time.Second, false},
		"pods are missing of a suspended job":    {begun(running, suspend), 0, false},
		"a result is awaited":                    {begun(lost, func(o *observed) { o.now = now.Add(-time.Minute) }), time.Minute, false},
		"a deadline":                             {begun(running, withPods, func(o *observed) { o.job.Spec.ActiveDeadlineSeconds = 90 }), 30 * time.Second, false},
		"a deadline that is over":                {begun(limited, running), time.Millisecond, false},
		"a deadline of a suspended job":          {begun(limited, suspend), 0, false},
		"a deadline of a job that has ended":     {begun(limited, end), 0, false},
		"it is to be deleted after its end":      {begun(end, ttl(60)), time.Second, false},
		"it is to be deleted now":                {begun(end, ttl(59)), time.Millisecond, true},
		"it is to be deleted as soon as it ends": {begun(running, withPods, ttl(0)), 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.observed.nextLook(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if expiry, ok := tc.observed.expiry(); (ok && !now.Before(expiry)) != tc.expired {
				t.Errorf("expiry is %s", expiry)
			}
		})
	}
}

// TestBadValuesEndAJobBeforeItHasPods: what the API server has taken once is no longer looked at.
func TestBadValuesEndAJobBeforeItHasPods(t *testing.T) {
	bad := func(o *observed) {
		o.job.Spec.Placement = &v1alpha1.Placement{NodeSelector: map[string]string{"a": "b c"}}
	}
	owned := func(uid int64) func(*observed) { return func(o *observed) { o.share.Spec.UID = &uid } }
	for name, test := range map[string]struct {
		observed *observed
		want     string
	}{
		"nothing is wrong":      {begun(owned(1000)), ""},
		"there is no share":     {begun(bad, noShare), `spec.placement.nodeSelector[a]: "b c" can't be used`},
		"it is to be prepared":  {begun(bad), "delete it, and make it again with this corrected"},
		"it is prepared":        {begun(bad, planned), "spec.placement"},
		"pods write":            {begun(bad, generating), ""},
		"pods run":              {begun(bad, running), ""},
		"it is suspended":       {begun(bad, suspend), ""},
		"no pod is such a user": {begun(owned(1 << 31)), `FileShare s: spec.uid: "2147483648" can't be used`},
	} {
		err := test.observed.badValue(benchmark.Next(test.observed.state()))
		var invalid *invalidSpec
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
