package benchmark

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func testRun() (Plan, []ClientReport, []ServerBytes) {
	plan := Plan{
		Job: "unet3d", Clients: 2, AcceleratorType: v1alpha1.AcceleratorH100, Accelerators: 4, ComputeMillis: 323,
		Samples: 84, SampleSize: 1466006, Folders: []string{"train/0", "train/1"}, Epochs: 2, ReadThreads: 4, Nconnect: 16,
	}
	rank := func(total time.Duration) RankEpoch {
		return RankEpoch{EpochTimes: EpochTimes{Steps: 3, Compute: plan.Compute(), First: 400 * time.Millisecond, Total: total}, Bytes: 30e6}
	}
	epochs := []ClientEpoch{
		{Ranks: []RankEpoch{rank(1100 * time.Millisecond), rank(1100 * time.Millisecond)}},
		{Ranks: []RankEpoch{rank(1200 * time.Millisecond), rank(1200 * time.Millisecond)}},
	}
	return plan, []ClientReport{
		{Name: "unet3d-run-0-x", NodeName: "node-a", MemoryBytes: 8 << 30, CPU: &CPUUse{LeftPercent: 63.2}, Epochs: epochs},
		{Name: "unet3d-run-1-y", NodeName: "node-b", MemoryBytes: 8 << 30, Epochs: epochs},
	}, []ServerBytes{{"fs-1", 130e6}, {"fs-0", 110e6}}
}

func TestResultSumsUpAsDLIODoes(t *testing.T) {
	r := NewResult(testRun())
	// AU: 2 * 0.323 / (1.1 - 0.4) and / (1.2 - 0.4); samples/s: 4 * 21 / 1.1 and / 1.2; bytes: 240e6 in 2.3 s.
	if r.AUPercent != "86.52" || r.SamplesPerSecond != "73.18" || *r.BytesPerSecond != 104347826 || *r.BytesRead != 240e6 {
		t.Errorf("AU %s, samples/s %s, %d B/s, %d B", r.AUPercent, r.SamplesPerSecond, *r.BytesPerSecond, *r.BytesRead)
	}
	if r.Verdict != v1alpha1.VerdictFailed || r.Accelerators != 4 {
		t.Errorf("verdict %s for %d accelerators", r.Verdict, r.Accelerators)
	}
	if *r.PerClient[0].BytesPerSecond != 52173913 || r.PerServer[0].Name != "fs-0" || *r.PerServer[1].BytesPerSecond != 56521739 {
		t.Errorf("clients %+v, servers %+v", r.PerClient, r.PerServer)
	}
}

func TestTable(t *testing.T) {
	plan, reports, servers := testRun()
	starved := slices.Clone(reports)
	starved[1].CPU = &CPUUse{LeftPercent: 0.6, ThrottledPercent: 12}
	starved[1].Epochs = slices.Clone(starved[1].Epochs)
	starved[1].Epochs[0].Lost = 200 * time.Millisecond
	tests := map[string]struct {
		reports []ClientReport
		servers []ServerBytes
		golden  string
	}{
		"with all counters":                  {reports, servers, "testdata/table.txt"},
		"with counters that can't be read":   {reports, nil, "testdata/table-no-servers.txt"},
		"with a server that was not read of": {reports, []ServerBytes{{"fs-0", 0}, {"fs-1", 5e6}}, "testdata/table-idle-server.txt"},
		"with a client that had no CPU":      {starved, servers, "testdata/table-starved-client.txt"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Table(plan, NewResult(plan, tc.reports, tc.servers))
			if *update {
				if err := os.WriteFile(tc.golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(tc.golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-golden +got):\n%s", diff)
			}
		})
	}
}

func TestRulesThatAFullRunKeeps(t *testing.T) {
	plan := Plan{
		Clients: 1, AcceleratorType: v1alpha1.AcceleratorH100, Accelerators: 1, ComputeMillis: 323,
		Samples: 3500, SampleSize: NominalSampleSize, Folders: []string{"f"}, Epochs: 5,
	}
	states := func(p Plan, memory int64) map[string]v1alpha1.RuleState {
		got := map[string]v1alpha1.RuleState{}
		for _, r := range Rules(p, []ClientReport{{MemoryBytes: memory}}) {
			got[r.Name] = r.State
		}
		return got
	}
	always := []string{"server-cache", "runs", "benchmark-code", "checkpoint"}
	for name, state := range states(plan, 64<<30) {
		want := v1alpha1.RuleKept
		for _, broken := range always {
			if name == broken {
				want = v1alpha1.RuleBroken
			}
		}
		if state != want {
			t.Errorf("%s is %s, want %s", name, state, want)
		}
	}
	tests := map[string]struct {
		change func(*Plan)
		memory int64
		rule   string
	}{
		"too much memory":          {func(*Plan) {}, 128 << 30, "dataset-size"},
		"memory that is not known": {func(*Plan) {}, 0, "dataset-size"},
		"too few steps":            {func(p *Plan) { p.Samples = 3493 }, 1, "steps"},
		"small samples":            {func(p *Plan) { p.SampleSize-- }, 1, "sample-size"},
		"few epochs":               {func(p *Plan) { p.Epochs = 1 }, 1, "epochs"},
		"a faster accelerator":     {func(p *Plan) { p.ComputeMillis = 322 }, 1, "compute-time"},
		"samples that are left":    {func(p *Plan) { p.Samples = 3501 }, 1, "whole-dataset"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan
			tc.change(&p)
			if got := states(p, tc.memory)[tc.rule]; got != v1alpha1.RuleBroken {
				t.Errorf("%s is %s, want Broken", tc.rule, got)
			}
		})
	}
}

func TestStateAndStep(t *testing.T) {
	share := func(f Facts) Facts { f.ShareFound, f.ShareReady = true, true; return f }
	done, active, failed := PhaseFacts{Exists: true, Complete: true}, PhaseFacts{Exists: true}, PhaseFacts{Exists: true, Failed: true}
	result := &v1alpha1.BenchmarkResult{}
	tests := map[string]struct {
		facts Facts
		state State
		step  Step
	}{
		"there is no share":                          {Facts{}, StateNoShare, StepWait},
		"the share is not ready":                     {Facts{ShareFound: true}, StateShareNotReady, StepWait},
		"the share is ready":                         {share(Facts{}), StateUnprepared, StepPrepare},
		"the plan is there":                          {share(Facts{Prepared: true}), StateNoDataset, StepGenerate},
		"pods write":                                 {share(Facts{Prepared: true, Generate: active}), StateGeneratingDataset, StepWait},
		"pods have written":                          {share(Facts{Prepared: true, Generate: done}), StateDatasetReady, StepRun},
		"the share went while pods wrote":            {Facts{Prepared: true, Generate: active}, StateGeneratingDataset, StepWait},
		"the share went before the run":              {Facts{Prepared: true, Generate: done}, StateNoShare, StepWait},
		"pods could not write":                       {share(Facts{Prepared: true, Generate: failed}), StateFailed, StepNone},
		"pods run":                                   {share(Facts{Prepared: true, Generate: done, Run: active}), StateRunning, StepWait},
		"pods run and the share is gone":             {Facts{Prepared: true, Generate: done, Run: active}, StateRunning, StepWait},
		"pods have ended and the result is not seen": {share(Facts{Prepared: true, Generate: done, Run: done}), StateCollecting, StepWait},
		"a pod of the run failed":                    {share(Facts{Prepared: true, Generate: done, Run: failed}), StateFailed, StepNone},
		"the clients reported a failure":             {share(Facts{Prepared: true, Generate: done, Run: active, Failure: "x"}), StateFailed, StepNone},
		"there is a result":                          {share(Facts{Prepared: true, Generate: done, Run: done, Result: result}), StateFinished, StepNone},
		"there is a result and everything else went": {Facts{Result: result}, StateFinished, StepNone},

		"suspended from the start, without a share":     {Facts{Suspended: true}, StateSuspended, StepStop},
		"suspended while pods write":                    {share(Facts{Prepared: true, Generate: active, Suspended: true}), StateSuspended, StepStop},
		"suspended with a dataset":                      {share(Facts{Prepared: true, Generate: done, Suspended: true}), StateSuspended, StepStop},
		"suspended while pods run":                      {share(Facts{Prepared: true, Generate: done, Run: active, Suspended: true}), StateSuspended, StepStop},
		"suspended when the pods had ended":             {share(Facts{Prepared: true, Generate: done, Run: done, Suspended: true}), StateCollecting, StepWait},
		"suspended after it failed":                     {share(Facts{Prepared: true, Generate: failed, Suspended: true}), StateFailed, StepNone},
		"suspended when there is a result":              {Facts{Result: result, Suspended: true}, StateFinished, StepNone},
		"too late, without a share":                     {Facts{DeadlineExceeded: true}, StateDeadlineExceeded, StepStop},
		"too late while pods run":                       {share(Facts{Prepared: true, Generate: done, Run: active, DeadlineExceeded: true}), StateDeadlineExceeded, StepStop},
		"too late for a result that never came":         {share(Facts{Prepared: true, Generate: done, Run: done, DeadlineExceeded: true}), StateDeadlineExceeded, StepStop},
		"the result came at the last moment":            {Facts{Result: result, DeadlineExceeded: true}, StateFinished, StepNone},
		"it failed before the deadline":                 {Facts{Failure: "x", DeadlineExceeded: true}, StateFailed, StepNone},
		"it ended, and its pods' Jobs were deleted":     {share(Facts{Prepared: true, Ended: true}), StateEnded, StepNone},
		"it ended, and then it was suspended":           {share(Facts{Prepared: true, Ended: true, Suspended: true}), StateEnded, StepNone},
		"it ended too late, and the deadline was moved": {share(Facts{Prepared: true, Generate: done, Ended: true}), StateEnded, StepNone},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := StateOf(tc.facts); got != tc.state || Next(got) != tc.step {
				t.Errorf("state %s, step %s; want %s, %s", got, Next(got), tc.state, tc.step)
			}
			if ends := tc.step == StepNone || tc.state == StateDeadlineExceeded; tc.state.IsEnd() != ends {
				t.Errorf("IsEnd is %v", tc.state.IsEnd())
			}
		})
	}
}

func TestReadBytesFindsGaneshasCounter(t *testing.T) {
	const header = "# HELP nfs_bytes_received_by_export_total x\n# TYPE nfs_bytes_received_by_export_total counter\n"
	tests := map[string]struct {
		metrics string
		exports []int32
		want    int64
		fails   bool
	}{
		"the export of the share, and not another": {
			header + "nfs_bytes_received_by_export_total{export=\"export_id=11\",operation=\"read\",path=\"/a\"} 5e+06\n" +
				"nfs_bytes_received_by_export_total{export=\"export_id=12\",operation=\"read\",path=\"/b\"} 7\n" +
				"nfs_bytes_received_by_export_total{export=\"export_id=11\",operation=\"write\",path=\"/a\"} 9\n",
			[]int32{11},
			5000000, false,
		},
		"several volumes":           {"nfs_bytes_received_by_export_total{operation=\"read\",export=\"export_id=1\"} 2\nnfs_bytes_received_by_export_total{operation=\"read\",export=\"export_id=2\"} 3\n", []int32{1, 2}, 5, false},
		"unknown exports":           {"nfs_bytes_received_by_export_total{operation=\"read\",export=\"export_id=1\"} 2\n", nil, 2, false},
		"nothing read yet":          {"nfs_bytes_sent_by_export_total{operation=\"write\",export=\"export_id=1\"} 6\n", []int32{1}, 0, false},
		"only another share's read": {"nfs_bytes_received_by_export_total{operation=\"read\",export=\"export_id=2\"} 3\n", []int32{1}, 0, false},
		"a path with a quote":       {"nfs_bytes_received_by_export_total{path=\"a\\\"}b\",operation=\"read\",export=\"export_id=1\"} 6\n", []int32{1}, 6, false},
		"no metrics":                {"", nil, 0, true},
		"not metrics":               {"<html>{</html>\n}{\n", nil, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ReadBytes([]byte(tc.metrics), tc.exports)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%d, %v; want %d", got, err, tc.want)
			}
		})
	}
}

func FuzzReadBytes(f *testing.F) {
	f.Add([]byte("nfs_bytes_received_by_export_total{export=\"export_id=11\",operation=\"READ\"} 5\n"))
	f.Add([]byte("a{b=\"\\"))
	f.Fuzz(func(t *testing.T, metrics []byte) {
		if n, err := ReadBytes(metrics, []int32{11}); err == nil && n < 0 {
			t.Errorf("%d bytes", n)
		}
	})
}

func TestProgressOfTheClients(t *testing.T) {
	journal := map[string]string{
		KeyGenerate(0): `{"files":42,"done":40,"bytes":60000000}`, KeyGenerate(1): `{"files":42,"done":2,"bytes":1500000}`,
		KeyGenerate(2): "not JSON", KeyProgress("1"): strings.Repeat("é", 200),
	}
	if got := Progress(StateGeneratingDataset, journal, "1"); got != "42 of 84 files, 61.5 MB" {
		t.Errorf("generating: %q", got)
	}
	if got := Progress(StateRunning, journal, "1"); len(got) > maxProgress || !strings.HasPrefix(got, "éé") {
		t.Errorf("running: %d bytes", len(got))
	}
	if got := Progress(StateRunning, journal, "2"); got != "" {
		t.Errorf("another run: %q", got)
	}
	for _, s := range []State{StateNoDataset, StateFinished, StateFailed} {
		if got := Progress(s, journal, "1"); got != "" {
			t.Errorf("%s: %q", s, got)
		}
	}
}
