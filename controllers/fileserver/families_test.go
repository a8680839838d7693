package fileserver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

// What a real API server answers is a matter of test/integration.
func TestFamiliesAreAskedForOnceAMinuteWhereBothAreNeeded(t *testing.T) {
	asked, answer := 0, errors.New("an admission policy refuses this")
	api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
			asked++
			if !slices.Contains(options, client.CreateOption(client.DryRunAll)) {
				t.Error("something is made")
			}
			o.(*corev1.Service).Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
			return answer
		},
	}).Build()
	needs := func(policy corev1.IPFamilyPolicy) *v1alpha1.FileServer {
		return builders.FileServer("ns", "fs").LoadBalancer(v1alpha1.LoadBalancer{IPFamilyPolicy: policy}).Build()
	}
	var f families
	for _, step := range []struct {
		what  string
		fs    *v1alpha1.FileServer
		after time.Duration
		fault error
		known int
		asked int
	}{
		{"it needs no addresses for clients outside", builders.FileServer("ns", "fs").Build(), 0, nil, 0, 0},
		{"one family is enough", needs(""), 0, nil, 0, 0},
		{"both are preferred", needs(corev1.IPFamilyPolicyPreferDualStack), 0, nil, 0, 0},
		{"no answer", needs(corev1.IPFamilyPolicyRequireDualStack), 0, answer, 0, 1},
		{"and asked again", needs(corev1.IPFamilyPolicyRequireDualStack), time.Second, nil, 1, 2},
		{"soon after", needs(corev1.IPFamilyPolicyRequireDualStack), familiesHold, nil, 1, 2},
		{"a minute after", needs(corev1.IPFamilyPolicyRequireDualStack), familiesHold + time.Second, nil, 1, 3},
		{"the clock was set back", needs(corev1.IPFamilyPolicyRequireDualStack), -time.Hour, nil, 1, 4},
		{"the answer does not come any more", needs(corev1.IPFamilyPolicyRequireDualStack), time.Hour, answer, 0, 5},
	} {
		answer = step.fault
		if got := f.read(t.Context(), api, step.fs, noon.Add(step.after)); len(got) != step.known || asked != step.asked {
			t.Errorf("%s: %v, asked %d times, want %d families and %d", step.what, got, asked, step.known, step.asked)
		}
	}
}
