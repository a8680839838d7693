package exporter

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
)

var endsNow = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// leftBy is the status that an earlier process left: its pod's address, the reason of Ready, and when that last changed.
func leftBy(podIP, reason string, ago time.Duration, count int64) internalv1.DataServerStatus {
	at := metav1.NewTime(endsNow.Add(-ago))
	status := internalv1.DataServerStatus{PodIP: podIP, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason, LastTransitionTime: at}}}
	if count > 0 {
		status.LastEnd = &v1alpha1.ServerEnd{EndTime: &at, Cause: v1alpha1.EndGanesha, Message: "ganesha was killed by signal SIGKILL", Count: &count}
	}
	return status
}

// On a node's network pods have the node's address.
func TestAPodOfTheSameAddressIsNotTheSamePod(t *testing.T) {
	for name, test := range map[string]struct {
		reported, own string
		want          v1alpha1.EndCause
	}{
		"the pod was replaced":         {"uid-1", "uid-2", v1alpha1.EndPodLost},
		"the container was":            {"uid-2", "uid-2", v1alpha1.EndContainer},
		"an older release reported it": {"", "uid-2", v1alpha1.EndContainer},
	} {
		status := leftBy("10.0.0.2", v1alpha1.ReasonReady, time.Hour, 0)
		status.PodUID = test.reported
		var e ends
		e.begin(status, "10.0.0.2", test.own, endsNow)
		if e.last == nil || e.last.Cause != test.want {
			t.Errorf("%s: %+v", name, e.last)
		}
	}
}

func TestAProcessFindsOutHowTheOneBeforeItEnded(t *testing.T) {
	unreachable := leftBy("10.0.0.1", v1alpha1.ReasonReady, time.Hour, 0)
	unreachable.Unreachable = internalv1.Unreachable{SinceTime: ptr.To(metav1.NewTime(endsNow.Add(-7 * time.Second))), SeenBy: "training-namespace-x"}
	for name, test := range map[string]struct {
		status internalv1.DataServerStatus
		cause  v1alpha1.EndCause
		count  int64
		ago    time.Duration
		served int64
	}{
		"the first process":                   {status: internalv1.DataServerStatus{}},
		"the pod was stopped in order":        {leftBy("10.0.0.1", internalv1.ReasonStopping, 4*time.Second, 2), v1alpha1.EndPodStopped, 2, 4 * time.Second, 6000},
		"the pod went away":                   {leftBy("10.0.0.1", v1alpha1.ReasonReady, time.Hour, 2), v1alpha1.EndPodLost, 3, 0, 2000},
		"the pod did not answer before":       {unreachable, v1alpha1.EndPodLost, 1, 7 * time.Second, 9000},
		"the supervisor was killed":           {leftBy("10.0.0.2", v1alpha1.ReasonReady, time.Hour, 0), v1alpha1.EndContainer, 1, 0, 2000},
		"the kubelet restarted the container": {leftBy("10.0.0.2", internalv1.ReasonStopping, 3*time.Second, 0), v1alpha1.EndContainer, 1, 3 * time.Second, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			var e ends
			e.begin(test.status, "10.0.0.2", "", endsNow)
			e.begin(leftBy("10.9.9.9", v1alpha1.ReasonReady, 0, 9), "10.0.0.2", "", endsNow)
			if test.cause == "" {
				if e.last != nil {
					t.Errorf("got %+v", e.last)
				}
				return
			}
			e.observe(supervisor.State{}, true, endsNow.Add(time.Second))
			if e.last == nil || e.last.Cause != test.cause || *e.last.Count != test.count || !e.last.EndTime.Time.Equal(endsNow.Add(-test.ago)) || e.last.ServedAfterMilliseconds != nil {
				t.Fatalf("got %+v", e.last)
			}
			e.observe(supervisor.State{Starts: 1}, true, endsNow.Add(2*time.Second))
			e.observe(supervisor.State{Starts: 1}, true, endsNow.Add(9*time.Second))
			if got := ptr.Deref(e.last.ServedAfterMilliseconds, -1); got != test.served {
				t.Errorf("served after %d ms, want %d", got, test.served)
			}
		})
	}
}

func TestEndsOfGaneshaAreCountedWithThoseOfEarlierProcesses(t *testing.T) {
	var e ends
	e.begin(leftBy("10.0.0.2", v1alpha1.ReasonReady, time.Hour, 4), "10.0.0.2", "", endsNow)
	e.observe(supervisor.State{Starts: 1}, true, endsNow.Add(time.Second))
	killed := supervisor.State{Starts: 1, Ends: 1, LastEnd: supervisor.End{At: endsNow.Add(time.Minute), How: "was killed by signal SIGSEGV", Start: 1}}
	e.observe(killed, true, endsNow.Add(time.Minute)) // Ready is of the start before.
	if e.last.ServedAfterMilliseconds != nil || *e.last.Count != 6 || e.last.Message != "ganesha was killed by signal SIGSEGV" || e.last.Cause != v1alpha1.EndGanesha {
		t.Fatalf("got %+v", e.last)
	}
	reported := e.last
	killed.Starts = 2
	e.observe(killed, false, endsNow.Add(time.Minute+300*time.Millisecond))
	e.observe(killed, true, endsNow.Add(time.Minute+600*time.Millisecond))
	if ptr.Deref(e.last.ServedAfterMilliseconds, -1) != 600 || reported.ServedAfterMilliseconds != nil {
		t.Errorf("got %+v, and what was reported before is %+v", e.last, reported)
	}
	// Two ends between two looks.
	killed.Ends, killed.LastEnd = 3, supervisor.End{At: endsNow.Add(time.Hour), How: "failed: " + strings.Repeat("x", 1000), Start: 3}
	e.observe(killed, false, endsNow.Add(time.Hour))
	if *e.last.Count != 8 || len(e.last.Message) > maxEndMessage {
		t.Errorf("got %+v", e.last)
	}
}

// Who starts ganesha has to know for how long clients have tried to connect.
func TestAProcessKnowsSinceWhenClientsCouldNotReclaim(t *testing.T) {
	unreachable := leftBy("10.0.0.1", v1alpha1.ReasonReady, time.Hour, 1)
	unreachable.Unreachable = internalv1.Unreachable{SinceTime: ptr.To(metav1.NewTime(endsNow.Add(-70 * time.Second))), SeenBy: "training-namespace-x"}
	unreachable.LastEnd.ServedAfterMilliseconds = ptr.To[int64](600)
	neverServed := leftBy("10.0.0.2", internalv1.ReasonServerDown, 80*time.Second, 1)
	inGrace := leftBy("10.0.0.2", v1alpha1.ReasonReady, 80*time.Second, 1)
	inGrace.LastEnd.ServedAfterMilliseconds = ptr.To[int64](50_000)
	graceEnded := *inGrace.DeepCopy()
	inGrace.Conditions = append(inGrace.Conditions, metav1.Condition{Type: internalv1.GraceEnded, Status: metav1.ConditionFalse})
	graceEnded.Conditions = append(graceEnded.Conditions, metav1.Condition{Type: internalv1.GraceEnded, Status: metav1.ConditionTrue})
	for name, test := range map[string]struct {
		status internalv1.DataServerStatus
		ago    time.Duration
	}{
		"the first process":                       {internalv1.DataServerStatus{}, -1},
		"the pod did not answer":                  {unreachable, 70 * time.Second},
		"the pod was stopped in order":            {leftBy("10.0.0.1", internalv1.ReasonStopping, 4*time.Second, 0), 4 * time.Second},
		"it has not served since its last end":    {neverServed, 80 * time.Second},
		"the container ended in its grace period": {inGrace, 80 * time.Second},
		"the container ended later":               {graceEnded, 0},
	} {
		var e ends
		e.begin(test.status, "10.0.0.2", "", endsNow)
		if test.ago < 0 && !e.downSince.IsZero() || test.ago >= 0 && !e.downSince.Equal(endsNow.Add(-test.ago)) {
			t.Errorf("%s: %s", name, e.downSince)
		}
	}
}

// Its clients come as soon as the report is seen, and wait at the port, so it does not wait for the storage. What a pass has reported stays, and so does
// what an earlier process of the same pod has.
func TestAPodReportsThatItStartsBeforeItLooksAtItsStorage(t *testing.T) {
	for name, test := range map[string]struct {
		before internalv1.DataServerStatus
		want   string
	}{
		"the first of all":          {internalv1.DataServerStatus{}, internalv1.ReasonStarting},
		"a pod after another":       {leftBy("10.0.0.1", internalv1.ReasonStopping, time.Second, 0), internalv1.ReasonStarting},
		"a pass was faster":         {internalv1.DataServerStatus{PodUID: "uid-2", Conditions: leftBy("", v1alpha1.ReasonReady, 0, 0).Conditions}, v1alpha1.ReasonReady},
		"a container of this pod's": {internalv1.DataServerStatus{PodUID: "uid-2", Conditions: leftBy("", internalv1.ReasonStopping, 0, 0).Conditions}, internalv1.ReasonStopping},
	} {
		source := &dataservertest.Statuses{}
		source.Status = test.before
		m := New(Config{PodIP: "10.0.0.2", PodUID: "uid-2", Reporter: source, Log: quiet})
		m.dataServer = dataservertest.DataServer(1)
		m.ends.begin(test.before, m.PodIP, m.PodUID, endsNow)
		m.reportStart(t.Context())
		m.group.Wait()
		status, _ := source.Get()
		if got := status.Conditions[0].Reason; got != test.want || status.PodUID != "uid-2" {
			t.Errorf("%s: %s of %s, want %s", name, got, status.PodUID, test.want)
		}
		if test.want == internalv1.ReasonStarting && (status.PodIP != "10.0.0.2" || (status.LastEnd == nil) != (test.before.PodIP == "")) {
			t.Errorf("%s: %+v", name, status)
		}
	}
}
