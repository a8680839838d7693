package kubeapi

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/fill"
)

// usageSteps is in how many steps the use of a volume is reported.
const usageSteps = 64

// coarse rounds the use up to a step of 1/64 of the size. It keeps what was reported
// before while the real use is in that step or the upper quarter of the one below, so that
// writes and deletes around a border do not change the status each time.
func coarse(real, reported fill.Amount) fill.Amount {
	step := real.Total / usageSteps
	if step == 0 {
		return real
	}
	rounded := fill.Amount{Total: real.Total}
	if reported.Total == real.Total && reported.Used%step == 0 && real.Used <= reported.Used && real.Used > reported.Used-step-step/4 {
		rounded.Used = reported.Used
	} else {
		rounded.Used = min((real.Used+step-1)/step*step, real.Total)
	}
	// What clients can have in all changes a little with what the file system keeps for itself.
	rounded.Free = max(0, real.Free-(rounded.Used-real.Used))
	if difference := rounded.Free - reported.Free; rounded.Used == reported.Used && rounded.Free > 0 && max(difference, -difference) < step {
		rounded.Free = reported.Free
	}
	return rounded
}

// levels are those of the API, in order.
var levels = []v1alpha1.VolumeFill{
	fill.Roomy: "", fill.Above80: v1alpha1.FillAbove80, fill.Above90: v1alpha1.FillAbove90, fill.Above95: v1alpha1.FillAbove95, fill.Full: v1alpha1.FillFull,
}

// reportUsage is the report of what volumes have, with the earlier one.
func reportUsage(earlier []internalv1.VolumeUsage, seen []backend.Usage, now time.Time) []internalv1.VolumeUsage {
	before := map[int32]internalv1.VolumeUsage{}
	for _, volume := range earlier {
		if volume.Index != nil {
			before[*volume.Index] = volume
		}
	}
	volumes := make([]internalv1.VolumeUsage, 0, len(seen))
	for i, real := range seen {
		volumes = append(volumes, reportVolume(before[int32(i)], int32(i), real, now))
	}
	return volumes
}

func reportVolume(before internalv1.VolumeUsage, index int32, real backend.Usage, now time.Time) internalv1.VolumeUsage {
	rounded := coarse(real.Bytes, fill.Amount{
		Total: ptr.Deref(before.TotalBytes, 0), Used: ptr.Deref(before.UsedBytes, 0), Free: ptr.Deref(before.FreeBytes, 0),
	})
	volume := internalv1.VolumeUsage{
		Index: &index, TotalBytes: &rounded.Total, UsedBytes: &rounded.Used, FreeBytes: &rounded.Free,
		Fill:         levels[fill.LevelOf(real.Usage, fill.Level(before.Fill.Rank()))],
		FileSystemID: real.FileSystemID, SharedFileSystem: truncate(real.Shared, maxSharedFileSystem),
	}
	if real.Files.Total > 0 {
		files := coarse(steadyTotal(real.Files, ptr.Deref(before.TotalFiles, 0)), fill.Amount{
			Total: ptr.Deref(before.TotalFiles, 0), Used: ptr.Deref(before.UsedFiles, 0),
		})
		volume.TotalFiles, volume.UsedFiles = &files.Total, &files.Used
	}
	var reported time.Time
	if before.FullTime != nil {
		reported = before.FullTime.Time
	}
	if at := fill.Steady(reported, now, real.FullAt); !at.IsZero() {
		volume.FullTime = &metav1.Time{Time: at.Truncate(time.Minute)}
	}
	return volume
}

// steadyTotal keeps the number of inodes that was reported while it is about the same: XFS computes it from what is free.
func steadyTotal(files fill.Amount, reported int64) fill.Amount {
	if difference := files.Total - reported; max(difference, -difference) < reported/16 {
		files.Total = reported
		files.Used = min(files.Used, reported)
	}
	return files
}
