package consistency

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Verdict is what a check found.
type Verdict struct {
	// Violations has a line of text for each thing that is wrong, and the shortest history that shows it.
	Violations []string
	// Undecided: the check did not end in time. It is neither good nor bad.
	Undecided []string
	// Age is how old what Stat and List showed was at the most, where the promise says that it may be old.
	Age time.Duration

	// shown are what porcupine draws, by name.
	shown map[string]drawing
}

type drawing struct {
	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// Wrong is nil if nothing that was decided is wrong.
func (v *Verdict) Wrong() error {
	if len(v.Violations) > 0 {
		return fmt.Errorf("%d violations:\n%s", len(v.Violations), strings.Join(v.Violations, "\n"))
	}
	return nil
}

// Err is nil if nothing is wrong and everything was decided.
func (v *Verdict) Err() error {
	if err := v.Wrong(); err != nil || len(v.Undecided) == 0 {
		return err
	}
	return fmt.Errorf("not decided in time: %s", strings.Join(v.Undecided, "; "))
}

// Draw writes porcupine's pictures of what is wrong into a folder, as HTML, and returns their files.
func (v *Verdict) Draw(folder string) ([]string, error) {
	var files []string
	for name, d := range v.shown {
		file := path.Join(folder, name+".html")
		if err := porcupine.VisualizePath(d.model, d.info, file); err != nil {
			return files, fmt.Errorf("draw the violation %s: %w", name, err)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return files, nil
}

// Merge adds what another check found. Its pictures get a name in front of theirs.
func (v *Verdict) Merge(name string, other Verdict) {
	v.Violations = append(v.Violations, other.Violations...)
	v.Undecided = append(v.Undecided, other.Undecided...)
	v.Age = max(v.Age, other.Age)
	for inner, d := range other.shown {
		if v.shown == nil {
			v.shown = map[string]drawing{}
		}
		v.shown[name+"-"+inner] = d
	}
}

// Tree checks the operations on directories of a history: they must be linearizable but for what the promise allows. There is the
// directory "" and the initial ones when it begins.
func Tree(h History, initial []string, promise Promise, limit time.Duration) Verdict {
	var ours History
	for i := range h {
		switch h[i].Kind {
		case Mkdir, Rmdir, Rename, Stat, List:
			switch {
			case !promise.weak(&h[i]):
				ours = append(ours, h[i])
			case h[i].Repeated:
				ours = append(ours, h[i].Opened())
			case h[i].Twice:
				before := h[i].before()
				before.unsure = true
				ours = append(ours, before)
			}
		case Write, Read, Swap:
		}
	}
	start := newTree(initial...)
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{start} },
		Step: func(state, input, _ any) []any { return state.(tree).next(input.(*Operation)) },
		DescribeState: func(state any) string {
			return "{" + strings.Join(state.(tree).nonEmpty(), " ") + "}"
		},
	}
	v := judge("tree", "no order of these operations explains all answers", model.ToModel(), ours, limit, withRepetitions)
	looks, age := promise.judgeLooks(h, initial)
	v.Violations, v.Age = append(v.Violations, looks...), age
	return v
}

// Registers checks the operations with locks of a history: those on each file must be linearizable.
func Registers(h History, limit time.Duration) Verdict {
	files := map[string]History{}
	for _, o := range h {
		// An error says nothing about whether something was written.
		switch {
		case !o.Locked || o.Kind == Read && (o.Error != "" || o.Open()):
		case o.Error != "" || o.Repeated:
			files[o.Path] = append(files[o.Path], o.Opened())
		default:
			files[o.Path] = append(files[o.Path], o)
		}
	}
	model := porcupine.Model{
		Init: func() any { return register("") },
		Step: func(state, input, _ any) (bool, any) { return state.(register).step(input.(*Operation)) },
		DescribeState: func(state any) string {
			return fmt.Sprintf("%q", string(state.(register)))
		},
	}
	var all Verdict
	for n, file := range slices.Sorted(maps.Keys(files)) {
		what := "no order of these operations on " + file + " explains all answers, although each had the lock"
		all.Merge(fmt.Sprint(n), judge("register", what, model, files[file], limit, func(h History) History { return h }))
	}
	return all
}

// withRepetitions adds to each operation that may have been sent twice one without an answer, which takes effect in between or never, and
// to each that may have taken effect twice one that does so before the answer, if it can: right beside the other one it can't.
func withRepetitions(h History) History {
	out := slices.Clone(h)
	for i := range h {
		switch {
		case h[i].Open() || h[i].first:
		case h[i].Repeated:
			out = append(out, h[i].Opened())
		case h[i].Twice:
			out = append(out, h[i].before())
		}
	}
	return out
}

// judge checks a history. If it is wrong, the shortest one that is wrong is in the verdict. prepare makes of it what the model takes.
func judge(name, what string, model porcupine.Model, h History, limit time.Duration, prepare func(History) History) Verdict {
	model.DescribeOperation = func(input, _ any) string {
		o := input.(*Operation)
		return o.Request.String() + ": " + o.result()
	}
	check := func(h History, limit time.Duration) (porcupine.CheckResult, porcupine.LinearizationInfo) {
		return porcupine.CheckOperationsVerbose(model, operations(prepare(h)), limit)
	}
	result, info := check(h, limit)
	switch result {
	case porcupine.Ok:
		return Verdict{}
	case porcupine.Unknown:
		answered, open := h.Count()
		return Verdict{Undecided: []string{fmt.Sprintf("%s: %d operations, and %d without an answer", name, answered, open)}}
	case porcupine.Illegal:
	}
	deadline := time.Now().Add(limit)
	least := Shortest(h, func(h History) bool {
		if time.Now().After(deadline) {
			return false // It need not be the shortest.
		}
		result, _ := check(h, time.Until(deadline))
		return result == porcupine.Illegal
	})
	if _, shorter := check(least, limit); len(shorter.PartialLinearizations()) > 0 {
		info = shorter
	}
	return Verdict{
		Violations: []string{fmt.Sprintf("%s (%d operations of %d):\n%s", what, len(least), len(h), least)},
		shown:      map[string]drawing{name: {model, info}},
	}
}

// operations are those of porcupine. One without an answer may take place until the end, after all others too.
func operations(h History) []porcupine.Operation {
	var end time.Duration
	for i := range h {
		end = max(end, h[i].Call)
		if !h[i].Open() {
			end = max(end, h[i].Return)
		}
	}
	out := make([]porcupine.Operation, 0, len(h))
	for i := range h {
		o := &h[i]
		back := o.Return
		if o.Open() {
			back = end + 1
		}
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: int64(max(back, o.Call))})
	}
	return out
}

// Shortest is a part of a wrong history that is wrong, too. It ends with the first answer that can't be explained, and has none of the
// operations that changed nothing and are not needed. Those that changed something, or may have, all stay: without them others would
// be wrong.
func Shortest(h History, wrong func(History) bool) History {
	h = h.sorted()
	var returns []time.Duration
	for i := range h {
		if !h[i].Open() {
			returns = append(returns, h[i].Return)
		}
	}
	slices.Sort(returns)
	at, _ := slices.BinarySearchFunc(returns, true, func(t time.Duration, _ bool) int {
		if wrong(h.Until(t)) {
			return 0
		}
		return -1
	})
	if at < len(returns) {
		if until := h.Until(returns[at]); wrong(until) {
			h = until
		}
	}
	// The later ones are more likely needed; many at once first.
	for size := max(1, len(h)/4); size > 0; size /= 2 {
		for from := 0; from < len(h); {
			to := min(from+size, len(h))
			rest := slices.Clone(h[:from])
			for _, o := range h[from:to] {
				if !idle(&o) {
					rest = append(rest, o)
				}
			}
			kept := len(rest)
			rest = append(rest, h[to:]...)
			if len(rest) < len(h) && wrong(rest) {
				h, from = rest, kept
				continue
			}
			from = to
		}
	}
	slices.SortStableFunc(h, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	return h
}

// idle operations changed nothing for sure. A Write that failed may have written.
func idle(o *Operation) bool {
	refused := !o.Open() && o.Error != "" && o.Kind != Write && o.Kind != Swap
	return !o.Repeated && !o.Twice && !o.first && (refused || !o.Kind.Changes())
}
