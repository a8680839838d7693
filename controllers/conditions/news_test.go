package conditions

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

func TestOneFactIsOnePieceOfNews(t *testing.T) {
	const ready = v1alpha1.ReasonReady
	type state []metav1.Condition
	part := func(name, reason, message string) metav1.Condition {
		if reason == ready || reason == v1alpha1.ReasonServersShareNodes {
			return True(name, reason, message)
		}
		return False(name, reason, message)
	}
	storage := func(reason, message string) metav1.Condition {
		return part(v1alpha1.FileServerStorageAvailable, reason, message)
	}
	servers := func(reason, message string) metav1.Condition {
		return part(v1alpha1.FileServerServersAvailable, reason, message)
	}
	for name, tc := range map[string]struct {
		states []state
		want   []string
	}{
		"everything comes": {
			[]state{
				{storage(v1alpha1.ReasonClaimsPending, "0 of 2"), servers(v1alpha1.ReasonServersNotReady, "0 of 2")},
				{storage(v1alpha1.ReasonClaimsPending, "1 of 2"), servers(v1alpha1.ReasonServersNotReady, "1 of 2")},
				{storage(ready, ""), servers(ready, "")},
			},
			[]string{"Normal Ready"},
		},
		"a mistake, and all that waits because of it": {
			[]state{
				{storage(v1alpha1.ReasonExpansionRefused, "a"), servers(v1alpha1.ReasonServersNotReady, "0 of 2")},
				{storage(v1alpha1.ReasonExpansionRefused, "b"), servers(v1alpha1.ReasonServersNotReady, "1 of 2")},
				{storage(v1alpha1.ReasonExpansionRefused, "c"), servers(ready, "")},
			},
			[]string{"Warning ExpansionRefused"},
		},
		"two mistakes": {
			[]state{{storage(v1alpha1.ReasonExpansionRefused, "a"), servers(v1alpha1.ReasonTooFewNodes, "b")}},
			[]string{"Warning ExpansionRefused", "Warning TooFewNodes"},
		},
		"an outage, and its end": {
			[]state{
				{storage(ready, ""), servers(ready, "")},
				{storage(ready, ""), servers(v1alpha1.ReasonServersNotReady, "1 of 2")},
				{storage(ready, ""), servers(v1alpha1.ReasonServersNotReady, "0 of 2")},
				{storage(ready, ""), servers(ready, "")},
			},
			[]string{"Normal Ready", "Warning ServersNotReady", "Normal Ready"},
		},
		"a caveat": {
			[]state{{storage(ready, ""), servers(v1alpha1.ReasonServersShareNodes, "3 on 2")}},
			[]string{"Warning ServersShareNodes"},
		},
		"exports that come with a share": {
			[]state{{storage(ready, ""), servers(ready, "")}, {storage(ready, ""), servers(v1alpha1.ReasonConfigPending, "")}},
			[]string{"Normal Ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			var got []string
			for _, s := range tc.states {
				before := slices.Clone(list)
				SetWithReady(&list, 1, noon, s...)
				for _, n := range NewsBetween(before, list) {
					got = append(got, n.Type+" "+n.Reason)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatOnlyTheSummaryKnowsIsNews(t *testing.T) {
	var list []metav1.Condition
	Set(&list, 1, noon, True("A", v1alpha1.ReasonReady, ""))
	SetSummary(&list, 1, noon, False(v1alpha1.ConditionReady, v1alpha1.ReasonNameTaken, "taken"))
	if got := NewsBetween(nil, list); len(got) != 1 || got[0].Message != "taken" {
		t.Errorf("%+v", got)
	}
}
