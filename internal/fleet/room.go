package fleet

import (
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// Room is what a volume has for new directories. Declared directories, claims and clients' mkdir all ask here.
type Room struct {
	TotalBytes, UsedBytes int64
	// Tight means that 95 % are used, of bytes or inodes: new directories go elsewhere, if they can. The data server judges it, with room between
	// the level at which a volume becomes tight and the one at which it no longer is, so that new directories do not go to and fro.
	Tight bool
	// Full means that clients can't write. Not even a directory can be made.
	Full bool
}

// tightPercent is for reports of data servers that did not judge yet (earlier versions).
const tightPercent = 95

// RoomOf is the room on a volume, as its data server reported it. What is not known counts as room.
func RoomOf(server *internalv1.DataServer, volume int32) Room {
	for i := range server.Status.Volumes {
		usage := &server.Status.Volumes[i]
		if usage.Index == nil || *usage.Index != volume || usage.TotalBytes == nil || usage.UsedBytes == nil {
			continue
		}
		room := Room{TotalBytes: *usage.TotalBytes, UsedBytes: *usage.UsedBytes}
		room.Tight, room.Full = usage.Fill.Rank() >= v1alpha1.FillAbove95.Rank(), usage.Fill == v1alpha1.FillFull
		if usage.FreeBytes == nil && room.TotalBytes > 0 {
			room.Tight = float64(room.UsedBytes) > float64(room.TotalBytes)*tightPercent/100
		}
		return room
	}
	return Room{}
}

// IsTight tells whether all volumes of a data server have little room.
func IsTight(server *internalv1.DataServer) bool {
	for i := range server.Status.Volumes {
		if index := server.Status.Volumes[i].Index; index != nil && !RoomOf(server, *index).Tight {
			return false
		}
	}
	return len(server.Status.Volumes) > 0
}

// FillOf is how full the fullest of a data server's volumes is.
func FillOf(server *internalv1.DataServer) (fill v1alpha1.VolumeFill) {
	for i := range server.Status.Volumes {
		if of := server.Status.Volumes[i].Fill; of.Rank() > fill.Rank() {
			fill = of
		}
	}
	return fill
}

// percents are those of the levels.
var percents = map[v1alpha1.VolumeFill]string{v1alpha1.FillAbove80: "80", v1alpha1.FillAbove90: "90", v1alpha1.FillAbove95: "95"}

// DescribeFill says how full a volume is, and when it will be full: "more than 90 % full of inodes, and full about 2026-11-25 21:40 UTC at
// the present rate". "" below 80 %. It is about levels, so it changes rarely.
func DescribeFill(usage *internalv1.VolumeUsage) string {
	of := ""
	if used, total := ptr.Deref(usage.UsedFiles, 0), ptr.Deref(usage.TotalFiles, 0); total > 0 &&
		float64(used)*float64(ptr.Deref(usage.TotalBytes, 0)) > float64(ptr.Deref(usage.UsedBytes, 0))*float64(total) {
		of = " of inodes"
	}
	switch {
	case usage.Fill == "":
		return ""
	case usage.Fill == v1alpha1.FillFull:
		return "full" + of
	case percents[usage.Fill] == "":
		return string(usage.Fill)
	}
	words := "more than " + percents[usage.Fill] + " % full" + of
	if usage.FullTime != nil {
		words += ", and full about " + usage.FullTime.UTC().Format("2006-01-02 15:04") + " UTC at the present rate"
	}
	return words
}

// Space is what volumes have together.
type Space struct {
	TotalBytes, UsedBytes, FreeBytes int64
	// Known is false if no volume was reported.
	Known bool
}

// Sum adds up the volumes of data servers. What is on one file system has its space together, so that counts once, whichever data servers the volumes
// belong to.
func Sum(servers ...*internalv1.DataServer) (sum Space) {
	seen := map[string]bool{}
	for _, server := range servers {
		for i := range server.Status.Volumes {
			usage := &server.Status.Volumes[i]
			if usage.TotalBytes == nil || usage.UsedBytes == nil {
				continue
			}
			if id := usage.FileSystemID; id != "" {
				if seen[id] {
					continue
				}
				seen[id] = true
			}
			sum.Known = true
			sum.TotalBytes += *usage.TotalBytes
			sum.UsedBytes += *usage.UsedBytes
			sum.FreeBytes += ptr.Deref(usage.FreeBytes, max(0, *usage.TotalBytes-*usage.UsedBytes))
		}
	}
	return sum
}
