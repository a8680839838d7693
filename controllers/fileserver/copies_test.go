package fileserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/test/builders"
)

// onVolumes is inCeph with volumes.
func onVolumes(directories ...*internalv1.ShareDirectory) *observed {
	o := inCeph(directories...)
	o.fileServer.Spec.Storage = builders.FileServer("ns", "fs").Build().Spec.Storage
	o.fileServer.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	return o
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
func (o *observed) reports(server, id string, state internalv1.MoveState, attempt int32, message string) *observed {
	dataServer := o.dataServers[server]
	dataServer.Status.Moves = append(dataServer.Status.Moves, internalv1.MoveReport{ID: id, State: state, Attempt: attempt, Sequence: 3, Message: message})
	o.dataServers[server] = dataServer
	return o
}

func TestStepsOfCopies(t *testing.T) {
	ask := func(o *observed, text string) *observed {
		o.fileServer.Annotations = map[string]string{v1alpha1.MovesAnnotation: text}
		return o
	}
	forbid := func(o *observed) *observed {
		o.fileServer.Spec.Moves.Copying = ""
		return o
	}
	const toFS2 = `[{"share":"s","path":"a","to":"fs-2"}]`
	copying, freezing := internalv1.MoveCopying, internalv1.MoveFreezing
	tests := map[string]struct {
		o       *observed
		want    []string
		left    int
		refused string
		stuck   string
	}{
		"one that was asked for begins":             {o: ask(onVolumes(owned("s", "a", "fs-0")), toFS2), want: []string{"s/a on fs-0, from fs-0 to fs-2: Copying 0"}, left: 1},
		"without the switch none can":               {o: forbid(ask(onVolumes(owned("s", "a", "fs-0")), toFS2)), refused: "spec.moves.copying"},
		"and a server in maintenance keeps its own": {o: forbid(onVolumes(owned("s", "a", "fs-2")).leave("fs-2"))},
		"the switch is turned off while one is copied": {
			o:    forbid(ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)), toFS2)),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Thawing 0"}, refused: "spec.moves.copying",
		},
		"and while one gets its place": {
			o: forbid(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MovePlacing, 1)).
				reports("fs-2", "move-a", internalv1.MoveStatePlaced, 1, "")),
			want: []string{"s/a on fs-2, from fs-0 to fs-2: Leaving 1, new identity"},
		},
		"files are open": {
			o:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", freezing, 1)).reports("fs-0", "move-a", internalv1.MoveStateInUse, 1, "open files: 2"), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Thawing 1"}, left: 1, stuck: "a of share s: fs-0: open files: 2",
		},
		"the root of a Single share can't":      {o: ask(onVolumes(owned("s", ".", "fs-0")), `[{"share":"s","path":".","to":"fs-2"}]`), refused: "the root of a share of layout Single can't move on volumes"},
		"what is left of a deleted share can't": {o: ask(onVolumes(owned("gone", "a", "fs-0")), `[{"share":"gone","path":"a","to":"fs-2"}]`), refused: "it is not exported"},
		"one begins, the others wait":           {o: onVolumes(owned("s", "a", "fs-2"), owned("s", "b", "fs-2"), owned("s", "c", "fs-2")).leave("fs-2"), want: []string{"s/a on fs-2, from fs-2 to fs-0: Copying 0"}},
		"two servers give one each":             {o: onVolumes(owned("s", "a", "fs-2"), owned("s", "b", "fs-1"), owned("s", "c", "fs-1")).leave("fs-2", "fs-1"), want: []string{"s/a on fs-2, from fs-2 to fs-0: Copying 0"}},
		"what is being renamed waits":           {o: onVolumes(owned("s", "a", "fs-2", in(internalv1.DirectoryRemoving, time.Hour))).leave("fs-2")},
		"what is not made yet waits":            {o: onVolumes(owned("s", "a", "fs-2", in(internalv1.DirectoryCreating, time.Hour))).leave("fs-2")},
		"that of a server that is away":         {o: onVolumes(owned("s", "a", "fs-9"))},
		"roots stay where the server leaves":    {o: onVolumes(owned("s", ".", "fs-2")).leave("fs-2")},
		"suspended, none begins": {o: func() *observed {
			o := onVolumes(owned("s", "a", "fs-2")).leave("fs-2")
			o.fileServer.Spec.Moves.Execution = v1alpha1.ExecutionSuspended
			return o
		}()},
		"one that has caught up is frozen": {
			o:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)).reports("fs-2", "move-a", internalv1.MoveStateCaughtUp, 0, ""), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Freezing 1"}, left: 1,
		},
		"but not while its share is paused": {
			o: func() *observed {
				o := ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)).reports("fs-2", "move-a", internalv1.MoveStateCaughtUp, 0, ""), toFS2)
				o.shares[0].Paused = true
				return o
			}(),
			left: 1,
		},
		"a verified one is placed": {
			o: ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", freezing, 1)).reports("fs-0", "move-a", internalv1.MoveStateFrozen, 1, "").
				reports("fs-2", "move-a", internalv1.MoveStateVerified, 1, ""), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Placing 1"}, left: 1,
		},
		"a placed one has another owner, and another identity": {
			o:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MovePlacing, 1)).reports("fs-2", "move-a", internalv1.MoveStatePlaced, 1, ""), toFS2),
			want: []string{"s/a on fs-2, from fs-0 to fs-2: Leaving 1, new identity"}, left: 1,
		},
		"one that has left is done": {
			o:    onVolumes(copied(owned("s", "a", "fs-2"), "fs-0", "fs-2", internalv1.MoveLeaving, 1)).reports("fs-0", "move-a", internalv1.MoveStateLeft, 1, ""),
			want: []string{"s/a on fs-2"},
		},
		"one that is not asked for any more asks the source": {
			o:    onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)),
			want: []string{"s/a on fs-0, from fs-0 to fs-2: Thawing 0"},
		},
		"and ends when that serves": {
			o:    onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveThawing, 0)).reports("fs-0", "move-a", internalv1.MoveStateServing, 0, ""),
			want: []string{"s/a on fs-0"},
		},
		"one that is asked to go elsewhere ends first": {
			o:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-1", copying, 0)), toFS2),
			want: []string{"s/a on fs-0, from fs-0 to fs-1: Thawing 0"}, left: 1,
		},
		"a request without room is refused": {
			o:    ask(onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", copying, 0)).reports("fs-2", "move-a", internalv1.MoveStateRefused, 0, "the volume is full"), toFS2),
			want: []string{"s/a on fs-0"}, stuck: "a of share s: the volume is full",
		},
		"one of a leaving server waits for room, and others go on": {
			o: onVolumes(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", copying, 0), owned("s", "b", "fs-2")).leave("fs-2").
				reports("fs-1", "move-a", internalv1.MoveStateRefused, 0, "the volume is full"),
			want: []string{"s/b on fs-2, from fs-2 to fs-0: Copying 0"}, stuck: "a of share s: the volume is full",
		},
		"one whose files stay open waits, and others go on": {
			o: onVolumes(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", copying, 3), owned("s", "b", "fs-2")).leave("fs-2").
				reports("fs-1", "move-a", internalv1.MoveStateCopying, 3, ""),
			want: []string{"s/b on fs-2, from fs-2 to fs-0: Copying 0"},
		},
		"but they may be closed soon": {
			o: onVolumes(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", copying, 2), owned("s", "b", "fs-2")).leave("fs-2").
				reports("fs-1", "move-a", internalv1.MoveStateCopying, 2, ""),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := planMoves(tc.o)
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
			if text := plan.describeStuck(); !strings.Contains(text, tc.stuck) || (text == "") != (tc.stuck == "") {
				t.Errorf("stuck %q", text)
			}
		})
	}
}

// There is no room at all for what a leaving server has. Each directory is tried, and a DataServer takes 64 moves: with one more nothing of it can be written.
func TestDirectoriesWithoutRoomDoNotFillADataServersMoves(t *testing.T) {
	mustFillNoMoves(t, func(o *observed, directory *internalv1.ShareDirectory) {
		o.reports(directory.Spec.Move.Target.DataServerRef.Name, directory.Spec.Move.ID, internalv1.MoveStateRefused, 0, "the volume is full")
	})
}

// Nor do those whose files stay open.
func TestDirectoriesInUseDoNotFillADataServersMoves(t *testing.T) {
	mustFillNoMoves(t, func(_ *observed, directory *internalv1.ShareDirectory) { directory.Spec.Move.Attempt = 5 })
}

func mustFillNoMoves(t *testing.T, begun func(o *observed, directory *internalv1.ShareDirectory)) {
	t.Helper()
	var directories []*internalv1.ShareDirectory
	for i := range 200 {
		directories = append(directories, owned("s", fmt.Sprintf("d%03d", i), "fs-2"))
	}
	o := onVolumes(directories...).leave("fs-2")
	for pass := range 300 {
		plan := planMoves(o)
		for _, write := range plan.writes {
			at := slices.IndexFunc(o.owned, func(d internalv1.ShareDirectory) bool { return d.Name == write.after.Name })
			o.owned[at] = *write.after
			begun(o, &o.owned[at])
		}
		for server, tasks := range o.moveTasks(nil) {
			if len(tasks) > 64 {
				t.Fatalf("%s has %d moves after %d passes", server, len(tasks), pass)
			}
		}
	}
	targets := map[string]int{}
	for i := range o.owned {
		if move := o.owned[i].Spec.Move; move.ID != "" {
			targets[move.Target.DataServerRef.Name]++
		}
	}
	if targets["fs-0"] != 8 || targets["fs-1"] != 8 {
		t.Errorf("directories are tried at %v", targets)
	}
}

// A server above that has a directory which can move stays, though the scale-in is refused because of another one.
func TestAServerIsEmptiedBeforeItGoesThoughTheScaleInIsRefused(t *testing.T) {
	o := onVolumes(owned("s", ".", "fs-1"), owned("s", "a", "fs-2")).leave("fs-1", "fs-2")
	o.fileServer.Spec.Replicas, o.statefulSet = 1, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3))}}
	o.directories = map[string]int32{"fs-1": 1, "fs-2": 1}
	replicas, refused := decideReplicas(o, 3)
	if replicas != 3 || refused == nil || refused.Reason != v1alpha1.ReasonScaleInRefused {
		t.Errorf("%d data servers, %+v", replicas, refused)
	}
}

// noRoom lets a target refuse a directory for which its volume has too little room.
func (o *observed) noRoom(server, id string, bytes int64) *observed {
	o.reports(server, id, internalv1.MoveStateRefused, 0, "the target's volume has 1 MB free, and 4 MB are needed")
	dataServer := o.dataServers[server]
	report := &dataServer.Status.Moves[len(dataServer.Status.Moves)-1]
	report.Reason, report.Bytes, report.Files = internalv1.MoveNoRoom, ptr.To(bytes), ptr.To(int64(1))
	return o
}

// free gives a data server one volume of a hundred gigabytes.
func (o *observed) free(server string, bytes int64) *observed {
	const total = 100e9
	dataServer := o.dataServers[server]
	usage := internalv1.VolumeUsage{Index: ptr.To(int32(0)), TotalBytes: ptr.To(int64(total)), UsedBytes: ptr.To(total - bytes), FreeBytes: &bytes}
	if bytes < 5e9 {
		usage.Fill = v1alpha1.FillAbove95
	}
	dataServer.Status.Volumes = []internalv1.VolumeUsage{usage}
	o.dataServers[server] = dataServer
	return o
}

// redirected gives a move's directory the refusals of earlier targets.
func redirected(directory *internalv1.ShareDirectory, ago time.Duration, servers ...string) *internalv1.ShareDirectory {
	for _, server := range servers {
		directory.Spec.Move.Refusals = append(directory.Spec.Move.Refusals, internalv1.MoveRefusal{
			DataServerRef: internalv1.DataServerReference{Name: server}, RefusedTime: &metav1.Time{Time: noon.Add(-ago)},
		})
	}
	return directory
}

func TestADirectoryForWhichATargetHasNoRoomGoesToAnother(t *testing.T) {
	const gigabyte = int64(1e9)
	atFull := func(refusals ...string) *internalv1.ShareDirectory {
		return redirected(copied(owned("s", "a", "fs-2"), "fs-2", "fs-1", internalv1.MoveCopying, 0), time.Minute, refusals...)
	}
	tests := map[string]struct {
		o          *observed
		want       []string
		stuck      []string
		unexpected string
	}{
		"another has room": {
			o:     onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			want:  []string{"s/a to fs-0, refused by fs-1"},
			stuck: []string{"a of share s goes to fs-0, because fs-1 has no room for it"},
		},
		"another that does not say how much it has is asked": {
			o: onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte), want: []string{"s/a to fs-0, refused by fs-1"},
			stuck: []string{"goes to fs-0"},
		},
		"no other has": {
			o: onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-1", gigabyte).free("fs-0", 8*gigabyte),
			stuck: []string{
				"a of share s: the target's volume has 1 MB free, and 4 MB are needed; no other data server has room for it, fs-0 lacks least, 4000 MB",
				"raise spec.storage.volumes.size, delete data there, or add a data server (spec.replicas)",
			},
		},
		"the other has refused it a minute ago": {
			o:     onVolumes(atFull("fs-0")).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			stuck: []string{"no other data server has room for it"},
		},
		"the other had refused it, and that is long ago": {
			o:     onVolumes(redirected(atFull(), time.Hour, "fs-0")).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			want:  []string{"s/a to fs-0, refused by fs-1"},
			stuck: []string{"goes to fs-0"},
		},
		"the other takes one at the moment": {
			o: onVolumes(atFull(), copied(owned("s", "b", "fs-2"), "fs-2", "fs-0", internalv1.MoveCopying, 0)).leave("fs-2").
				noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			stuck: []string{"a of share s goes to fs-0 in its turn, because fs-1 has no room for it"},
		},
		"it is refused for something else": {
			o:          onVolumes(atFull()).leave("fs-2").reports("fs-1", "move-a", internalv1.MoveStateRefused, 0, "the target has a directory of that name").free("fs-0", 50*gigabyte),
			stuck:      []string{"the target has a directory of that name"},
			unexpected: "has room",
		},
		"moves are suspended": {
			o: func() *observed {
				o := onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte)
				o.fileServer.Spec.Moves.Execution = v1alpha1.ExecutionSuspended
				return o
			}(),
			stuck: []string{"a of share s goes to fs-0 in its turn"},
		},
		"its share is paused": {
			o: func() *observed {
				o := onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte)
				o.shares[0].Paused = true
				return o
			}(),
			stuck: []string{"a of share s goes to fs-0 in its turn"},
		},
		"a target that is nearly full is the last to be chosen": {
			o:    onVolumes(owned("s", "a", "fs-2"), owned("s", "b", "fs-1")).leave("fs-2").free("fs-1", 50*gigabyte).free("fs-0", gigabyte),
			want: []string{"s/a to fs-1"},
		},
		"but it is chosen if there is no other": {
			o:    onVolumes(owned("s", "a", "fs-2")).leave("fs-2", "fs-1").free("fs-0", gigabyte),
			want: []string{"s/a to fs-0"},
		},
		"one that was given another target goes on there": {
			o:     onVolumes(redirected(copied(owned("s", "a", "fs-2"), "fs-2", "fs-0", internalv1.MoveCopying, 0), time.Minute, "fs-1")).leave("fs-2"),
			stuck: []string{"a of share s goes to fs-0, because fs-1 has no room for it"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := planMoves(tc.o)
			var got []string
			for _, write := range plan.writes {
				move := write.after.Spec.Move
				text := fmt.Sprintf("%s/%s to %s", write.after.Spec.FileShareRef.Name, write.after.Spec.Path, move.Target.DataServerRef.Name)
				for _, refusal := range move.Refusals {
					text += ", refused by " + refusal.DataServerRef.Name
				}
				if move.ID == "move-a" || move.Step != internalv1.MoveCopying || move.Source.DataServerRef != write.after.Spec.DataServerRef || move.Attempt != 0 {
					t.Errorf("%+v is no new move", move)
				}
				got = append(got, text)
			}
			text := plan.describeStuck()
			if !slices.Equal(got, tc.want) {
				t.Errorf("moves %q, want %q", got, tc.want)
			}
			for _, part := range tc.stuck {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
			if text != "" && len(tc.stuck) == 0 || tc.unexpected != "" && strings.Contains(text, tc.unexpected) {
				t.Errorf("stuck %q", text)
			}
		})
	}
}

// A request for a data server that has no room ends, and names one that has some.
func TestARequestWithoutRoomNamesADataServerThatHasSome(t *testing.T) {
	o := onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveCopying, 0)).noRoom("fs-2", "move-a", 1e9).free("fs-1", 50e9)
	o.fileServer.Annotations = map[string]string{v1alpha1.MovesAnnotation: `[{"share":"s","path":"a","to":"fs-2"}]`}
	plan := planMoves(o)
	if len(plan.writes) != 1 || plan.writes[0].reason != "MoveRefused" || plan.writes[0].after.Spec.Move.ID != "" || len(plan.requests) != 0 {
		t.Fatalf("%+v", plan)
	}
	if note := plan.writes[0].note; !strings.HasSuffix(note, "; data server fs-1 has room for it: kubectl howdah move s/a --to fs-1") {
		t.Error(note)
	}
}

// fs-1 is full, fs-0 is not. Everything that fs-2 has is on fs-0 in the end, and each directory was tried at fs-1 once at the most.
func TestAFullTargetHoldsNothingUp(t *testing.T) {
	var directories []*internalv1.ShareDirectory
	for i := range 40 {
		directories = append(directories, owned("s", fmt.Sprintf("d%03d", i), "fs-2"))
	}
	o := onVolumes(directories...).leave("fs-2")
	tried := map[string]int{}
	for range 400 {
		for server, dataServer := range o.dataServers {
			dataServer.Status.Moves = nil
			o.dataServers[server] = dataServer
		}
		for i := range o.owned {
			move := &o.owned[i].Spec.Move
			target := move.Target.DataServerRef.Name
			switch {
			case move.Step == internalv1.MoveLeaving:
				o.reports("fs-2", move.ID, internalv1.MoveStateLeft, 0, "")
			case target == "fs-1":
				o.noRoom("fs-1", move.ID, 1e9)
				tried[o.owned[i].Name]++
			case target == "fs-0":
				o.reports("fs-0", move.ID, internalv1.MoveStatePlaced, 0, "")
			}
			for _, dataServer := range o.dataServers {
				for j := range dataServer.Status.Moves {
					if dataServer.Status.Moves[j].ID == move.ID {
						dataServer.Status.Moves[j].Sequence = move.Sequence
					}
				}
			}
		}
		plan := planMoves(o)
		for _, write := range plan.writes {
			at := slices.IndexFunc(o.owned, func(d internalv1.ShareDirectory) bool { return d.Name == write.after.Name })
			o.owned[at] = *write.after
		}
		o.now = o.now.Add(time.Second)
	}
	for _, d := range o.owned {
		if d.Spec.DataServerRef.Name != "fs-0" || d.Spec.Move.ID != "" || tried[d.Name] > 1 {
			t.Errorf("%s is on %s, move %+v, tried %d times", d.Spec.Path, d.Spec.DataServerRef.Name, d.Spec.Move, tried[d.Name])
		}
	}
}

// A directory moved, and its new owner ended. Whoever was led there waits until it serves again, and would meet the next freeze at once.
func TestADirectoryIsNotFrozenSoonAfterItsOwnerServesAgain(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }
	for name, tc := range map[string]struct {
		moved, ended *metav1.Time
		away         *int64
		freezes      bool
	}{
		"it has not moved":              {ended: ago(20 * time.Second), away: ptr.To(int64(15000)), freezes: true},
		"the owner did not end":         {moved: ago(40 * time.Second), freezes: true},
		"it ended before":               {moved: ago(40 * time.Second), ended: ago(90 * time.Second), away: ptr.To(int64(1000)), freezes: true},
		"it has served for long":        {moved: ago(90 * time.Second), ended: ago(80 * time.Second), away: ptr.To(int64(24000)), freezes: true},
		"it serves since a few seconds": {moved: ago(40 * time.Second), ended: ago(35 * time.Second), away: ptr.To(int64(24000))},
		"the status is not written yet": {moved: ago(40 * time.Second), ended: ago(35 * time.Second)},
		"it has moved a moment ago":     {moved: ago(5 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			directory := copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveCopying, 0)
			directory.Spec.MovedTime, directory.Spec.Move.StepTime = tc.moved, ago(6*time.Second)
			o := onVolumes(directory).reports("fs-2", "move-a", internalv1.MoveStateCaughtUp, 0, "")
			o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{
				{Name: "fs-2", LastEnd: v1alpha1.ServerEnd{EndTime: ago(time.Second)}},
				{Name: "fs-0", LastEnd: v1alpha1.ServerEnd{EndTime: tc.ended, ServedAfterMilliseconds: tc.away}},
			}
			if _, outcome := o.next(directory, true, false); (outcome == moving.Step) != tc.freezes {
				t.Errorf("outcome %d, freezes: %t", outcome, tc.freezes)
			}
		})
	}
}

// The objects of a move are lost, and its source keeps the directory frozen for a target that it does not reach.
func TestDirectoriesThatStayFrozenAreNamed(t *testing.T) {
	o := onVolumes(owned("s", "a", "fs-0"))
	if texts := o.frozenDirectories(); len(texts) != 0 {
		t.Errorf("%q", texts)
	}
	o.reports("fs-2", "move-b", internalv1.MoveStateFrozen, 1, "").reports("fs-1", "move-c", internalv1.MoveStateOrphaned, 0, "c of share s is frozen")
	d := decision{frozen: o.frozenDirectories()}
	condition := serversCondition(d, []serverReport{{status: v1alpha1.FileServerServerStatus{Name: "fs-1", State: v1alpha1.ServerServing}}}, "")
	if condition.Reason != v1alpha1.ReasonDirectoriesFrozen || condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "; fs-1: c of share s is frozen. It ends by itself") {
		t.Errorf("%+v", condition)
	}
}

func TestDataServersGetTheirPartOfACopy(t *testing.T) {
	o := onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveFreezing, 2), owned("s", "b", "fs-0"))
	o.fileServer.Spec.Moves = v1alpha1.Moves{MegabytesPerSecond: 7}
	tasks := o.moveTasks(nil)
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
	after := o.owned[0].DeepCopy()
	after.Spec.Move.Step, after.Spec.Move.Sequence = internalv1.MovePlacing, 4
	if task := o.moveTasks(map[*internalv1.ShareDirectory]*internalv1.ShareDirectory{&o.owned[0]: after})["fs-2"][0]; task.Step != internalv1.MovePlacing || task.Sequence != 4 {
		t.Errorf("what was just written is missing: %+v", task)
	}
}
