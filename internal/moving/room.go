package moving

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// A target has too little room for a directory. The directory then goes to a data server that has. What is known of a data server's room is its last report;
// the target itself measures.

const (
	// SpareOfVolume is the part of the target's volume that a copy leaves free: 1/SpareOfVolume.
	SpareOfVolume = 50
	// refusalCounts is how long a data server that had no room for a directory is not asked again: each is asked once in that time.
	refusalCounts = 5 * time.Minute
	// mostRefusals is the schema's limit.
	mostRefusals = 16
	// usageSteps: reports have free space in steps of 1/usageSteps of the volume, rounded down.
	usageSteps = 64
)

// Room is what a directory needs.
type Room struct{ Bytes, Files int64 }

// RoomIn is the room that a target needs which refuses a directory for lack of it; false: it does not refuse it for that.
func RoomIn(report *internalv1.MoveReport) (Room, bool) {
	if report == nil || report.State != internalv1.MoveStateRefused || report.Reason != internalv1.MoveNoRoom || report.Bytes == nil {
		return Room{}, false
	}
	return Room{*report.Bytes, ptr.Deref(report.Files, 0)}, true
}

// Emptiest is the volume of a data server with the most space; nil if it reports none.
func Emptiest(server *internalv1.DataServer) (best *internalv1.VolumeUsage) {
	for i := range server.Status.Volumes {
		volume := &server.Status.Volumes[i]
		if volume.Index != nil && (best == nil || free(volume) > free(best)) {
			best = volume
		}
	}
	return best
}

func free(volume *internalv1.VolumeUsage) int64 {
	return ptr.Deref(volume.FreeBytes, ptr.Deref(volume.TotalBytes, 0)-ptr.Deref(volume.UsedBytes, 0))
}

// LacksIn is how many bytes a data server has too few for a directory, as it reports; 0 if it may have enough, so that it can be asked. lacksFiles: it has
// too few inodes.
func (r Room) LacksIn(server *internalv1.DataServer) (bytes int64, lacksFiles bool) {
	volume := Emptiest(server)
	if volume == nil || volume.TotalBytes == nil {
		return 0, false
	}
	files := ptr.Deref(volume.TotalFiles, 0)
	lacksFiles = files > 0 && r.Files > files-ptr.Deref(volume.UsedFiles, 0)+files/usageSteps
	if bytes = r.Bytes + *volume.TotalBytes/SpareOfVolume - free(volume); bytes < *volume.TotalBytes/usageSteps {
		bytes = 0
	}
	return bytes, lacksFiles
}

// MayAsk tells whether a data server may be the next target of a move: it is not the target, and has not refused it lately.
func MayAsk(move *internalv1.DirectoryMove, server string, now time.Time) bool {
	return server != move.Target.DataServerRef.Name && !slices.ContainsFunc(move.Refusals, func(r internalv1.MoveRefusal) bool {
		return r.DataServerRef.Name == server && counts(r, now)
	})
}

func counts(refusal internalv1.MoveRefusal, now time.Time) bool {
	return refusal.RefusedTime != nil && now.Sub(refusal.RefusedTime.Time) < refusalCounts
}

// RefusalsWith are the refusals of a move that count, with that of its target, the newest last.
func RefusalsWith(move *internalv1.DirectoryMove, now time.Time) []internalv1.MoveRefusal {
	all := slices.DeleteFunc(slices.Clone(move.Refusals), func(r internalv1.MoveRefusal) bool {
		return !counts(r, now) || r.DataServerRef == move.Target.DataServerRef
	})
	all = append(all, internalv1.MoveRefusal{DataServerRef: move.Target.DataServerRef, RefusedTime: &metav1.Time{Time: now}})
	return all[max(0, len(all)-mostRefusals):]
}
