package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/test/builders"
)

// cephWorld is wellWorld with its data in Ceph, and all directories of unet3d on the first two data servers.
func cephWorld() *World {
	w := wellWorld()
	w.FileServers[0].Spec.Storage = builders.FileServer("default", "training").Ceph().Build().Spec.Storage
	for i := range w.Directories {
		w.Directories[i].Spec.DataServerRef.Name = naming.DataServer("training", int32(i%2))
	}
	return w
}

func TestMovesAreShownBeforeTheyAreRequested(t *testing.T) {
	w := cephWorld()
	fs := &w.FileServers[0]
	plan := PlanRebalance(w, fs, 100, Counting())
	golden(t, "plan-rebalance.txt", plan.Text(text.Page{Width: 100}))
	if len(plan.Requests()) != len(plan.Moves) || len(plan.Moves) != 2 {
		t.Errorf("%+v", plan.Requests())
	}
	if few := PlanRebalance(w, fs, 1, Counting()); len(few.Moves) != 1 || !strings.Contains(few.Notes[0], "--moves") {
		t.Errorf("%+v", few)
	}
	for i, request := range PlanRebalance(w, fs, 100, Counting()).Follow(fs).request {
		if request.Clients != placement.Follow || plan.Requests()[i].Clients != "" {
			t.Errorf("%+v beside %+v", request, plan.Requests()[i])
		}
	}
	golden(t, "plan-rebalance-follow.txt", PlanRebalance(w, fs, 100, Counting()).Follow(fs).Text(text.Page{Width: 100}))
	golden(t, "plan-scale-in-ceph.txt", PlanScale(w, fs, 1).Text(text.Page{Width: 100}))

	well := wellWorld()
	well.FileServers[0].Spec.Storage = fs.Spec.Storage
	if none := PlanRebalance(well, &well.FileServers[0], 100, Counting()); len(none.Moves) != 0 || !strings.HasPrefix(none.Notes[0], "Nothing to move") {
		t.Errorf("%+v", none)
	}
	onVolumes := wellWorld()
	golden(t, "plan-rebalance-refused.txt", PlanRebalance(onVolumes, &onVolumes.FileServers[0], 100, Counting()).Text(text.Page{Width: 100}))
	onVolumes.FileServers[0].Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	if all := PlanRebalance(onVolumes, &onVolumes.FileServers[0], 100, Counting()).Follow(&onVolumes.FileServers[0]); slices.ContainsFunc(all.request, func(r placement.Request) bool { return r.Clients != "" }) {
		t.Errorf("on volumes clients follow anyway: %+v", all.request)
	}
	golden(t, "plan-rebalance-volumes.txt", PlanRebalance(onVolumes, &onVolumes.FileServers[0], 100, Counting()).Text(text.Page{Width: 100}))
}

// A directory that is copied to a data server with little room is refused there.
func TestPlansOnVolumesKeepAwayFromDataServersWithLittleRoom(t *testing.T) {
	w := wellWorld()
	fs := &w.FileServers[0]
	fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	for i := range w.Directories {
		w.Directories[i].Spec.DataServerRef.Name = naming.DataServer("training", 0)
	}
	tight := naming.DataServer("training", 1)
	for i := range w.DataServers {
		if w.DataServers[i].Name == tight {
			usage := &w.DataServers[i].Status.Volumes[0]
			usage.Fill, usage.FreeBytes = v1alpha1.FillAbove95, ptr.To(int64(1))
		}
	}
	plan := PlanRebalance(w, fs, 100, Counting())
	if len(plan.Moves) == 0 || slices.ContainsFunc(plan.Moves, func(m PlannedMove) bool { return m.To == tight }) {
		t.Errorf("%+v", plan.Moves)
	}
}

func TestWhatCanMove(t *testing.T) {
	w := cephWorld()
	fs, unet3d, home := &w.FileServers[0], &w.FileShares[0], &w.FileShares[1]
	copying := wellWorld().FileServers[0].DeepCopy()
	copying.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	asked := PlanMove(w, fs, unet3d, "train/1", "training-2")
	asked.Requested = true
	golden(t, "move.txt", asked.Text(text.Page{Width: 100}))
	if whole := PlanMove(w, fs, home, ".", "training-2"); whole.Refused != "" || whole.Requests()[0].Path != "." {
		t.Errorf("%+v", whole)
	}
	for want, got := range map[string]Moves{
		"has no data server \"training-7\"": PlanMove(w, fs, unet3d, "train/1", "training-7"),
		"name one":                          PlanMove(w, fs, unet3d, ".", "training-2"),
		"moves as a whole":                  PlanMove(w, fs, home, "a", "training-2"),
		"are at depth 2":                    PlanMove(w, fs, unet3d, "train", "training-2"),
		"spec.moves.copying":                PlanMove(w, &wellWorld().FileServers[0], unet3d, "train/1", "training-2"),
		"can't move on volumes":             PlanMove(w, copying, home, ".", "training-2"),
		"leave --follow out":                PlanMove(w, fs, home, ".", "training-2").Follow(fs),
	} {
		if !strings.Contains(got.Refused, want) {
			t.Errorf("refused %q, want %q", got.Refused, want)
		}
	}
}

// sizesOf gives the directories of unet3d sizes, in their order, and home's another.
func sizesOf(w *World, home int64, unet3d ...int64) map[string]int64 {
	sizes := map[string]int64{}
	for i := range w.Directories {
		d := &w.Directories[i]
		if d.Spec.FileShareRef.Name == "home" {
			sizes[d.Name] = home
			continue
		}
		sizes[d.Name] = unet3d[0]
		unet3d = unet3d[1:]
	}
	return sizes
}

func TestRebalanceByBytes(t *testing.T) {
	w := cephWorld()
	fs := &w.FileServers[0]
	plan := PlanRebalance(w, fs, 100, WeighingBytes(sizesOf(w, 1<<30, 900<<30, 20<<30, 40<<30, 60<<30, 80<<30, 100)))
	golden(t, "plan-rebalance-bytes.txt", plan.Text(text.Page{Width: 100}))
	if len(plan.Requests()) != len(plan.Moves) {
		t.Errorf("%+v", plan.Requests())
	}
	few := PlanRebalance(w, fs, 100, WeighingBytes(map[string]int64{w.Directories[0].Name: 1 << 30}))
	if all := strings.Join(few.Notes, "\n"); len(few.Moves) != 0 || !strings.Contains(all, "6 directories without a known weight") {
		t.Errorf("a directory alone can't be made even, and what has no size stays: %+v", few)
	}
	if none := PlanRebalance(w, fs, 100, WeighingBytes(sizesOf(w, 0, 0, 0, 0, 0, 0, 0))); len(none.Moves) != 0 || !strings.HasPrefix(none.Notes[0], "Nothing to move") {
		t.Errorf("empty directories: %+v", none)
	}
}

func TestRebalanceByLoadMovesDirectoriesFromABusyServer(t *testing.T) {
	w := cephWorld()
	fs := &w.FileServers[0]
	busy := Rates{"training-0": {"unet3d": 300e6, "home": 1e6}, "training-1": {"unet3d": 30e6}, "training-2": {}}
	golden(t, "plan-rebalance-load.txt", PlanRebalance(w, fs, 100, WeighingLoad(w, fs, busy)).Text(text.Page{Width: 100}))
	if idle := PlanRebalance(w, fs, 100, WeighingLoad(w, fs, Rates{"training-0": {}, "training-1": {}, "training-2": {}})); len(idle.Moves) != 0 {
		t.Errorf("no client reads or writes: %+v", idle)
	}
}

// The load of a hot directory is on several data servers, and stays there.
func TestAPlanByLoadNamesSharesWithHotDirectories(t *testing.T) {
	busy := Rates{"training-0": {"unet3d": 300e6, "home": 1e6}, "training-1": {"unet3d": 30e6}, "training-2": {}}
	for name, tc := range map[string]struct {
		change func(*World)
		want   string
	}{
		"none": {func(*World) {}, ""},
		"named": {func(w *World) {
			for i := range w.FileShares {
				if w.FileShares[i].Name == "unet3d" {
					w.FileShares[i].Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"train/0"}, DataServers: 3}}
				}
			}
		}, "hot directories of unet3d."},
		"found": {func(w *World) {
			for i := range w.Directories {
				if now := metav1.Now(); w.Directories[i].Spec.FileShareRef.Name == "unet3d" {
					w.Directories[i].Status.HotTime = &now
				}
			}
		}, "hot directories of unet3d."},
	} {
		w := cephWorld()
		fs := &w.FileServers[0]
		tc.change(w)
		text := strings.Join(PlanRebalance(w, fs, 100, WeighingLoad(w, fs, busy)).Notes, " ")
		if strings.Contains(text, "hot directories") != (tc.want != "") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %s", name, text)
		}
		if notes := strings.Join(PlanRebalance(w, fs, 100, Counting()).Notes, " "); strings.Contains(notes, "hot directories") {
			t.Errorf("%s: by number: %s", name, notes)
		}
	}
}

func TestSharesToMeasureHaveTheirServers(t *testing.T) {
	w := cephWorld()
	fs := &w.FileServers[0]
	want := []Measured{{"home", 0, []string{"training-0", "training-1", "training-2"}}, {"unet3d", 2, []string{"training-0", "training-1", "training-2"}}}
	if diff := cmp.Diff(want, ToMeasure(w, fs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
