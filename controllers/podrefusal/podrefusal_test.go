package podrefusal

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// event is one of a StatefulSet's or a Job's controller, some seconds after noon.
func event(seconds int, reason, message string) corev1.Event {
	kind := corev1.EventTypeNormal
	if reason == reasonFailed {
		kind = corev1.EventTypeWarning
	}
	return corev1.Event{Reason: reason, Type: kind, Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))}
}

func failed(seconds int, pod, cause string) corev1.Event {
	return event(seconds, reasonFailed, "create Pod "+pod+" in StatefulSet fs failed error: "+cause)
}

func made(seconds int, pod string) corev1.Event {
	return event(seconds, reasonMade, "create Pod "+pod+" in StatefulSet fs successful")
}

func TestWhyAPodIsRefused(t *testing.T) {
	const quota = `pods "fs-1" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`
	const quotaText = "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
	const webhook = `admission webhook "w.example.com" denied the request: no`
	combined := failed(9, "fs-1", webhook)
	combined.Message = "(combined from similar events): " + combined.Message
	series := failed(0, "fs-1", webhook)
	series.LastTimestamp, series.Series = metav1.Time{}, &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon.Add(9 * time.Second))}
	for name, tc := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"no event":                  {nil, ""},
		"another pod is made later": {[]corev1.Event{failed(1, "fs-1", quota), made(2, "fs-0")}, quotaText},
		"of Kubernetes 1.36": {[]corev1.Event{
			event(1, reasonFailed, "Create Pod fs-1 in StatefulSet fs failed error: "+quota), event(2, reasonMade, "Create Pod fs-0 in StatefulSet fs successful"),
		}, quotaText},
		"made, of Kubernetes 1.36": {[]corev1.Event{
			event(1, reasonFailed, "Create Pod fs-1 in StatefulSet fs failed error: "+quota), event(2, reasonMade, "Create Pod fs-1 in StatefulSet fs successful"),
		}, ""},
		"the claim of another pod is made": {[]corev1.Event{
			failed(1, "fs-0", webhook), event(2, reasonMade, "Create Claim data-0-fs-2 Pod fs-2 in StatefulSet fs success"),
		}, webhook},
		"a quota":                          {[]corev1.Event{failed(1, "fs-1", quota)}, quotaText},
		"the newest counts":                {[]corev1.Event{failed(5, "fs-1", webhook), failed(1, "fs-1", quota)}, webhook},
		"it was made since":                {[]corev1.Event{failed(1, "fs-1", quota), made(2, "fs-1")}, ""},
		"it was made before":               {[]corev1.Event{failed(2, "fs-1", quota), made(1, "fs-1")}, quotaText},
		"both in one second":               {[]corev1.Event{made(1, "fs-1"), failed(1, "fs-1", quota)}, quotaText},
		"another pod is refused":           {[]corev1.Event{failed(1, "fs-0", webhook)}, webhook},
		"another pod is refused later":     {[]corev1.Event{failed(1, "fs-1", quota), failed(2, "fs-0", webhook)}, quotaText},
		"a pod whose name begins the same": {[]corev1.Event{failed(1, "fs-1", quota), made(2, "fs-10")}, quotaText},
		"another pod is made":              {[]corev1.Event{failed(1, "fs-0", webhook), made(2, "fs-0")}, ""},
		"combined":                         {[]corev1.Event{failed(1, "fs-1", quota), combined}, webhook},
		"a series":                         {[]corev1.Event{failed(1, "fs-1", quota), series}, webhook},
		"something else":                   {[]corev1.Event{event(1, "FailedDelete", "delete Pod fs-1 in StatefulSet fs failed error: no")}, ""},
		"a text that controls terminals":   {[]corev1.Event{failed(1, "fs-1", "\x1b[2Jno")}, `\x1b[2Jno`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Refusals{events: tc.events}).Of("fs-1"); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhyAJobsPodsAreRefused(t *testing.T) {
	no := event(1, reasonFailed, `Error creating: pods "bench-generate-0-x7k2p" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`)
	const want = `violates PodSecurity "restricted:latest": runAsNonRoot != true`
	for name, tc := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"refused":                 {[]corev1.Event{no}, want},
		"one of two, in a second": {[]corev1.Event{no, event(1, reasonMade, "Created pod: bench-generate-1-abcde")}, want},
		"made since":              {[]corev1.Event{no, event(2, reasonMade, "Created pod: bench-generate-0-abcde")}, ""},
	} {
		if got := (Refusals{events: tc.events}).Any(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestWhyADeploymentsPodsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		condition appsv1.DeploymentCondition
		want      string
	}{
		"refused":       {appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: `pods "fs-namespace-7f-x" is forbidden: exceeded quota: few`}, "exceeded quota: few"},
		"not any more":  {appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionFalse, Reason: "FailedCreate", Message: "x"}, ""},
		"not deleted":   {appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedDelete", Message: "x"}, ""},
		"not available": {appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "x"}, ""},
	} {
		deployment := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{tc.condition}}}
		if got := OfDeployment(deployment); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	if got := (Refusals{events: []corev1.Event{failed(1, "fs-1", strings.Repeat("x", 2000))}}).Of("fs-1"); len(got) > maxMessage {
		t.Errorf("%d bytes", len(got))
	}
}
