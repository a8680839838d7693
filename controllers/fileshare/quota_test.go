package fileshare

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
)

const gi = int64(1) << 30

// quota is a state; what is negative is not known.
func quota(wanted string, enforced, used, capacity int64) quotaState {
	q := quotaState{}
	if wanted != "" {
		q.wanted = ptr.To(resource.MustParse(wanted))
	}
	for to, value := range map[**int64]int64{&q.enforced: enforced, &q.used: used, &q.capacity: capacity} {
		if value >= 0 {
			*to = ptr.To(value)
		}
	}
	q.requested = max(enforced, 0)
	return q
}

// after is a state of which so much was asked for already.
func after(asked int64, q quotaState) quotaState {
	q.requested = asked
	return q
}

func TestAQuotaIsAskedForUnlessItIsRefused(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	failing := quota("10Gi", 0, 0, -1)
	failing.fault = "permission denied"
	unsupported := func(wanted string) quotaState {
		q := quota(wanted, -1, -1, -1)
		q.unsupported = "nothing can keep a share to a size; remove spec.quota"
		return q
	}
	for name, tc := range map[string]struct {
		state  quotaState
		ask    int64
		status metav1.ConditionStatus
		reason string
		says   []string
	}{
		"none":                         {quota("", -1, -1, 100*gi), 0, "", "", nil},
		"none, and files":              {quota("", 0, 5*gi, 100*gi), 0, "", "", nil},
		"none where there can be none": {unsupported(""), 0, "", "", nil},
		"one where there can be none":  {unsupported("10Gi"), 0, no, v1alpha1.ReasonQuotaUnsupported, []string{"spec.quota: nothing can keep", "remove spec.quota"}},
		"of a share that is yet to be": {quota("10Gi", -1, -1, 100*gi), 10 * gi, no, v1alpha1.ReasonProgressing, []string{"asked for a quota of 10Gi and has none"}},
		"the first one":                {quota("10Gi", 0, gi, 100*gi), 10 * gi, no, v1alpha1.ReasonProgressing, []string{"10Gi", "none"}},
		"there":                        {quota("10Gi", 10*gi, gi, 100*gi), 10 * gi, yes, v1alpha1.ReasonReady, []string{"keeps the share to 10Gi"}},
		"there, in decimal units":      {quota("10G", 1e10, gi, 100*gi), 1e10, yes, v1alpha1.ReasonReady, []string{"keeps the share to 10G"}},
		"nearly used":                  {quota("100Gi", 100*gi, 85*gi, 200*gi), 100 * gi, yes, v1alpha1.ReasonQuotaNearlyUsed, []string{"85 %", "100Gi", "Disk quota exceeded"}},
		"not quite nearly used":        {quota("100Gi", 100*gi, 84*gi, 200*gi), 100 * gi, yes, v1alpha1.ReasonReady, nil},
		"raised":                       {quota("20Gi", 10*gi, 10*gi, 100*gi), 20 * gi, no, v1alpha1.ReasonProgressing, []string{"20Gi", "10Gi"}},
		"lowered, above use":           {quota("5Gi", 10*gi, 5*gi, 100*gi), 5 * gi, no, v1alpha1.ReasonProgressing, []string{"5Gi", "10Gi"}},
		"lowered below use": {
			quota("5Gi", 10*gi, 5*gi+1, 100*gi), 10 * gi, no, v1alpha1.ReasonQuotaBelowUse,
			[]string{"spec.quota.size is 5Gi", "files take 5.1Gi", "the quota stays 10Gi", "or set spec.quota.size to 5.1Gi or more"},
		},
		"lowered below use while it is raised":                  {after(200*gi, quota("50Gi", 100*gi, 80*gi, 300*gi)), 200 * gi, no, v1alpha1.ReasonQuotaBelowUse, []string{"stays 100Gi"}},
		"more was written than was known when it was asked for": {after(5*gi, quota("5Gi", 10*gi, 6*gi, 100*gi)), 10 * gi, no, v1alpha1.ReasonQuotaBelowUse, nil},
		"asked for and not there":                               {after(20*gi, quota("20Gi", 10*gi, 0, 100*gi)), 20 * gi, no, v1alpha1.ReasonProgressing, nil},
		"the first one, below use":                              {quota("5Gi", 0, 6*gi, 100*gi), 0, no, v1alpha1.ReasonQuotaBelowUse, []string{"6Gi", "there is no quota until then"}},
		"use grew above it":                                     {quota("5Gi", 5*gi, 6*gi, 100*gi), 5 * gi, yes, v1alpha1.ReasonQuotaNearlyUsed, nil},
		"above what there is":                                   {quota("200Gi", 10*gi, gi, 100*gi), 10 * gi, no, v1alpha1.ReasonQuotaAboveCapacity, []string{"spec.quota.size is 200Gi", "has 100Gi", "stays 10Gi", "add storage"}},
		"at once above it":                                      {quota("200Gi", -1, -1, 100*gi), 0, no, v1alpha1.ReasonQuotaAboveCapacity, []string{"there is no quota until then"}},
		"storage shrank below it":                               {quota("200Gi", 200*gi, gi, 100*gi), 200 * gi, yes, v1alpha1.ReasonReady, nil},
		"lowered, and still above":                              {quota("150Gi", 200*gi, gi, 100*gi), 150 * gi, no, v1alpha1.ReasonProgressing, nil},
		"taken away":                                            {quota("", 10*gi, gi, 100*gi), 0, no, v1alpha1.ReasonProgressing, []string{"quota of none and has 10Gi"}},
		"not taken by the storage":                              {failing, 10 * gi, no, v1alpha1.ReasonProgressing, []string{"has none: permission denied"}},
	} {
		plan := planQuota(tc.state)
		if plan.request != tc.ask {
			t.Errorf("%s: %d is asked for, not %d", name, plan.request, tc.ask)
		}
		if (plan.condition == nil) != (tc.reason == "") {
			t.Errorf("%s: condition %+v", name, plan.condition)
			continue
		}
		if plan.condition == nil {
			continue
		}
		if plan.condition.Status != tc.status || plan.condition.Reason != tc.reason {
			t.Errorf("%s: %s %s", name, plan.condition.Status, plan.condition.Reason)
		}
		for _, words := range tc.says {
			if !strings.Contains(plan.condition.Message, words) {
				t.Errorf("%s: %q does not say %q", name, plan.condition.Message, words)
			}
		}
	}
}

func TestQuotaAndUseAreShortNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		state      quotaState
		size, used string
	}{
		"nothing known":        {quota("10Gi", -1, -1, -1), "<nil>", "<nil>"},
		"in the user's words":  {quota("100G", 1e11, 0, -1), "100G", "0"},
		"in steps":             {quota("100Gi", 100*gi, 37*gi+12345678, -1), "100Gi", "37Gi"},
		"in smaller steps":     {quota("1Gi", gi, 300<<20+5, -1), "1Gi", "288Mi"},
		"without a quota":      {quota("", 0, 5*gi+1, -1), "<nil>", "5Gi"},
		"while it is changed":  {quota("20Gi", 10*gi, 3, -1), "10Gi", "0"},
		"the last byte counts": {quota("4Mi", 4<<20, 4<<20, -1), "4Mi", "4Mi"},
		"more than the quota":  {quota("4Mi", 4<<20, 9<<20, -1), "4Mi", "9Mi"},
		"a few bytes":          {quota("", 0, 17, -1), "<nil>", "17"},
	} {
		got := planQuota(tc.state).status
		if size, used := got.Size.String(), got.Used.String(); size != tc.size || used != tc.used {
			t.Errorf("%s: %s of %s, not %s of %s", name, used, size, tc.used, tc.size)
		}
	}
}

// Every byte written must not be a write to the API, and what is shown must not be far from what is.
func TestStepsAreAFewPercentAtMost(t *testing.T) {
	for _, size := range []int64{4 << 20, 1e9, 100 * gi, 127 * gi, 128*gi - 1, 1 << 60} {
		shown := map[int64]bool{}
		for part := range int64(1001) {
			used := size / 1000 * part
			steps := inSteps(used, size)
			if shown[steps] = true; steps > used || used-steps > size/64 {
				t.Fatalf("%d of %d is shown as %d", used, size, steps)
			}
		}
		if len(shown) > 129 {
			t.Errorf("a share that fills %d shows %d numbers", size, len(shown))
		}
	}
}

func TestSizesInSentencesAreNumbersOfKubernetes(t *testing.T) {
	for bytes, want := range map[int64][2]string{
		0: {"0", "0"}, 1023: {"1023", "1023"}, 1024: {"1Ki", "1Ki"}, 5*gi + 1: {"5Gi", "5.1Gi"}, 36*gi + gi/2: {"36.5Gi", "36.5Gi"}, 1 << 60: {"1Ei", "1Ei"},
	} {
		down, up := readable(bytes, math.Floor), readable(bytes, math.Ceil)
		if down != want[0] || up != want[1] {
			t.Errorf("%d is %s and %s, not %v", bytes, down, up, want)
		}
		if q, err := resource.ParseQuantity(up); err != nil || q.Value() < bytes {
			t.Errorf("%s is not enough for %d: %v", up, bytes, err)
		}
	}
}
