package directorymoves

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/test/builders"
)

// noon is the time of a pass.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// inCeph is a FileServer of three data servers that have the same storage and export shares "s" and "t".
func inCeph(directories ...*internalv1.ShareDirectory) *View {
	v := &View{
		Now: noon, FileServer: builders.FileServer("ns", "fs").Replicas(3).Ceph().Build(),
		DataServers: map[string]internalv1.DataServer{}, States: map[string]fleet.State{}, exporters: map[string]map[string]bool{},
		Shares: []fleet.Share{{Key: "s"}, {Key: "t"}},
	}
	for ordinal := range int32(3) {
		name := naming.DataServer("fs", ordinal)
		v.DataServers[name], v.States[name] = internalv1.DataServer{}, fleet.Serving
		v.exporters[name] = map[string]bool{"s": true, "t": true}
	}
	for _, d := range directories {
		v.Directories = append(v.Directories, *d)
	}
	return v
}

// leave takes a data server out of service.
func (v *View) leave(names ...string) *View {
	v.FileServer.Spec.Drain = &v1alpha1.Drain{Servers: names}
	for _, name := range names {
		delete(v.exporters, name)
	}
	return v
}

func owned(share, path, server string, change ...func(*internalv1.ShareDirectory)) *internalv1.ShareDirectory {
	d := builders.ShareDirectory("ns", "fs", share, path, server)
	for _, c := range change {
		c(d)
	}
	return d
}

func in(state internalv1.DirectoryState, age time.Duration) func(*internalv1.ShareDirectory) {
	return func(d *internalv1.ShareDirectory) {
		d.Status.State, d.CreationTimestamp = state, metav1.NewTime(noon.Add(-age))
	}
}

func TestPlanMoves(t *testing.T) {
	ask := func(v *View, text string) *View {
		v.FileServer.Annotations = map[string]string{v1alpha1.MovesAnnotation: text}
		return v
	}
	declared := func(d *internalv1.ShareDirectory) {
		d.Annotations = map[string]string{v1alpha1.DeclaredAnnotation: v1alpha1.DeclaredTrue}
	}
	rebalance := func(v *View, text string) *View {
		v.FileServer.Annotations = map[string]string{v1alpha1.RebalanceAnnotation: text}
		return v
	}
	uneven := func() *View {
		return inCeph(owned("s", "a", "fs-0"), owned("s", "b", "fs-0"), owned("s", "c", "fs-0"), owned("t", "d", "fs-1"))
	}
	tests := map[string]struct {
		v                 *View
		want              []string
		pending, homeless int
		left              string
		settled           bool
		refused           string
		rebalanced        string
	}{
		"a rebalancing becomes requests": {
			v: rebalance(uneven(), "100"), pending: 2, left: "s/a to fs-2, s/b to fs-1", settled: true, rebalanced: "moving 2 directories",
		},
		"no more than was asked for": {v: rebalance(uneven(), "1"), pending: 1, left: "s/a to fs-2", settled: true, rebalanced: "moving 1 directory, so that each share is distributed evenly over the data servers; that is the requested maximum of 1"},
		"one of what is even already": {
			v: rebalance(inCeph(owned("s", "a", "fs-0"), owned("s", "b", "fs-1")), "100"), settled: true, rebalanced: "no directory moves",
		},
		"a rebalancing goes nowhere where a server is to be idle": {
			v: rebalance(uneven().leave("fs-2"), "100"), pending: 1, left: "s/a to fs-1", settled: true, rebalanced: "moving 1 directory",
		},
		"one waits while no data server serves": {
			v: func() *View {
				v := rebalance(uneven(), "100")
				v.exporters = map[string]map[string]bool{}
				return v
			}(),
			pending: 1,
		},
		"one waits for what is to move already": {
			v: func() *View {
				v := rebalance(uneven(), "100")
				v.FileServer.Annotations[v1alpha1.MovesAnnotation] = `[{"share":"s","path":"a","to":"fs-2"}]`
				return v
			}(),
			want: []string{"s/a to fs-2"}, pending: 1, left: "s/a to fs-2",
		},
		"a rebalancing of no number": {v: rebalance(uneven(), "all"), settled: true, refused: `is "all": want the number of directories that may move, 1 to 500`},
		"a rebalancing of nothing":   {v: rebalance(uneven(), "0"), settled: true, refused: "1 to 500"},
		"a rebalancing of volumes": {
			v: func() *View {
				v := rebalance(uneven(), "100")
				v.FileServer.Spec.Storage = builders.FileServer("ns", "fs").Build().Spec.Storage
				return v
			}(),
			settled: true, refused: "spec.moves.copying",
		},
		"one of volumes that may be copied leaves out roots of Single shares": {
			v:       rebalance(onVolumes(owned("s", "a", "fs-0"), owned("s", "b", "fs-0"), owned("s", "c", "fs-0"), owned("t", ".", "fs-0")), "100"),
			pending: 2, left: "s/a to fs-1, s/b to fs-2", settled: true, rebalanced: "moving 2 directories",
		},
		"nothing is to move": {v: inCeph(owned("s", "a", "fs-0"))},
		"those of a server in maintenance go where placement has them": {
			v:    inCeph(owned("s", "a", "fs-0"), owned("s", "b", "fs-1"), owned("s", "c", "fs-2"), owned("t", "d", "fs-2")).leave("fs-2"),
			want: []string{"s/c to fs-0", "t/d to fs-1"}, pending: 2,
		},
		"nothing goes to another one in maintenance": {
			v:    inCeph(owned("s", "a", "fs-2")).leave("fs-2", "fs-0"),
			want: []string{"s/a to fs-1"}, pending: 1,
		},
		"those of a server that is no more":                  {v: inCeph(owned("s", "a", "fs-7")), want: []string{"s/a to fs-0"}, pending: 1},
		"a directory above the depth has no owner to change": {v: inCeph(owned("s", "a", "")).leave("fs-0")},
		"what is being renamed or removed waits": {
			v:       inCeph(owned("s", "a", "fs-2", in(internalv1.DirectoryRemoving, time.Hour)), owned("s", "b", "fs-2", in(internalv1.DirectoryRenaming, time.Hour))).leave("fs-2"),
			pending: 2,
		},
		"a directory that a client is making waits, others do not": {
			v: inCeph(owned("s", "new", "fs-2", in(internalv1.DirectoryCreating, time.Second)), owned("s", "stuck", "fs-2", in(internalv1.DirectoryCreating, time.Hour)),
				owned("s", "declared", "fs-2", in(internalv1.DirectoryCreating, time.Second), declared)).leave("fs-2"),
			want: []string{"s/declared to fs-0", "s/stuck to fs-1"}, pending: 3,
		},
		"a share that only the leaving server serves waits": {
			v: func() *View {
				v := inCeph(owned("s", "a", "fs-2"), owned("t", "b", "fs-2")).leave("fs-2")
				v.exporters["fs-0"]["s"], v.exporters["fs-1"]["s"] = false, false
				return v
			}(),
			want: []string{"t/b to fs-0"}, pending: 2, homeless: 1,
		},
		"what is left of a deleted share moves, though no server exports it": {
			v: inCeph(owned("gone", "a", "fs-2")).leave("fs-2"), want: []string{"gone/a to fs-0"}, pending: 1,
		},
		"a share that is paused stays as it is": {
			v: func() *View {
				v := inCeph(owned("s", "a", "fs-2")).leave("fs-2")
				v.Shares[0].Paused = true
				return v
			}(),
			pending: 1,
		},
		"a move that was asked for": {
			v: ask(inCeph(owned("s", "a", "fs-0")), `[{"share":"s","path":"a","to":"fs-2"}]`), want: []string{"s/a to fs-2"}, pending: 1,
			left: "s/a to fs-2",
		},
		"one that clients are to follow": {
			v:    ask(inCeph(owned("s", "a", "fs-0"), owned("s", "b", "fs-0")), `[{"share":"s","path":"a","to":"fs-2","clients":"Follow"},{"share":"s","path":"b","to":"fs-1"}]`),
			want: []string{"s/a to fs-2 with its clients", "s/b to fs-1"}, pending: 2, left: "s/a to fs-2, s/b to fs-1",
		},
		"one that is done is taken off": {v: ask(inCeph(owned("s", "a", "fs-2")), `[{"share":"s","path":"a","to":"fs-2"}]`), settled: true},
		"one to a server that does not serve the share waits": {
			v: func() *View {
				v := ask(inCeph(owned("s", "a", "fs-0")), `[{"share":"s","path":"a","to":"fs-2"}]`)
				v.exporters["fs-2"]["s"] = false
				return v
			}(),
			pending: 1, left: "s/a to fs-2",
		},
		"what was asked for goes before maintenance": {
			v:    ask(inCeph(owned("s", "a", "fs-2")).leave("fs-2"), `[{"share":"s","path":"a","to":"fs-1"}]`),
			want: []string{"s/a to fs-1"}, pending: 1, left: "s/a to fs-1",
		},
		"what can't be is refused, the rest is done": {
			v: ask(inCeph(owned("s", "a", "fs-0"), owned("s", "b", "fs-0")).leave("fs-1"),
				`[{"share":"s","path":"x","to":"fs-2"},{"share":"s","path":"a","to":"fs-9"},{"share":"s","path":"a","to":"fs-1"},{"share":"s","path":"b","to":"fs-2"},{"share":"s","path":"b","to":"fs-0"}]`),
			want: []string{"s/b to fs-2"}, pending: 1, left: "s/b to fs-2", settled: true,
			refused: "no directory of that path|no data server of that name|is to be idle|elsewhere in the same list",
		},
		"a list that is none": {v: ask(inCeph(owned("s", "a", "fs-0")), "training-2"), settled: true, refused: "is not taken: it is no list"},
		"of a FileServer that is being deleted": {
			v: func() *View {
				v := inCeph(owned("s", "a", "fs-2")).leave("fs-2")
				v.FileServer.DeletionTimestamp = &metav1.Time{Time: noon}
				return v
			}(),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := tc.v.Plan()
			var got, left []string
			for _, change := range plan.changes {
				got = append(got, fmt.Sprintf("%s/%s to %s%s", change.directory.Spec.FileShareRef.Name, change.directory.Spec.Path, change.to,
					map[bool]string{true: " with its clients"}[change.follow]))
			}
			for _, request := range plan.requests {
				left = append(left, fmt.Sprintf("%s/%s to %s", request.Share, request.Path, request.To))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
			if plan.Pending != tc.pending || plan.Homeless != tc.homeless || plan.settled != tc.settled || strings.Join(left, ", ") != tc.left {
				t.Errorf("%d pending, %d homeless, settled %t, left %v", plan.Pending, plan.Homeless, plan.settled, left)
			}
			if !strings.Contains(plan.rebalanced, tc.rebalanced) || (tc.rebalanced == "") != (plan.rebalanced == "") {
				t.Errorf("of the rebalancing: %q, want %q in it", plan.rebalanced, tc.rebalanced)
			}
			_, isAsked := tc.v.FileServer.Annotations[v1alpha1.RebalanceAnnotation]
			if ends := tc.rebalanced != "" || isAsked && tc.refused != ""; plan.endsRebalance(tc.v) != ends {
				t.Errorf("the annotation %s goes: %t, want %t", v1alpha1.RebalanceAnnotation, plan.endsRebalance(tc.v), ends)
			}
			text := strings.Join(plan.refused, "\n")
			for _, part := range strings.Split(tc.refused, "|") {
				if !strings.Contains(text, part) || (part == "") != (text == "") {
					t.Errorf("refused %q, want %q in it", text, part)
				}
			}
		})
	}
}

// Clients give directories names of up to 4 KiB, and the API server refuses an object with more than 256 KiB of annotations: then each pass would fail.
func TestARebalancingFitsIntoAnAnnotation(t *testing.T) {
	var owners []*internalv1.ShareDirectory
	for i := range 3 * placement.MaxRequests {
		owners = append(owners, owned("s", fmt.Sprintf("%s%d", strings.Repeat("é", 1000), i), "fs-0"))
	}
	v := inCeph(owners...)
	v.FileServer.Annotations = map[string]string{v1alpha1.RebalanceAnnotation: strconv.Itoa(placement.MaxRequests)}
	plan := v.Plan()
	text := placement.FormatRequests(plan.requests)
	if len(text) > 200<<10 || len(plan.requests) == 0 || plan.Pending != len(plan.requests) {
		t.Errorf("%d requests, %d pending, of %d bytes", len(plan.requests), plan.Pending, len(text))
	}
	if !strings.Contains(plan.rebalanced, "more are left to move") || !plan.endsRebalance(v) {
		t.Error(plan.rebalanced)
	}
}

func TestAPassMovesALimitedNumberOfDirectories(t *testing.T) {
	v := inCeph().leave("fs-2")
	for i := range 3 * movesPerPass {
		v.Directories = append(v.Directories, *owned("s", fmt.Sprint(i), "fs-2"))
	}
	plan := v.Plan()
	if len(plan.changes) != movesPerPass || plan.Pending != 3*movesPerPass || plan.Again() != movePause {
		t.Errorf("%d of %d, again in %s", len(plan.changes), plan.Pending, plan.Again())
	}
}
