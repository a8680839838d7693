package provisioner

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/test/builders"
)

// A claim that the FileServer has no room for waits, and its events name the limit. No share is made for it.
func TestAClaimWaitsWhereThereIsNoRoomForItsShare(t *testing.T) {
	made := func(namespace string, n int) (shares []v1alpha1.FileShare) {
		for range n {
			share := builders.FileShare("storage", "s", "fs").Build()
			share.Spec.ClaimRef = v1alpha1.ClaimReference{Namespace: namespace, Name: "claim"}
			shares = append(shares, *share)
		}
		return shares
	}
	for name, tc := range map[string]struct {
		limits  v1alpha1.FileServerLimits
		shares  []v1alpha1.FileShare
		refusal string
	}{
		"there is room":                   {v1alpha1.FileServerLimits{PerNamespace: v1alpha1.ShareLimits{Shares: 2}}, append(made("team-a", 1), made("team-b", 5)...), ""},
		"its namespace has as many":       {v1alpha1.FileServerLimits{PerNamespace: v1alpha1.ShareLimits{Shares: 2}}, made("team-a", 2), "the shares of namespace team-a together 2 shares (spec.limits.perNamespace.shares)"},
		"the FileServer has as many":      {v1alpha1.FileServerLimits{Total: v1alpha1.ShareLimits{Shares: 5}}, made("team-b", 5), "raise spec.limits.total.shares"},
		"by default a namespace has 512":  {v1alpha1.FileServerLimits{}, made("team-a", 512), "together 512 shares"},
		"which others may have used, too": {v1alpha1.FileServerLimits{}, made("team-b", 512), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(unbound(func(o *observed) {
				o.share, o.fileServer.Spec.Limits, o.siblings = nil, tc.limits, limits.Count(tc.shares)
			}))
			if (d.createShare == nil) != (tc.refusal != "") || !strings.Contains(d.refusal, tc.refusal) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A share that was made and does not fit all the same tells the claim's owner why, though he can't read it.
func TestAClaimReportsTheLimitThatItsShareMet(t *testing.T) {
	d := decide(unbound(func(o *observed) {
		o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonLimitReached, Message: "Placed: raise it"}}
	}))
	if !strings.Contains(d.refusal, "LimitReached: Placed: raise it") {
		t.Errorf("%q", d.refusal)
	}
}

func TestADirectoryForAClaimHasTheLimitOfAll(t *testing.T) {
	directories := func(n int) []internalv1.ShareDirectory { return make([]internalv1.ShareDirectory, n) }
	for n, refused := range map[int]bool{5: false, 6: true} {
		d := decide(inShare(func(o *observed) {
			o.fileServer.Spec.Limits.Total.Directories, o.allDirectories = 7, directories(n)
		}))
		if (d.refusal != "") != refused || refused && !strings.Contains(d.refusal, "spec.limits.total.directories") {
			t.Errorf("%d: %+v", n, d)
		}
	}
}
