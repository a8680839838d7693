package crash

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// left is what there is in the end if the data servers are changed behind the namespace's back.
func left(t *testing.T, change func(w *world)) (out layout, faults []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tree1)
		end := w.begin()
		time.Sleep(20 * time.Second)
		change(w)
		time.Sleep(quiet)
		out, faults = w.layout(), w.faults()
		end()
	})
	return out, faults
}

func (w *world) onServerOf(path string, change func(dirs map[string]string)) {
	for _, o := range w.api.all() {
		if o.Spec.Path == path {
			w.data.mu.Lock()
			defer w.data.mu.Unlock()
			change(w.data.dirs[w.address(o.Spec.DataServerRef.Name)])
		}
	}
}

func TestAShareDirectoryOfWhatIsNotThereAnyMoreIsMissing(t *testing.T) {
	got, faults := left(t, func(w *world) {
		w.onServerOf("p/a", func(dirs map[string]string) { delete(dirs, "/s/0/p/a") })
	})
	if want := with(tree1, func(l layout) { l["p/a"] = "" }); !maps.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	if list := strings.Join(faults, ", "); len(faults) != 2 || !strings.Contains(list, "p/a is left Missing") {
		t.Errorf("faults: %s", list)
	}
}

func TestADirectoryThatAppearsOnADataServerIsShown(t *testing.T) {
	got, faults := left(t, func(w *world) {
		w.onServerOf("p/a", func(dirs map[string]string) { dirs["/s/0/p/late"], dirs["/s/0/p/late/.file"] = "late", "late" })
	})
	if want := with(tree1, func(l layout) { l["p/late"] = "late" }); !maps.Equal(got, want) || len(faults) > 0 {
		t.Errorf("there is %v, want %v; %v", got, want, faults)
	}
}

// A volume that has nothing of a share at all is more likely another one than emptied directory by directory.
func TestAVolumeThatHasNothingOfAShareCostsNoShareDirectory(t *testing.T) {
	got, _ := left(t, func(w *world) {
		w.put("p/b", "more", 1)
		w.data.mu.Lock()
		defer w.data.mu.Unlock()
		w.data.dirs[w.servers[1].Spec.Address] = map[string]string{"/s": "", "/s/0": ""}
	})
	for _, path := range []string{"p/a", "p/b"} {
		if _, ok := got[path]; !ok {
			t.Errorf("%s has lost its ShareDirectory to an empty volume: %v", path, got)
		}
	}
}

// An export that is not shown answers NFS4ERR_NOENT, too (owners.Pool makes an error of that).
func TestAVolumeThatCanNotBeListedCostsNoShareDirectory(t *testing.T) {
	got, _ := left(t, func(w *world) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cutting = func(_ int, _ *process, what string) mode {
			if strings.HasPrefix(what, "NFS") {
				return refuse
			}
			return fine
		}
	})
	if !maps.Equal(got, tree1) {
		t.Errorf("there is %v, want %v", got, tree1)
	}
}

// Adoption: directories without ShareDirectories get them, wherever the leaders are cut.
func TestAdoptionThatIsCutAtAnyCallIsFinished(t *testing.T) {
	adopt := func(step int, m mode) (wrong []string, steps int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, tree1)
			w.putData("p/lost", "lost", 0)
			w.putData("new/lost", "lost too", 1)
			w.cutting = func(at int, _ *process, _ string) mode {
				if at == step {
					return m
				}
				return fine
			}
			end := w.begin()
			time.Sleep(20 * time.Second)
			w.mu.Lock()
			steps = w.steps
			w.mu.Unlock()
			time.Sleep(quiet)
			wrong = w.faults()
			want := with(tree1, func(l layout) { l["p/lost"], l["new"], l["new/lost"] = "lost", "", "lost too" })
			if got := w.layout(); !maps.Equal(got, want) {
				wrong = append(wrong, "what is shown differs")
				t.Logf("there is %v", got)
			}
			end()
		})
		return wrong, steps
	}
	wrong, steps := adopt(0, fine)
	if len(wrong) > 0 {
		t.Fatalf("without any cut: %v", wrong)
	}
	for step := 1; step <= steps; step++ {
		for _, m := range modes {
			if wrong, _ := adopt(step, m); len(wrong) > 0 {
				t.Errorf("call %d %s: %v", step, m, wrong)
			}
		}
	}
	t.Logf("%d calls, %d schedules", steps, steps*len(modes))
}
