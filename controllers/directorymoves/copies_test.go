package directorymoves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/test/builders"
)

// onVolumes is inCeph with volumes.
func onVolumes(directories ...*internalv1.ShareDirectory) *View {
	v := inCeph(directories...)
	v.FileServer.Spec.Storage = builders.FileServer("ns", "fs").Build().Spec.Storage
	v.FileServer.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	return v
}

// copied gives a directory a move.
func copied(directory *internalv1.ShareDirectory, from, to string, step internalv1.MoveStep, attempt int32) *internalv1.ShareDirectory {
	place := func(server string) internalv1.DirectoryPlace {
		return internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: server}, Volume: ptr.To(int32(0))}
	}
	directory.Spec.Move = internalv1.DirectoryMove{
		ID: "move-" + directory.Spec.Path, Source: place(from), Target: place(to), Step: step, StepTime: &metav1.Time{Time: noon}, Attempt: attempt, Sequence: 3,
	}
	return directory
}

// reports lets a data server report a move.
func (v *View) reports(server, id string, state internalv1.MoveState, attempt int32, message string) *View {
	dataServer := v.DataServers[server]
	dataServer.Status.Moves = append(dataServer.Status.Moves, internalv1.MoveReport{ID: id, State: state, Attempt: attempt, Sequence: 3, Message: message})
	v.DataServers[server] = dataServer
	return v
}

func TestStepsOfCopies(t *testing.T) {
	ask := func(v *View, text string) *View {
		v.FileServer.Annotations = map[string]string{v1alpha1.MovesAnnotation: text}
		return v
	}
	forbid := func(v *View) *View {
		v.FileServer.Spec.Moves.Copying = ""
		return v
	}
	const toFS2 = `[{"share":"s","path":"a","to":"fs-2"}]`
	copying, freezing := internalv1.MoveCopying, internalv1.MoveFreezing
	tests := map[string]struct {
		v       *View
		want    []string
		left    int
		refused string
		stuck   string
	}{
		"one that was asked for begins":             {v: ask(onVolumes(owned("s", "a", "fs-0")), toFS2), want: []string{"s/a on fs-0, from fs-0 to fs-2: Copying 0"}, left: 1},
		"without the switch none can":               {v: forbid(ask(onVolumes(owned("s", "a", "fs-0")), toFS2)), refused: "spec.moves.copying"},
		"and a server in maintenance keeps its own": {v: forbid(onVolumes(owned("s", "a", "fs-2")).leave("fs-2"))},
		"the switch is turned off while one is copied": {
			v:    forbid(ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)), toFS2)),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Thawing 0"}, refused: "spec.moves.copying",
		},
		"and while one gets its place": {
			v: forbid(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MovePlacing, 1)).
				reports("fs-2", "move-a", internalv1.MoveStatePlaced, 1, "")),
			want: []string{"s/a on fs-2, from fs-0 to fs-2: Leaving 1, new identity"},
		},
		"files are open": {
			v:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", freezing, 1)).reports("fs-0", "move-a", internalv1.MoveStateInUse, 1, "open files: 2"), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Thawing 1"}, left: 1, stuck: "a of share s: fs-0: open files: 2",
		},
		"the root of a Single share can't":      {v: ask(onVolumes(owned("s", ".", "fs-0")), `[{"share":"s","path":".","to":"fs-2"}]`), refused: "the root of a share of layout Single can't move on volumes"},
		"what is left of a deleted share can't": {v: ask(onVolumes(owned("gone", "a", "fs-0")), `[{"share":"gone","path":"a","to":"fs-2"}]`), refused: "it is not exported"},
		"one begins, the others wait":           {v: onVolumes(owned("s", "a", "fs-2"), owned("s", "b", "fs-2"), owned("s", "c", "fs-2")).leave("fs-2"), want: []string{"s/a on fs-2, from fs-2 to fs-0: Copying 0"}},
		"two servers give one each":             {v: onVolumes(owned("s", "a", "fs-2"), owned("s", "b", "fs-1"), owned("s", "c", "fs-1")).leave("fs-2", "fs-1"), want: []string{"s/a on fs-2, from fs-2 to fs-0: Copying 0"}},
		"what is being renamed waits":           {v: onVolumes(owned("s", "a", "fs-2", in(internalv1.DirectoryRemoving, time.Hour))).leave("fs-2")},
		"what is not made yet waits":            {v: onVolumes(owned("s", "a", "fs-2", in(internalv1.DirectoryCreating, time.Hour))).leave("fs-2")},
		"that of a server that is away":         {v: onVolumes(owned("s", "a", "fs-9"))},
		"roots stay where the server leaves":    {v: onVolumes(owned("s", ".", "fs-2")).leave("fs-2")},
		"suspended, none begins": {v: func() *View {
			v := onVolumes(owned("s", "a", "fs-2")).leave("fs-2")
			v.FileServer.Spec.Moves.Execution = v1alpha1.ExecutionSuspended
			return v
		}()},
		"one that has caught up is frozen": {
			v:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)).reports("fs-2", "move-a", internalv1.MoveStateCaughtUp, 0, ""), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Freezing 1"}, left: 1,
		},
		"but not while its share is paused": {
			v: func() *View {
				v := ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)).reports("fs-2", "move-a", internalv1.MoveStateCaughtUp, 0, ""), toFS2)
				v.Shares[0].Paused = true
				return v
			}(),
			left: 1,
		},
		"a verified one is placed": {
			v: ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", freezing, 1)).reports("fs-0", "move-a", internalv1.MoveStateFrozen, 1, "").
				reports("fs-2", "move-a", internalv1.MoveStateVerified, 1, ""), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Placing 1"}, left: 1,
		},
		"a placed one has another owner, and another identity": {
			v:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MovePlacing, 1)).reports("fs-2", "move-a", internalv1.MoveStatePlaced, 1, ""), toFS2),
			want: []string{"s/a on fs-2, from fs-0 to fs-2: Leaving 1, new identity"}, left: 1,
		},
		"one that has left is done": {
			v:    onVolumes(copied(owned("s", "a", "fs-2"), "fs-0", "fs-2", internalv1.MoveLeaving, 1)).reports("fs-0", "move-a", internalv1.MoveStateLeft, 1, ""),
			want: []string{"s/a on fs-2"},
		},
		"one that is not asked for any more asks the source": {
			v:    onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Thawing 0"},
		},
		"and ends when that serves": {
			v:    onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveThawing, 0)).reports("fs-0", "move-a", internalv1.MoveStateServing, 0, ""),
			want: []string{"s/a on fs-0"},
		},
		"one that is asked to go elsewhere ends first": {
			v:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-1", copying, 0)), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-1: Thawing 0"}, left: 1,
		},
		"a request without room is refused": {
			v:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)).reports("fs-2", "move-a", internalv1.MoveStateRefused, 0, "the volume is full"), toFS2),
			want: []string{"s/a on fs-0"}, stuck: "a of share s: the volume is full",
		},
		"one of a leaving server waits for room, and others go on": {
			v: onVolumes(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", copying, 0), owned("s", "b", "fs-2")).leave("fs-2").
				reports("fs-1", "move-a", internalv1.MoveStateRefused, 0, "the volume is full"),
			want: []string{"s/b on fs-2, from fs-2 to fs-0: Copying 0"}, stuck: "a of share s: the volume is full",
		},
		"one whose files stay open waits, and others go on": {
			v: onVolumes(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", copying, 3), owned("s", "b", "fs-2")).leave("fs-2").
				reports("fs-1", "move-a", internalv1.MoveStateCopying, 3, ""),
			want: []string{"s/b on fs-2, from fs-2 to fs-0: Copying 0"},
		},
		"but they may be closed soon": {
			v: onVolumes(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", copying, 2), owned("s", "b", "fs-2")).leave("fs-2").
				reports("fs-1", "move-a", internalv1.MoveStateCopying, 2, ""),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := tc.v.Plan()
			var got []string
			for _, write := range plan.writes {
				spec := write.after.Spec
				text := fmt.Sprintf("%s/%s on %s", spec.FileShareRef.Name, spec.Path, spec.DataServerRef.Name)
				if move := spec.Move; move.ID != "" {
					text += fmt.Sprintf(", from %s to %s: %s %d", move.Source.DataServerRef.Name, move.Target.DataServerRef.Name, move.Step, move.Attempt)
				}
				if spec.Identity != write.before.Spec.Identity {
					text += ", new identity"
				}
				if (write.outcome == moving.Flip) != (spec.DataServerRef != write.before.Spec.DataServerRef) || write.after.Labels[v1alpha1.DataServerLabel] != spec.DataServerRef.Name && write.outcome == moving.Flip {
					t.Errorf("outcome %d: %+v", write.outcome, write.after)
				}
				if (write.outcome == moving.Flip) != (spec.MovedTime != nil) {
					t.Errorf("outcome %d, moved at %v", write.outcome, spec.MovedTime)
				}
				got = append(got, text)
			}
			if !slices.Equal(got, tc.want) || len(plan.changes) > 0 || len(plan.requests) != tc.left {
				t.Errorf("steps %q, %d changes, %d requests; want %q, %d", got, len(plan.changes), len(plan.requests), tc.want, tc.left)
			}
			if text := strings.Join(plan.refused, "\n"); !strings.Contains(text, tc.refused) || (text == "") != (tc.refused == "") {
				t.Errorf("refused %q", text)
			}
			if text := plan.DescribeStuck(); !strings.Contains(text, tc.stuck) || (text == "") != (tc.stuck == "") {
				t.Errorf("stuck %q", text)
			}
		})
	}
}

// There is no room at all for what a leaving server has. Each directory is tried, and a DataServer takes 64 moves: with one more nothing of it can be written.
func TestDirectoriesWithoutRoomDoNotFillADataServersMoves(t *testing.T) {
	mustFillNoMoves(t, func(v *View, directory *internalv1.ShareDirectory) {
		v.reports(directory.Spec.Move.Target.DataServerRef.Name, directory.Spec.Move.ID, internalv1.MoveStateRefused, 0, "the volume is full")
	})
}

// Nor do those whose files stay open.
func TestDirectoriesInUseDoNotFillADataServersMoves(t *testing.T) {
	mustFillNoMoves(t, func(_ *View, directory *internalv1.ShareDirectory) { directory.Spec.Move.Attempt = 5 })
}

func mustFillNoMoves(t *testing.T, begun func(v *View, directory *internalv1.ShareDirectory)) {
	t.Helper()
	var directories []*internalv1.ShareDirectory
	for i := range 200 {
		directories = append(directories, owned("s", fmt.Sprintf("d%03d", i), "fs-2"))
	}
	v := onVolumes(directories...).leave("fs-2")
	for pass := range 300 {
		plan := v.Plan()
		for _, write := range plan.writes {
			at := slices.IndexFunc(v.Directories, func(d internalv1.ShareDirectory) bool { return d.Name == write.after.Name })
			v.Directories[at] = *write.after
			begun(v, &v.Directories[at])
		}
		for server, tasks := range v.moveTasks(nil) {
			if len(tasks) > 64 {
				t.Fatalf("%s has %d moves after %d passes", server, len(tasks), pass)
			}
		}
	}
	targets := map[string]int{}
	for i := range v.Directories {
		if move := v.Directories[i].Spec.Move; move.ID != "" {
			targets[move.Target.DataServerRef.Name]++
		}
	}
	if targets["fs-0"] != 8 || targets["fs-1"] != 8 {
		t.Errorf("directories are tried at %v", targets)
	}
}

func TestDataServersGetTheirPartOfACopy(t *testing.T) {
	v := onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveFreezing, 2), owned("s", "b", "fs-0"))
	v.FileServer.Spec.Moves = v1alpha1.Moves{MegabytesPerSecond: 7}
	tasks := v.moveTasks(nil)
	if len(tasks) != 2 || len(tasks["fs-0"]) != 1 || len(tasks["fs-2"]) != 1 {
		t.Fatalf("%+v", tasks)
	}
	source, target := tasks["fs-0"][0], tasks["fs-2"][0]
	if source.Role != internalv1.MoveSource || source.Peer.Name != "fs-2" || target.Role != internalv1.MoveTarget || target.Peer.Name != "fs-0" {
		t.Errorf("%+v, %+v", source, target)
	}
	for _, task := range []internalv1.MoveTask{source, target} {
		if task.ID != "move-a" || task.Path != "a" || task.Step != internalv1.MoveFreezing || task.Attempt != 2 || task.Sequence != 3 || task.MegabytesPerSecond != 7 {
			t.Errorf("%+v", task)
		}
	}
	after := v.Directories[0].DeepCopy()
	after.Spec.Move.Step, after.Spec.Move.Sequence = internalv1.MovePlacing, 4
	if task := v.moveTasks(map[*internalv1.ShareDirectory]*internalv1.ShareDirectory{&v.Directories[0]: after})["fs-2"][0]; task.Step != internalv1.MovePlacing || task.Sequence != 4 {
		t.Errorf("what was just written is missing: %+v", task)
	}
}

// The objects of a move are lost, and its source keeps the directory frozen for a target that it does not reach.
func TestDirectoriesThatStayFrozenAreNamed(t *testing.T) {
	v := onVolumes(owned("s", "a", "fs-0"))
	if texts := v.Frozen(); len(texts) != 0 {
		t.Errorf("%q", texts)
	}
	v.reports("fs-2", "move-b", internalv1.MoveStateFrozen, 1, "").reports("fs-1", "move-c", internalv1.MoveStateOrphaned, 0, "c of share s is frozen")
	if texts := v.Frozen(); !slices.Equal(texts, []string{"fs-1: c of share s is frozen"}) {
		t.Errorf("%q", texts)
	}
}
