package kubeapi

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/fill"
)

func usage(used, free int64) backend.Usage {
	return backend.Usage{Usage: fill.Usage{Bytes: fill.Amount{Total: 6400, Used: used, Free: free}}}
}

func TestTheStatusSaysHowFullVolumesAre(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var volumes []internalv1.VolumeUsage
	for _, step := range []struct {
		what             string
		seen             backend.Usage
		used, free       int64
		fill             v1alpha1.VolumeFill
		full             time.Duration // From now; 0 for no forecast.
		files, usedFiles int64
	}{
		{"room", usage(100, 6300), 100, 6300, "", 0, 0, 0},
		{"a little more", usage(150, 6250), 200, 6200, "", 0, 0, 0},
		{"80 %", usage(5120, 1280), 5200, 1200, v1alpha1.FillAbove80, 0, 0, 0},
		{"a forecast", backend.Usage{Usage: usage(5120, 1280).Usage, FullAt: now.Add(3 * time.Hour)}, 5200, 1200, v1alpha1.FillAbove80, 3 * time.Hour, 0, 0},
		{"about the same", backend.Usage{Usage: usage(5120, 1280).Usage, FullAt: now.Add(200 * time.Minute)}, 5200, 1200, v1alpha1.FillAbove80, 3 * time.Hour, 0, 0},
		{"sooner", backend.Usage{Usage: usage(5120, 1280).Usage, FullAt: now.Add(time.Hour)}, 5200, 1200, v1alpha1.FillAbove80, time.Hour, 0, 0},
		{"just below 80 %", usage(5056, 1344), 5100, 1300, v1alpha1.FillAbove80, 0, 0, 0},
		{"full", usage(6390, 0), 6400, 0, v1alpha1.FillFull, 0, 0, 0},
		{"root's part is free", usage(6000, 0), 6000, 0, v1alpha1.FillFull, 0, 0, 0},
		{"half", usage(3200, 3200), 3200, 3200, "", 0, 0, 0},
		{
			"inodes",
			backend.Usage{Usage: fill.Usage{Bytes: fill.Amount{Total: 6400, Used: 3200, Free: 3200}, Files: fill.Amount{Total: 6400, Used: 5850, Free: 550}}},
			3200, 3200, v1alpha1.FillAbove90, 0, 6400, 5900,
		},
		{
			"a number of inodes that follows free space",
			backend.Usage{Usage: fill.Usage{
				Bytes: fill.Amount{Total: 6400, Used: 3200, Free: 3200}, Files: fill.Amount{Total: 6300, Used: 5880, Free: 420},
			}},
			3200, 3200, v1alpha1.FillAbove90, 0, 6400, 5900,
		},
		{"a volume of 0 bytes", backend.Usage{}, 0, 0, "", 0, 0, 0},
	} {
		volumes = reportUsage(volumes, []backend.Usage{step.seen}, now)
		got := volumes[0]
		if *got.UsedBytes != step.used || *got.FreeBytes != step.free || got.Fill != step.fill {
			t.Errorf("%s: %d used, %d free, %q; want %d, %d, %q", step.what, *got.UsedBytes, *got.FreeBytes, got.Fill, step.used, step.free, step.fill)
		}
		if (got.FullTime == nil) != (step.full == 0) || got.FullTime != nil && !got.FullTime.Equal(&metav1.Time{Time: now.Add(step.full)}) {
			t.Errorf("%s: full at %v", step.what, got.FullTime)
		}
		if (got.TotalFiles == nil) != (step.files == 0) || got.TotalFiles != nil && (*got.TotalFiles != step.files || *got.UsedFiles != step.usedFiles) {
			t.Errorf("%s: %+v inodes", step.what, got)
		}
		if again := reportUsage(volumes, []backend.Usage{step.seen}, now.Add(time.Second)); !equality.Semantic.DeepEqual(again, volumes) {
			t.Errorf("%s: the same a second later is another report", step.what)
		}
	}
}

// While a client writes and removes a file again and again, and while a volume fills steadily, the status is written rarely.
func TestTheStatusIsWrittenRarely(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var volumes []internalv1.VolumeUsage
	var history fill.History
	writes := 0
	const minutes = 600
	for minute := range int64(minutes) { // From 50 to 100 % in ten hours.
		at, used := now.Add(time.Duration(minute)*time.Minute), int64(500_000)+minute*500_000/minutes+minute%3*500
		seen := backend.Usage{Usage: fill.Usage{Bytes: fill.Amount{Total: 1_000_000, Used: used, Free: 1_000_000 - used}}}
		history.Add(at, seen.Usage)
		seen.FullAt = history.FullAt()
		if next := reportUsage(volumes, []backend.Usage{seen}, at); !equality.Semantic.DeepEqual(next, volumes) {
			volumes, writes = next, writes+1
		}
	}
	if writes > minutes/8 {
		t.Errorf("%d writes in %d minutes", writes, minutes)
	}
	t.Logf("FIGURE %d writes of a status while a volume fills in %d minutes", writes, minutes)
}
