package fileshare

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

func missed(loss string) func(*internalv1.ShareDirectory) {
	return func(d *internalv1.ShareDirectory) {
		if d.Status.LossID = loss; loss != "" {
			d.Status.MissingTime = ptr.To(metav1.NewTime(decideTime))
		}
	}
}

// hasCopies are directories that another data server should have.
func hasCopies(paths ...string) func(*internalv1.ShareInventory) {
	return func(i *internalv1.ShareInventory) {
		for _, path := range paths {
			i.Misplaced = append(i.Misplaced, internalv1.MisplacedDirectory{Volume: ptr.To(int32(0)), Path: path})
		}
		i.MisplacedCount = ptr.To(int32(len(paths)))
	}
}

// A share with a directory that is not on its data server is not Ready, and says which, since when, and what to do.
func TestAShareWithMissingDirectoriesSaysSo(t *testing.T) {
	const ready, missing = internalv1.DirectoryReady, internalv1.DirectoryMissing
	const one, two = "00000000000000aa", "00000000000000bb"
	for name, tc := range map[string]struct {
		change func(*observed)
		reason string
		parts  []string
	}{
		"all there": {func(o *observed) { o.put("a", "fs-0", ready) }, v1alpha1.ReasonReady, nil},
		"not looked for yet": {
			func(o *observed) { o.put("a", "fs-0", ready); o.put("b", "fs-1", missing, missed("")) }, v1alpha1.ReasonDirectoriesPending,
			[]string{`1 of 2 directories`, `"b" on fs-1`},
		},
		"one is missing": {
			func(o *observed) { o.put("a", "fs-0", ready); o.put("b", "fs-1", missing, missed(one)) }, v1alpha1.ReasonDirectoriesMissing,
			[]string{`1 of 2 directories`, `"b" on fs-1, since ` + decideTime.UTC().Format("2006-01-02T"), "spec.acceptedLosses " + one},
		},
		"two losses": {
			func(o *observed) { o.put("a", "fs-0", missing, missed(two)); o.put("b", "fs-1", missing, missed(one)) }, v1alpha1.ReasonDirectoriesMissing,
			[]string{`2 of 2 directories`, "spec.acceptedLosses " + one + ", " + two},
		},
		"the root": {
			func(o *observed) { o.put(tree.RootPath, "fs-0", missing, missed(one)) }, v1alpha1.ReasonDirectoriesMissing,
			[]string{"the share's root on fs-0"},
		},
		"one is on another data server, as after a restored backup": {
			func(o *observed) {
				o.put("a", "fs-0", missing, missed(one))
				o.looked("fs-1", 1, hasCopies("a"))
			}, v1alpha1.ReasonDirectoriesElsewhere,
			[]string{
				`"a" on fs-0, since `, "found at fs-1:/volumes/0/s/a", "delete ShareDirectory ns/" + naming.Directory("fs", "s", "a"),
				"!acceptedLosses", "!rmdir",
			},
		},
		"one is elsewhere, and another is lost": {
			func(o *observed) {
				o.put("a", "fs-0", missing, missed(one))
				o.put("b", "fs-0", missing, missed(two))
				o.looked("fs-1", 1, hasCopies("a"))
			}, v1alpha1.ReasonDirectoriesElsewhere,
			[]string{"found at fs-1:/volumes/0/s/a", "delete ShareDirectory ns/", "once those ShareDirectories are deleted", "spec.acceptedLosses " + two + ","},
		},
		"one is elsewhere on two servers": {
			func(o *observed) {
				o.put("a", "fs-0", missing, missed(one))
				o.looked("fs-1", 1, hasCopies("a"))
				o.looked("fs-2", 1, hasCopies("a"))
			}, v1alpha1.ReasonDirectoriesElsewhere, []string{"found at fs-1:/volumes/0/s/a and fs-2:/volumes/0/s/a"},
		},
		"more are elsewhere than the inventories name": {
			func(o *observed) {
				o.put("a", "fs-0", missing, missed(one))
				o.put("b", "fs-0", missing, missed(one))
				o.looked("fs-1", 1, hasCopies("a"), func(i *internalv1.ShareInventory) { i.MisplacedCount = ptr.To(int32(3)) })
			}, v1alpha1.ReasonDirectoriesElsewhere,
			[]string{"delete ShareDirectory ns/", "Accept no loss yet: 2 more directories", "!spec.acceptedLosses", "!rmdir"},
		},
		"the root of a Single share is on another data server": {
			func(o *observed) {
				o.share.Spec.Layout = v1alpha1.LayoutSingle
				o.put(tree.RootPath, "fs-0", missing, missed(one))
				o.looked("fs-1", 1, onVolume(0))
			}, v1alpha1.ReasonDirectoriesElsewhere,
			[]string{"the share's root on fs-0, since ", "found at fs-1:/volumes/0/s. ", "!acceptedLosses"},
		},
		"a copy of what is there": {
			func(o *observed) {
				o.put("a", "fs-0", ready)
				o.looked("fs-1", 1, hasCopies("a"))
			}, v1alpha1.ReasonReady, []string{"!fs-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := passOf(builders.FileShare("ns", "s", "fs").Created(decideTime).Build())
			tc.change(o)
			c := junctionsCondition(o, directoryPlan{})
			if c.Reason != tc.reason {
				t.Errorf("reason %s: %s", c.Reason, c.Message)
			}
			for _, part := range tc.parts {
				if text, unwanted := strings.CutPrefix(part, "!"); strings.Contains(c.Message, text) == unwanted {
					t.Errorf("%q: %q is there: %v", c.Message, text, unwanted)
				}
			}
		})
	}
}
