package fleet

import (
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

func volume(index int32, total, used int64, change ...func(*internalv1.VolumeUsage)) internalv1.VolumeUsage {
	free := total - used
	usage := internalv1.VolumeUsage{Index: &index, TotalBytes: &total, UsedBytes: &used, FreeBytes: &free}
	for _, c := range change {
		c(&usage)
	}
	return usage
}

func filled(fill v1alpha1.VolumeFill) func(*internalv1.VolumeUsage) {
	return func(u *internalv1.VolumeUsage) { u.Fill = fill }
}

func onFileSystem(id string) func(*internalv1.VolumeUsage) {
	return func(u *internalv1.VolumeUsage) { u.FileSystemID = id }
}

func earlierVersion(u *internalv1.VolumeUsage) { u.FreeBytes = nil }

func TestTheRoomOfVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		volumes []internalv1.VolumeUsage
		want    Room
	}{
		"not reported":                     {nil, Room{}},
		"only others are":                  {[]internalv1.VolumeUsage{volume(0, 100, 99, filled(v1alpha1.FillFull))}, Room{}},
		"room":                             {[]internalv1.VolumeUsage{volume(1, 100, 50)}, Room{TotalBytes: 100, UsedBytes: 50}},
		"above 90 %":                       {[]internalv1.VolumeUsage{volume(1, 100, 91, filled(v1alpha1.FillAbove90))}, Room{TotalBytes: 100, UsedBytes: 91}},
		"above 95 %":                       {[]internalv1.VolumeUsage{volume(1, 100, 96, filled(v1alpha1.FillAbove95))}, Room{TotalBytes: 100, UsedBytes: 96, Tight: true}},
		"was above 95 %":                   {[]internalv1.VolumeUsage{volume(1, 100, 94, filled(v1alpha1.FillAbove95))}, Room{TotalBytes: 100, UsedBytes: 94, Tight: true}},
		"not yet judged above 95 %":        {[]internalv1.VolumeUsage{volume(1, 100, 96)}, Room{TotalBytes: 100, UsedBytes: 96}},
		"full":                             {[]internalv1.VolumeUsage{volume(1, 100, 100, filled(v1alpha1.FillFull))}, Room{TotalBytes: 100, UsedBytes: 100, Tight: true, Full: true}},
		"inodes are full":                  {[]internalv1.VolumeUsage{volume(1, 100, 1, filled(v1alpha1.FillFull))}, Room{TotalBytes: 100, UsedBytes: 1, Tight: true, Full: true}},
		"a level that is not known here":   {[]internalv1.VolumeUsage{volume(1, 100, 50, filled("Overflowing"))}, Room{TotalBytes: 100, UsedBytes: 50}},
		"earlier version":                  {[]internalv1.VolumeUsage{volume(1, 100, 96, earlierVersion)}, Room{TotalBytes: 100, UsedBytes: 96, Tight: true}},
		"earlier version, room":            {[]internalv1.VolumeUsage{volume(1, 100, 95, earlierVersion)}, Room{TotalBytes: 100, UsedBytes: 95}},
		"earlier version, a volume of 0 B": {[]internalv1.VolumeUsage{volume(1, 0, 0, earlierVersion)}, Room{}},
	} {
		server := newServer()
		server.Status.Volumes = tc.volumes
		if got := RoomOf(server, 1); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestFileSystemsCountOnce(t *testing.T) {
	of := func(volumes ...internalv1.VolumeUsage) *internalv1.DataServer {
		server := newServer()
		server.Status.Volumes = volumes
		return server
	}
	for name, tc := range map[string]struct {
		servers []*internalv1.DataServer
		want    Space
	}{
		"no data server":   {nil, Space{}},
		"nothing reported": {[]*internalv1.DataServer{of()}, Space{}},
		"each its own":     {[]*internalv1.DataServer{of(volume(0, 100, 10, onFileSystem("a"))), of(volume(0, 200, 20, onFileSystem("b")))}, Space{300, 30, 270, true}},
		"one disk for two servers": {
			[]*internalv1.DataServer{of(volume(0, 100, 10, onFileSystem("a"))), of(volume(0, 100, 10, onFileSystem("a")))}, Space{100, 10, 90, true},
		},
		"one disk for two volumes": {[]*internalv1.DataServer{of(volume(0, 100, 10, onFileSystem("a")), volume(1, 100, 10, onFileSystem("a")))}, Space{100, 10, 90, true}},
		"unknown file systems":     {[]*internalv1.DataServer{of(volume(0, 100, 10), volume(1, 100, 10))}, Space{200, 20, 180, true}},
		"earlier version":          {[]*internalv1.DataServer{of(volume(0, 100, 10, earlierVersion))}, Space{100, 10, 90, true}},
	} {
		if got := Sum(tc.servers...); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestTheFullestVolumeCounts(t *testing.T) {
	server := newServer()
	server.Status.Volumes = []internalv1.VolumeUsage{volume(0, 1, 1, filled(v1alpha1.FillAbove80)), volume(1, 1, 1, filled(v1alpha1.FillAbove95)), volume(2, 1, 1)}
	if got := FillOf(server); got != v1alpha1.FillAbove95 {
		t.Errorf("%q", got)
	}
}

func TestADataServerIsTightIfAllItsVolumesAre(t *testing.T) {
	tight, roomy := volume(0, 100, 99, filled(v1alpha1.FillAbove95)), volume(1, 100, 50)
	for _, tc := range []struct {
		volumes []internalv1.VolumeUsage
		want    bool
	}{{nil, false}, {[]internalv1.VolumeUsage{tight}, true}, {[]internalv1.VolumeUsage{tight, roomy}, false}} {
		if got := IsTight(&internalv1.DataServer{Status: internalv1.DataServerStatus{Volumes: tc.volumes}}); got != tc.want {
			t.Errorf("%d volumes: %t", len(tc.volumes), got)
		}
	}
}
