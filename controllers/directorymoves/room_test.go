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
)

// noRoom lets a target refuse a directory for which its volume has too little room.
func (v *View) noRoom(server, id string, bytes int64) *View {
	v.reports(server, id, internalv1.MoveStateRefused, 0, "the target's volume has 1 MB free, and 4 MB are needed")
	dataServer := v.DataServers[server]
	report := &dataServer.Status.Moves[len(dataServer.Status.Moves)-1]
	report.Reason, report.Bytes, report.Files = internalv1.MoveNoRoom, ptr.To(bytes), ptr.To(int64(1))
	return v
}

// free gives a data server one volume of a hundred gigabytes.
func (v *View) free(server string, bytes int64) *View {
	const total = 100e9
	dataServer := v.DataServers[server]
	usage := internalv1.VolumeUsage{Index: ptr.To(int32(0)), TotalBytes: ptr.To(int64(total)), UsedBytes: ptr.To(total - bytes), FreeBytes: &bytes}
	if bytes < 5e9 {
		usage.Fill = v1alpha1.FillAbove95
	}
	dataServer.Status.Volumes = []internalv1.VolumeUsage{usage}
	v.DataServers[server] = dataServer
	return v
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
		v          *View
		want       []string
		stuck      []string
		unexpected string
	}{
		"another has room": {
			v:     onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			want:  []string{"s/a to fs-0, refused by fs-1"},
			stuck: []string{"a of share s goes to fs-0, because fs-1 has no room for it"},
		},
		"another that does not say how much it has is asked": {
			v: onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte), want: []string{"s/a to fs-0, refused by fs-1"},
			stuck: []string{"goes to fs-0"},
		},
		"no other has": {
			v: onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-1", gigabyte).free("fs-0", 8*gigabyte),
			stuck: []string{
				"a of share s: the target's volume has 1 MB free, and 4 MB are needed; no other data server has room for it, fs-0 lacks least, 4000 MB",
				"raise spec.storage.volumes.size, delete data there, or add a data server (spec.replicas)",
			},
		},
		"the other has refused it a minute ago": {
			v:     onVolumes(atFull("fs-0")).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			stuck: []string{"no other data server has room for it"},
		},
		"the other had refused it, and that is long ago": {
			v:     onVolumes(redirected(atFull(), time.Hour, "fs-0")).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			want:  []string{"s/a to fs-0, refused by fs-1"},
			stuck: []string{"goes to fs-0"},
		},
		"the other takes one at the moment": {
			v: onVolumes(atFull(), copied(owned("s", "b", "fs-2"), "fs-2", "fs-0", internalv1.MoveCopying, 0)).leave("fs-2").
				noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte),
			stuck: []string{"a of share s goes to fs-0 in its turn, because fs-1 has no room for it"},
		},
		"it is refused for something else": {
			v:          onVolumes(atFull()).leave("fs-2").reports("fs-1", "move-a", internalv1.MoveStateRefused, 0, "the target has a directory of that name").free("fs-0", 50*gigabyte),
			stuck:      []string{"the target has a directory of that name"},
			unexpected: "has room",
		},
		"moves are suspended": {
			v: func() *View {
				v := onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte)
				v.FileServer.Spec.Moves.Execution = v1alpha1.ExecutionSuspended
				return v
			}(),
			stuck: []string{"a of share s goes to fs-0 in its turn"},
		},
		"its share is paused": {
			v: func() *View {
				v := onVolumes(atFull()).leave("fs-2").noRoom("fs-1", "move-a", 10*gigabyte).free("fs-0", 50*gigabyte)
				v.Shares[0].Paused = true
				return v
			}(),
			stuck: []string{"a of share s goes to fs-0 in its turn"},
		},
		"a target that is nearly full is the last to be chosen": {
			v:    onVolumes(owned("s", "a", "fs-2"), owned("s", "b", "fs-1")).leave("fs-2").free("fs-1", 50*gigabyte).free("fs-0", gigabyte),
			want: []string{"s/a to fs-1"},
		},
		"but it is chosen if there is no other": {
			v:    onVolumes(owned("s", "a", "fs-2")).leave("fs-2", "fs-1").free("fs-0", gigabyte),
			want: []string{"s/a to fs-0"},
		},
		"one that was given another target goes on there": {
			v:     onVolumes(redirected(copied(owned("s", "a", "fs-2"), "fs-2", "fs-0", internalv1.MoveCopying, 0), time.Minute, "fs-1")).leave("fs-2"),
			stuck: []string{"a of share s goes to fs-0, because fs-1 has no room for it"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := tc.v.Plan()
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
			text := plan.DescribeStuck()
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
	v := onVolumes(copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveCopying, 0)).noRoom("fs-2", "move-a", 1e9).free("fs-1", 50e9)
	v.FileServer.Annotations = map[string]string{v1alpha1.MovesAnnotation: `[{"share":"s","path":"a","to":"fs-2"}]`}
	plan := v.Plan()
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
	v := onVolumes(directories...).leave("fs-2")
	tried := map[string]int{}
	for range 400 {
		for server, dataServer := range v.DataServers {
			dataServer.Status.Moves = nil
			v.DataServers[server] = dataServer
		}
		for i := range v.Directories {
			move := &v.Directories[i].Spec.Move
			target := move.Target.DataServerRef.Name
			switch {
			case move.Step == internalv1.MoveLeaving:
				v.reports("fs-2", move.ID, internalv1.MoveStateLeft, 0, "")
			case target == "fs-1":
				v.noRoom("fs-1", move.ID, 1e9)
				tried[v.Directories[i].Name]++
			case target == "fs-0":
				v.reports("fs-0", move.ID, internalv1.MoveStatePlaced, 0, "")
			}
			for _, dataServer := range v.DataServers {
				for j := range dataServer.Status.Moves {
					if dataServer.Status.Moves[j].ID == move.ID {
						dataServer.Status.Moves[j].Sequence = move.Sequence
					}
				}
			}
		}
		plan := v.Plan()
		for _, write := range plan.writes {
			at := slices.IndexFunc(v.Directories, func(d internalv1.ShareDirectory) bool { return d.Name == write.after.Name })
			v.Directories[at] = *write.after
		}
		v.Now = v.Now.Add(time.Second)
	}
	for _, d := range v.Directories {
		if d.Spec.DataServerRef.Name != "fs-0" || d.Spec.Move.ID != "" || tried[d.Name] > 1 {
			t.Errorf("%s is on %s, move %+v, tried %d times", d.Spec.Path, d.Spec.DataServerRef.Name, d.Spec.Move, tried[d.Name])
		}
	}
}
