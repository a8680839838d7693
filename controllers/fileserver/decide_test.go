package fileserver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/test/builders"
)

func TestReplicas(t *testing.T) {
	tests := map[string]struct {
		wanted, eligible, existing int32
		directories                map[string]int32
		want                       int32
		refused                    string
	}{
		"as asked for":                                     {wanted: 3, eligible: 1, want: 3},
		"unset, one for each eligible node":                {eligible: 4, want: 4},
		"unset, new nodes bring servers":                   {eligible: 5, existing: 3, want: 5},
		"unset, nodes that go take none":                   {eligible: 1, existing: 3, want: 3},
		"unset, servers that own directories come back":    {eligible: 1, directories: map[string]int32{"fs-2": 1}, want: 3},
		"unset, never more than the schema allows":         {eligible: 500, want: 64},
		"unset and no node":                                {want: 0},
		"fewer, if those that go own nothing":              {wanted: 1, eligible: 3, existing: 3, directories: map[string]int32{"fs-0": 9}, want: 1},
		"fewer is refused if one that goes owns something": {wanted: 1, eligible: 3, existing: 3, directories: map[string]int32{"fs-1": 2}, want: 3, refused: "set spec.replicas to 2 or more"},
		"the same as before with directories everywhere":   {wanted: 3, eligible: 3, existing: 3, directories: map[string]int32{"fs-0": 1, "fs-2": 1}, want: 3},
		"another FileServer's directories do not count":    {wanted: 1, existing: 1, directories: map[string]int32{"fs-other-5": 1, "fs-05": 1, "fs-x": 1}, want: 1},
		"too few from the start, after a restore":          {wanted: 1, directories: map[string]int32{"fs-4": 1}, want: 5, refused: "set spec.replicas to 5 or more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// Their data servers are not there, so they can't be copied away.
			o := &observed{fileServer: builders.FileServer("ns", "fs").Replicas(tc.wanted).Build()}
			var directories []*internalv1.ShareDirectory
			for server, count := range tc.directories {
				for i := range count {
					directories = append(directories, builders.ShareDirectory("ns", "fs", "s", fmt.Sprint(i), server))
				}
			}
			o.knows(directories...)
			if tc.existing > 0 {
				o.statefulSet = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &tc.existing}}
			}
			got, refused := decideReplicas(o, tc.eligible)
			if got != tc.want {
				t.Errorf("replicas = %d, want %d", got, tc.want)
			}
			switch {
			case tc.refused == "" && refused != nil:
				t.Errorf("refused: %s", refused.Message)
			case tc.refused != "" && (refused == nil || !strings.Contains(refused.Message, tc.refused) || refused.Reason != v1alpha1.ReasonScaleInRefused):
				t.Errorf("refusal %+v, want one with %q", refused, tc.refused)
			}
		})
	}
}

func TestNodesThatAreTooManyAreReported(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("10.0.0.9/32")}
	if got, tooManyNetworks := limitNetworks(networks, 3); len(got) != 3 || tooManyNetworks != nil {
		t.Errorf("as many as there may be: %v, %+v", got, tooManyNetworks)
	}
	got, tooManyNetworks := limitNetworks(networks, 2)
	if len(got) != 2 || tooManyNetworks == nil || !v1alpha1.NeedsUser(tooManyNetworks.Reason) || !strings.Contains(tooManyNetworks.Message, "10.0.0.9") || !strings.Contains(tooManyNetworks.Message, "spec.additionalNodeNetworks") {
		t.Errorf("one more: %v, %+v", got, tooManyNetworks)
	}
}

func TestRefusalNamesEveryOwnerAndAFewOfItsDirectories(t *testing.T) {
	o := &observed{fileServer: builders.FileServer("ns", "fs").Replicas(1).Build()}
	var directories []*internalv1.ShareDirectory
	for path, server := range map[string]string{
		"a": "fs-0", "b": "fs-1", "c": "fs-1", "d": "fs-2", "e": "fs-2", "f": "fs-2", "g": "fs-2", "h": "fs-2", "i": "fs-2", "j": "fs-2", "k": "fs-2", "l": "fs-2",
	} {
		directories = append(directories, builders.ShareDirectory("ns", "fs", "s", path, server))
	}
	fixed := o.knows(directories...).moves.Fixed()
	counts, paths := fixed.Counts, fixed.Paths
	want := "fs-2 owns 9 (s:d, s:e and 7 more), fs-1 owns 2 (s:b, s:c)"
	if got := o.describeOwners(1, counts, paths); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestEligibleNodes(t *testing.T) {
	const none, noSchedule, prefer = corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule
	tolerate := func(t corev1.Toleration) *v1alpha1.Placement {
		return builders.FileServer("ns", "fs").Tolerate(t).Build().Spec.Placement
	}
	selector := builders.FileServer("ns", "fs").NodeSelector("disk", "nvme").Build().Spec.Placement
	affine := func(operator corev1.NodeSelectorOperator, values ...string) *v1alpha1.Placement {
		return &v1alpha1.Placement{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: operator, Values: values}}}},
		}}}
	}
	tests := map[string]struct {
		node      *builders.NodeBuilder
		placement *v1alpha1.Placement
		want      bool
	}{
		"any":                                        {builders.Node("n"), nil, true},
		"not a cordoned one":                         {builders.Node("n").Cordoned(), nil, false},
		"with the label":                             {builders.Node("n").Label("disk", "nvme"), selector, true},
		"not with another value":                     {builders.Node("n").Label("disk", "hdd"), selector, false},
		"not without the label":                      {builders.Node("n"), selector, false},
		"that the affinity asks for":                 {builders.Node("n").Label("disk", "nvme"), affine(corev1.NodeSelectorOpIn, "ssd", "nvme"), true},
		"not that the affinity excludes":             {builders.Node("n").Label("disk", "hdd"), affine(corev1.NodeSelectorOpNotIn, "hdd"), false},
		"not with an affinity that can't be read":    {builders.Node("n").Label("disk", "hdd"), affine("Sometimes", "hdd"), false},
		"not a tainted one":                          {builders.Node("n").Taint("k", "v", noSchedule), nil, false},
		"not one that evicts":                        {builders.Node("n").Taint("k", "v", none), nil, false},
		"one that is only second choice":             {builders.Node("n").Taint("k", "v", prefer), nil, true},
		"a tainted one that is tolerated":            {builders.Node("n").Taint("k", "v", noSchedule), tolerate(corev1.Toleration{Key: "k", Value: "v"}), true},
		"not if the value differs":                   {builders.Node("n").Taint("k", "v", noSchedule), tolerate(corev1.Toleration{Key: "k", Value: "w"}), false},
		"if the key is tolerated whatever the value": {builders.Node("n").Taint("k", "v", noSchedule), tolerate(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}), true},
		"if everything is tolerated":                 {builders.Node("n").Taint("k", "v", noSchedule), tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}), true},
		"not if another effect is tolerated":         {builders.Node("n").Taint("k", "v", noSchedule), tolerate(corev1.Toleration{Key: "k", Value: "v", Effect: none}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := countEligible([]corev1.Node{*tc.node.Build()}, tc.placement) == 1; got != tc.want {
				t.Errorf("eligible = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestABadValueLeavesDataServersWhereTheyMayRun goes by the pods that there are: with a placement that can't be read no node would be left, and
// a lost data server would not get another one.
func TestABadValueLeavesDataServersWhereTheyMayRun(t *testing.T) {
	fs := builders.FileServer("ns", "fs").Build()
	fs.Spec.Placement = &v1alpha1.Placement{NodeSelector: map[string]string{"disk": "my disk"}}
	o := &observed{fileServer: fs, badValues: admissible.FileServer(&fs.Spec), nodes: []corev1.Node{*builders.Node("a").Label("disk", "ssd").Build(), *builders.Node("b").Build()}}
	if got := countEligible(o.nodes, o.placement()); got != 0 {
		t.Errorf("%d nodes are eligible before there are pods", got)
	}
	o.statefulSet = &appsv1.StatefulSet{}
	o.statefulSet.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	if got := countEligible(o.nodes, o.placement()); got != 1 {
		t.Errorf("%d nodes are eligible for the pods that there are", got)
	}
	fs.Spec.Placement.NodeSelector["disk"] = "hdd"
	o.badValues = admissible.FileServer(&fs.Spec)
	if got := countEligible(o.nodes, o.placement()); got != 0 {
		t.Errorf("%d nodes are eligible once the value is corrected", got)
	}
}
