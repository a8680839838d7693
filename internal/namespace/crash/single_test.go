package crash

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// quiet is how long everything may take to come to rest after the client has its answer.
const quiet = 30 * time.Minute

// scenario is a request with the two states that may be left.
type scenario struct {
	request       request
	before, after layout
	// again is the status of the same request once it was done.
	again nfsv4.Nfsstat4
	// stays is a directory that its data server lets only root rename; "": none.
	stays string
	// ceph: both data servers have the same storage.
	ceph bool
}

// tree1 is a share with some directories.
var tree1 = layout{"p": "", "p/a": "", "p/full": "data", "q": "", "r": "", "r/x": "others"}

// tree2 has an empty directory on the same data server as one with data.
var tree2 = layout{"p": "", "p/a": "", "p/b": "", "p/full": "data"}

func with(l layout, edit func(l layout)) layout {
	out := maps.Clone(l)
	edit(out)
	return out
}

func moved(l layout, from, to string) layout {
	return with(l, func(l layout) {
		for path, content := range maps.Clone(l) {
			if path == from || strings.HasPrefix(path, from+"/") {
				delete(l, path)
				l[to+strings.TrimPrefix(path, from)] = content
			}
		}
	})
}

var scenarios = map[string]scenario{
	"mkdir": {
		request{op: "mkdir", path: "p/n"}, tree1, with(tree1, func(l layout) { l["p/n"] = "new" }), nfsv4.NFS4ERR_EXIST, "", false,
	},
	"mkdir where the data server has nothing yet": {
		request{op: "mkdir", path: "q/n"}, tree1, with(tree1, func(l layout) { l["q/n"] = "new" }), nfsv4.NFS4ERR_EXIST, "", false,
	},
	"mkdir above the depth": {
		request{op: "mkdir", path: "n"}, tree1, with(tree1, func(l layout) { l["n"] = "" }), nfsv4.NFS4ERR_EXIST, "", false,
	},
	"rmdir": {
		request{op: "rmdir", path: "p/a"}, tree1, with(tree1, func(l layout) { delete(l, "p/a") }), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rmdir of what is not empty": {
		request{op: "rmdir", path: "p/full"}, tree1, tree1, nfsv4.NFS4ERR_NOTEMPTY, "", false,
	},
	"rmdir above the depth": {
		request{op: "rmdir", path: "q"}, tree1, with(tree1, func(l layout) { delete(l, "q") }), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename": {
		request{op: "rename", path: "p/full", to: "p/n"}, tree1, moved(tree1, "p/full", "p/n"), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename to another directory": {
		request{op: "rename", path: "p/full", to: "q/full"}, tree1, moved(tree1, "p/full", "q/full"), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename of a directory with directories": {
		request{op: "rename", path: "p", to: "n"}, tree1, moved(tree1, "p", "n"), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename onto an empty directory": {
		request{op: "rename", path: "p/full", to: "p/a"}, tree1, moved(with(tree1, func(l layout) { delete(l, "p/a") }), "p/full", "p/a"), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename onto a directory with data": {
		request{op: "rename", path: "p/full", to: "r/x"}, tree1, tree1, nfsv4.NFS4ERR_EXIST, "", false,
	},
	"rename onto an empty directory of the same data server": {
		request{op: "rename", path: "p/full", to: "p/a"}, tree2, moved(with(tree2, func(l layout) { delete(l, "p/a") }), "p/full", "p/a"), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename onto an empty directory of another data server in Ceph": {
		request{op: "rename", path: "p/full", to: "p/a"}, tree1, moved(with(tree1, func(l layout) { delete(l, "p/a") }), "p/full", "p/a"), nfsv4.NFS4ERR_NOENT, "", true,
	},
	"rename onto an empty directory in Ceph that the data server refuses": {
		request{op: "rename", path: "p/full", to: "p/a"}, tree1, tree1, nfsv4.NFS4ERR_ACCESS, "p/full", true,
	},
	"rename of an empty directory onto another one in Ceph": {
		request{op: "rename", path: "p/a", to: "p/b"}, tree2, with(tree2, func(l layout) { delete(l, "p/a") }), nfsv4.NFS4ERR_NOENT, "", true,
	},
	"rename onto an empty directory that the data server refuses": {
		request{op: "rename", path: "p/full", to: "p/a"}, tree1, tree1, nfsv4.NFS4ERR_ACCESS, "p/full", false,
	},
	"rename onto an empty directory that the data server of both refuses": {
		request{op: "rename", path: "p/full", to: "p/a"}, tree2, tree2, nfsv4.NFS4ERR_ACCESS, "p/full", false,
	},
	"rename onto an empty directory above the depth": {
		request{op: "rename", path: "p", to: "q"}, tree1, moved(with(tree1, func(l layout) { delete(l, "q") }), "p", "q"), nfsv4.NFS4ERR_NOENT, "", false,
	},
	"rename onto a directory above the depth that is not empty": {
		request{op: "rename", path: "p", to: "r"}, tree1, tree1, nfsv4.NFS4ERR_EXIST, "", false,
	},
	"rename above the depth": {
		request{op: "rename", path: "q", to: "n"}, tree1, moved(tree1, "q", "n"), nfsv4.NFS4ERR_NOENT, "", false,
	},
}

// run is one request, cut as cutting says. It returns what is wrong, and how many calls could be cut.
func (s *scenario) run(t *testing.T, seed uint64, cutting func(step int, p *process, what string) mode) (wrong []string, steps int, trail []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, s.before)
		w.data.stays = s.stays
		if s.ceph {
			w.inCeph()
		}
		end := w.begin()
		time.Sleep(20 * time.Second) // The leader has looked for directories without ShareDirectories.
		w.mu.Lock()
		w.steps, w.cutting, w.trail = 0, cutting, nil
		w.mu.Unlock()
		got := w.do(s.request)
		time.Sleep(time.Second) // What is written behind the answer is cut, too.
		w.mu.Lock()
		steps = w.steps
		w.mu.Unlock()
		time.Sleep(quiet)
		wrong = append(w.faults(), s.judge(got, w.layout())...)
		w.mu.Lock()
		w.cutting = func(int, *process, string) mode { return fine }
		w.mu.Unlock()
		if !maps.Equal(w.layout(), s.after) {
			if again := w.do(s.request); again.status != nfsv4.NFS4_OK {
				wrong = append(wrong, fmt.Sprintf("trying again was answered with %s", nfsv4.Nfsstat4_name[again.status]))
			}
		} else if again := w.do(s.request); again.status != s.again {
			wrong = append(wrong, fmt.Sprintf("once it was done it is answered with %s", nfsv4.Nfsstat4_name[again.status]))
		}
		end()
		trail = w.trail
	})
	return wrong, steps, trail
}

// judge tells what is wrong with an answer and what is left.
func (s *scenario) judge(got answer, left layout) []string {
	done, undone := maps.Equal(left, s.after), maps.Equal(left, s.before)
	var wrong []string
	if !done && !undone {
		wrong = append(wrong, fmt.Sprintf("what is left is neither the one nor the other: %v", left))
	}
	expected := nfsv4.NFS4_OK
	if maps.Equal(s.before, s.after) {
		expected = s.again
	}
	switch {
	case got.status == expected:
		if !done {
			wrong = append(wrong, "it was done, and is not")
		}
	case got.repeated && got.status == s.again && done:
		// The first server had done it.
	default:
		wrong = append(wrong, fmt.Sprintf("the client got %s (done %v)", nfsv4.Nfsstat4_name[got.status], done))
	}
	return wrong
}

// cutter says how a call of a process is cut.
type cutter = func(step int, p *process, what string) mode

// cutEach runs a scenario once for each of its calls and each way to cut it.
func cutEach(t *testing.T, steps int, run func(cutter) (wrong, trail []string)) {
	t.Helper()
	for step := 1; step <= steps; step++ {
		for _, m := range modes {
			var what string
			wrong, trail := run(func(at int, _ *process, call string) mode {
				if at != step {
					return fine
				}
				what = call
				return m
			})
			if len(wrong) > 0 {
				t.Errorf("%q (call %d) %s: %s", what, step, m, strings.Join(wrong, "; "))
				if testing.Verbose() {
					t.Log("\n" + strings.Join(trail, "\n"))
				}
			}
		}
	}
}

func TestWhatIsCutAtAnyCallIsDoneOrNotDone(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			wrong, steps, trail := s.run(t, 1, func(int, *process, string) mode { return fine })
			if len(wrong) > 0 {
				t.Fatalf("without any cut: %s\n%s", strings.Join(wrong, "; "), strings.Join(trail, "\n"))
			}
			cutEach(t, steps, func(cutting cutter) ([]string, []string) {
				wrong, _, trail := s.run(t, 1, cutting)
				return wrong, trail
			})
			t.Logf("%d calls, %d schedules", steps, steps*len(modes))
		})
	}
}
