package benchmark

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

func TestFoldersAreDirectoriesThatAreSpread(t *testing.T) {
	tests := map[string]struct {
		layout   v1alpha1.ShareLayout
		depth    int
		existing []string
		servers  int
		want     []string
	}{
		"an empty share of depth 1":   {depth: 1, servers: 2, want: []string{"train.0", "train.1", "train.2", "train.3"}},
		"depth that is unset means 1": {servers: 1, want: []string{"train.0", "train.1"}},
		"depth 2 with all it needs": {
			depth: 2, servers: 3, existing: []string{"train/0", "train/1", "train/2", "train/3", "train/4", "train/5"},
			want: []string{"train/0", "train/1", "train/2", "train/3", "train/4", "train/5"},
		},
		"more directories than it needs": {
			depth: 2, servers: 1, existing: []string{"train/00", "train/01", "train/02"}, want: []string{"train/00", "train/01", "train/02"},
		},
		"some are missing": {depth: 2, servers: 2, existing: []string{"train/1"}, want: []string{"train/0", "train/1", "train/2", "train/3"}},
		"directories of other people are left alone": {
			depth: 2, servers: 1, existing: []string{"train/cats", "valid/0", "home/me", "train/"}, want: []string{"train/0", "train/1"},
		},
		"numbers are padded as DLIO does": {
			depth: 1, servers: 5, want: []string{
				"train.00", "train.01", "train.02", "train.03", "train.04", "train.05", "train.06", "train.07", "train.08", "train.09",
			},
		},
		"depth 3": {depth: 3, servers: 1, want: []string{"unet3d/train/0", "unet3d/train/1"}},
		"depth 4": {depth: 4, servers: 1, want: []string{"mlperf/unet3d/train/0", "mlperf/unet3d/train/1"}},
		"a Single share": {
			layout: v1alpha1.LayoutSingle, servers: 1, existing: []string{"."}, want: []string{"train/0", "train/1"},
		},
		"no data servers, no folders": {depth: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Folders(tc.layout, tc.depth, tc.existing, tc.servers)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanFillsInWhatTheJobLeavesUnset(t *testing.T) {
	size := resource.MustParse("1466006")
	tests := map[string]struct {
		spec v1alpha1.MLPerfStorageJobSpec
		want Plan
	}{
		"everything is unset": {
			v1alpha1.MLPerfStorageJobSpec{Accelerator: v1alpha1.Accelerator{Type: v1alpha1.AcceleratorA100, Count: 2}},
			Plan{
				Job: "job", Clients: 1, AcceleratorType: v1alpha1.AcceleratorA100, Accelerators: 2, ComputeMillis: 636,
				Samples: 84, SampleSize: NominalSampleSize, Folders: []string{"f"}, Epochs: 5, ReadThreads: 4, Nconnect: 16,
			},
		},
		"everything is set": {
			v1alpha1.MLPerfStorageJobSpec{
				Accelerator: v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: 4}, Clients: 2, Epochs: 3, ReadThreads: 8,
				Mount: &v1alpha1.BenchmarkMount{Nconnect: 1}, Dataset: &v1alpha1.Dataset{Samples: 1000, SampleSize: &size},
			},
			Plan{
				Job: "job", Clients: 2, AcceleratorType: v1alpha1.AcceleratorH100, Accelerators: 4, ComputeMillis: 323,
				Samples: 1000, SampleSize: 1466006, Folders: []string{"f"}, Epochs: 3, ReadThreads: 8, Nconnect: 1,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := builders.Defaulted(&v1alpha1.MLPerfStorageJob{Spec: tc.spec})
			got, err := NewPlan("job", job.Spec, []string{"f"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			text, err := got.Text()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ParsePlan([]byte(text)); err != nil || !cmp.Equal(got, again) {
				t.Errorf("read back: %+v, %v", again, err)
			}
		})
	}
}

func TestPlanThatCannotRunIsRefused(t *testing.T) {
	good := Plan{
		Clients: 2, Accelerators: 4, Samples: 28, SampleSize: 4096, Epochs: 1, ReadThreads: 1,
		Folders: []string{"train/0"}, AcceleratorType: v1alpha1.AcceleratorH100,
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*Plan)
		want   string
	}{
		"accelerators that can't be shared out": {func(p *Plan) { p.Accelerators = 3 }, "multiple of clients"},
		"no clients":                            {func(p *Plan) { p.Clients = 0 }, "multiple of clients"},
		"less than a batch":                     {func(p *Plan) { p.Samples = 27 }, "need at least 28"},
		"no folders":                            {func(p *Plan) { p.Folders = nil }, "no data servers"},
		"a folder outside the share":            {func(p *Plan) { p.Folders = []string{"../etc"} }, "must be a relative path"},
		"a folder at the root of a node":        {func(p *Plan) { p.Folders = []string{"/etc"} }, "must be a relative path"},
		"no epochs":                             {func(p *Plan) { p.Epochs = 0 }, "must be positive"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := good
			tc.change(&p)
			if err := p.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"job":"x","clients":2,"accelerators":2,"samples":84,"sampleSize":1466006,"folders":["train/0"],"epochs":3,"readThreads":4}`))
	f.Add([]byte(`{"clients":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePlan(text)
		if err != nil || p.Samples > 1000 {
			return
		}
		if p.Steps() < 1 || p.AcceleratorsPerClient() < 1 {
			t.Errorf("a plan without work is accepted: %+v", p)
		}
		for i := range p.Samples {
			if file := p.Dataset().File(i); strings.HasPrefix(file, "/") || strings.HasPrefix(file, "..") {
				t.Errorf("file %q is outside of the share", file)
			}
		}
	})
}
