package consistency

import (
	"path"
	"slices"
	"strings"
)

// tree is a state of the model of directories: the paths of all that exist, sorted, each with a line break at its end. As a string it
// can be compared. Paths have no slash at the beginning; the directory above all of them is "" and always there.
type tree string

func newTree(paths ...string) tree {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	var b strings.Builder
	for _, p := range slices.Compact(paths) {
		b.WriteString(p + "\n")
	}
	return tree(b.String())
}

func (t tree) paths() []string { return strings.Split(strings.TrimSuffix(string(t), "\n"), "\n") }

func (t tree) has(p string) bool {
	return p == "" || strings.HasPrefix(string(t), p+"\n") || strings.Contains(string(t), "\n"+p+"\n")
}

// names are those right in a directory.
func (t tree) names(dir string) []string {
	var out []string
	for _, p := range t.paths() {
		if p != "" && parent(p) == dir {
			out = append(out, path.Base(p))
		}
	}
	slices.Sort(out)
	return out
}

func (t tree) empty(dir string) bool { return len(t.names(dir)) == 0 }

func (t tree) with(p string) tree { return newTree(append(t.nonEmpty(), p)...) }

func (t tree) without(p string) tree {
	return newTree(slices.DeleteFunc(t.nonEmpty(), func(other string) bool { return other == p })...)
}

// moved has a directory under another name, with all that is in it.
func (t tree) moved(from, to string) tree {
	paths := t.nonEmpty()
	for i, p := range paths {
		if p == from || strings.HasPrefix(p, from+"/") {
			paths[i] = to + strings.TrimPrefix(p, from)
		}
	}
	return newTree(paths...)
}

func (t tree) nonEmpty() []string {
	return slices.DeleteFunc(t.paths(), func(p string) bool { return p == "" })
}

func parent(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// refusals are the errors with which POSIX lets a request fail (mkdir, rmdir, rename and stat of IEEE Std 1003.1-2024). None: it
// succeeds. Several: POSIX does not say which of them comes first.
func (t tree) refusals(r Request) (out []string) {
	add := func(when bool, errors ...string) {
		if when {
			out = append(out, errors...)
		}
	}
	switch r.Kind {
	case Mkdir:
		add(!t.has(parent(r.Path)), Missing)
		add(t.has(r.Path), Exists)
	case Rmdir:
		add(!t.has(r.Path), Missing)
		// "[EEXIST] or [ENOTEMPTY]": Linux and NFSv4 have the second.
		add(t.has(r.Path) && !t.empty(r.Path), NotEmpty)
	case Rename:
		add(!t.has(r.Path), Missing)
		add(!t.has(parent(r.To)), Missing)
		add(r.To != r.Path && t.has(r.To) && !t.empty(r.To), Exists, NotEmpty)
	case Stat, List:
		add(!t.has(r.Path), Missing)
	case Write, Read, Swap:
	}
	return out
}

// apply is the state after a successful request.
func (t tree) apply(r Request) tree {
	switch r.Kind {
	case Mkdir:
		return t.with(r.Path)
	case Rmdir:
		return t.without(r.Path)
	case Rename:
		if r.To != r.Path {
			return t.without(r.To).moved(r.Path, r.To)
		}
	case Stat, List, Write, Read, Swap:
	}
	return t
}

// step tells whether an operation may take place in a state, and what the state is then.
func (t tree) step(o *Operation) (bool, tree) {
	refusals := t.refusals(o.Request)
	switch {
	case (o.Open() || o.first) && len(refusals) > 0:
		return true, t
	case o.Open() || o.first:
		return true, t.apply(o.Request)
	case o.Error != "":
		return slices.Contains(refusals, o.Error), t
	case len(refusals) > 0:
		return false, t
	case o.Kind == List:
		return slices.Equal(o.Names, t.names(o.Path)), t
	}
	return true, t.apply(o.Request)
}

// next are the states that an operation may lead to; none: it can't take place.
func (t tree) next(o *Operation) []any {
	legal, after := t.step(o)
	switch {
	case !legal:
		return nil
	case o.unsure && after != t:
		return []any{t, after}
	}
	return []any{after}
}
