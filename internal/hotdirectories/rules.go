package hotdirectories

import (
	"errors"
	"fmt"

	"github.com/howdah/howdah/internal/brace"
)

// MaxPaths is how many paths the entries of a share may give together. Each namespace server keeps them for each share, whether such a
// directory exists or not, and spec.limits of the FileServer does not count them. A path has 255 bytes at most, so a share takes some 40 KB.
const MaxPaths = 128

// Entry is one of a share's hotDirectories. No patterns: all directories of the share.
type Entry struct {
	Patterns []string
	Servers  int
}

// Rules are a share's hotDirectories. The zero value has none.
type Rules struct {
	// paths have the number of data servers of those that are named.
	paths map[string]int
	// others is the number for all other directories; 0: only the owner.
	others int
}

// Parse expands entries. Of a directory that several have the first applies. An entry that can't be expanded is left out, and faults has
// why; the others apply all the same.
func Parse(entries []Entry, depth int) (rules Rules, faults []error) {
	left := MaxPaths
	for i, entry := range entries {
		if len(entry.Patterns) == 0 {
			rules.others = entry.Servers
			break // Later entries apply to nothing.
		}
		paths, err := brace.Paths(fmt.Sprintf("hotDirectories[%d].paths", i), entry.Patterns, depth, left)
		if many := (*brace.TooMany)(nil); errors.As(err, &many) {
			err = fmt.Errorf("hotDirectories[%d].paths: with pattern %q the share names more than %d paths; name fewer, or leave paths out: "+
				"all directories of the share are hot then", i, many.Pattern, MaxPaths)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		left -= len(paths)
		for _, path := range paths {
			if rules.paths == nil {
				rules.paths = map[string]int{}
			}
			if _, taken := rules.paths[path]; !taken {
				rules.paths[path] = entry.Servers
			}
		}
	}
	return rules, faults
}

// Servers is the number of data servers that are to serve the directory with a path of the share: 1 unless it is hot.
func (r Rules) Servers(path string) int {
	if n, named := r.paths[path]; named {
		return max(1, n)
	}
	return max(1, r.others)
}

// Named are the paths that are named.
func (r Rules) Named() map[string]int { return r.paths }

// All tells whether every directory of the share is hot.
func (r Rules) All() bool { return r.others > 1 }
