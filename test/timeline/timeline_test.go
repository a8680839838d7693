package timeline

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func TestSteps(t *testing.T) {
	yes, no := true, false
	ofDeployment := metav1.ObjectMeta{Name: "x-namespace-5f6-abc", Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "5f6"}}
	of := metav1.ObjectMeta{Name: "x-abc", Labels: map[string]string{discoveryv1.LabelServiceName: "x"}}
	for name, c := range map[string]struct {
		object client.Object
		want   []string
	}{
		"a pod without a node": {&corev1.Pod{ObjectMeta: named("x-0")}, []string{"pod x-0 is made"}},
		"a pod that is ready": {&corev1.Pod{ObjectMeta: ofDeployment, Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "server", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "late"},
			},
		}}, []string{"pod x-namespace-* is made", "pod x-namespace-* has a node", "pod x-namespace-* is ready", "pod x-namespace-* runs server"}},
		"a claim": {
			&corev1.PersistentVolumeClaim{ObjectMeta: named("x"), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
			[]string{"claim x is made", "claim x is bound"},
		},
		"a Service without a ready pod": {&discoveryv1.EndpointSlice{ObjectMeta: of, Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &no}}}}, nil},
		"a Service": {
			&discoveryv1.EndpointSlice{ObjectMeta: of, Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &yes}}}},
			[]string{"Service x has an address to go to"},
		},
		"a share with conditions": {&v1alpha1.FileShare{ObjectMeta: named("x"), Status: v1alpha1.FileShareStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue},
			{Type: v1alpha1.FileSharePlaced, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse},
		}}}, []string{"FileShare x is made", "FileShare x is Placed"}},
	} {
		if got := Steps(c.object); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	start := time.Unix(1000, 0)
	round := func(name string, made, bound time.Duration) *Timeline {
		l := New(start)
		l.Reach(start.Add(bound), "claim "+name+" is bound")
		l.Reach(start.Add(made), "claim "+name+" is made")
		l.Reach(start.Add(time.Hour), "claim "+name+" is made")
		l.Rename(name, "x")
		return l
	}
	rounds := []*Timeline{round("first-1", time.Second, 2*time.Second), round("first-2", 2*time.Second, 6*time.Second), round("first-3", 3*time.Second, 4*time.Second)}
	rounds[1].Reach(start, "only once")
	want := ` median  shortest  longest  step
  2.00s     1.00s    3.00s  claim x is made
  4.00s     2.00s    6.00s  claim x is bound
`
	if got := Report(rounds); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
