package moving

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

func volume(index int32, total, free int64) internalv1.VolumeUsage {
	return internalv1.VolumeUsage{Index: &index, TotalBytes: &total, UsedBytes: ptr.To(total - free), FreeBytes: &free}
}

func TestWhatADataServerLacks(t *testing.T) {
	few := volume(0, 6400, 6400)
	few.TotalFiles, few.UsedFiles = ptr.To(int64(640)), ptr.To(int64(540))
	for name, tc := range map[string]struct {
		volumes []internalv1.VolumeUsage
		need    Room
		bytes   int64
		files   bool
	}{
		"nothing is reported":                       {need: Room{1 << 40, 1 << 40}},
		"it has room":                               {volumes: []internalv1.VolumeUsage{volume(0, 6400, 2000)}, need: Room{1800, 1}},
		"a fiftieth of the volume stays free":       {volumes: []internalv1.VolumeUsage{volume(0, 6400, 2000)}, need: Room{1972, 1}, bytes: 100},
		"it may have up to a step more":             {volumes: []internalv1.VolumeUsage{volume(0, 6400, 2000)}, need: Room{1971, 1}},
		"the volume with the most room counts":      {volumes: []internalv1.VolumeUsage{volume(0, 6400, 100), volume(1, 6400, 3000)}, need: Room{2800, 1}},
		"it lacks inodes":                           {volumes: []internalv1.VolumeUsage{few}, need: Room{10, 111}, files: true},
		"it may have some inodes more than it says": {volumes: []internalv1.VolumeUsage{few}, need: Room{10, 110}},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, files := tc.need.LacksIn(&internalv1.DataServer{Status: internalv1.DataServerStatus{Volumes: tc.volumes}})
			if bytes != tc.bytes || files != tc.files {
				t.Errorf("%d bytes, %t; want %d, %t", bytes, files, tc.bytes, tc.files)
			}
		})
	}
}

// A data server is asked once in some minutes, and what a move keeps of refusals is bounded.
func TestRefusalsCountForSomeTime(t *testing.T) {
	move := internalv1.DirectoryMove{}
	for i := range 40 {
		move.Target.DataServerRef.Name = fmt.Sprintf("fs-%d", i%20)
		move.Refusals = RefusalsWith(&move, start)
	}
	if len(move.Refusals) != mostRefusals || move.Refusals[mostRefusals-1].DataServerRef.Name != "fs-19" {
		t.Fatalf("%+v", move.Refusals)
	}
	for server, want := range map[string]bool{"fs-19": false, "fs-18": false, "fs-30": true} {
		if MayAsk(&move, server, start.Add(refusalCounts-1)) != want {
			t.Errorf("%s: not %t", server, want)
		}
	}
	if MayAsk(&move, "fs-19", start.Add(time.Hour)) || !MayAsk(&move, "fs-18", start.Add(refusalCounts)) {
		t.Error("the target is asked again, or who refused long ago is not")
	}
	if kept := RefusalsWith(&move, start.Add(refusalCounts)); len(kept) != 1 || !kept[0].RefusedTime.Equal(&metav1.Time{Time: start.Add(refusalCounts)}) {
		t.Errorf("%+v", kept)
	}
}
