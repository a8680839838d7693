package hotdirectories

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheFirstEntryThatHasADirectoryApplies(t *testing.T) {
	entry := func(n int, patterns ...string) Entry { return Entry{patterns, n} }
	for name, tc := range map[string]struct {
		entries []Entry
		depth   int
		want    map[string]int
		faults  []string
	}{
		"none":                    {nil, 1, map[string]int{"a": 1, ".": 1}, nil},
		"one":                     {[]Entry{entry(3, "a")}, 1, map[string]int{"a": 3, "b": 1}, nil},
		"braces":                  {[]Entry{entry(3, "train/{0..2}", "valid/0")}, 2, map[string]int{"train/0": 3, "train/2": 3, "train/3": 1, "valid/0": 3, "train": 1}, nil},
		"all":                     {[]Entry{entry(4)}, 1, map[string]int{"a": 4, ".": 4}, nil},
		"some, and all others":    {[]Entry{entry(2, "a"), entry(4)}, 1, map[string]int{"a": 2, "b": 4}, nil},
		"all come first":          {[]Entry{entry(4), entry(2, "a")}, 1, map[string]int{"a": 4, "b": 4}, nil},
		"two have it":             {[]Entry{entry(2, "a"), entry(5, "a", "b")}, 1, map[string]int{"a": 2, "b": 5}, nil},
		"one is wrong":            {[]Entry{entry(2, "{a"), entry(5, "b")}, 1, map[string]int{"a": 1, "b": 5}, []string{"hotDirectories[0].paths[0]: "}},
		"of another depth":        {[]Entry{entry(2, "b"), entry(5, "a/b")}, 1, map[string]int{"b": 2, "a/b": 1}, []string{"spec.depth asks for 1"}},
		"above the share":         {[]Entry{entry(2, "..")}, 1, map[string]int{"..": 1}, []string{"not allowed"}},
		"as many as there may be": {[]Entry{entry(2, "{0..126}", "a")}, 1, map[string]int{"0": 2, "126": 2, "a": 2}, nil},
		"more than there may be": {
			[]Entry{entry(2, "{0..128}"), entry(3, "a")},
			1,
			map[string]int{"0": 1, "a": 3},
			[]string{`hotDirectories[0].paths: with pattern "{0..128}" the share names more than 128 paths; name fewer`},
		},
		"more than may be, in all": {
			[]Entry{entry(2, "{0..126}"), entry(2, "b", "{a..c}")},
			1,
			map[string]int{"0": 2, "a": 1},
			[]string{`hotDirectories[1].paths: with pattern "{a..c}" the share names more than 128 paths`},
		},
		"a number that is refused": {[]Entry{entry(-1, "a")}, 1, map[string]int{"a": 1}, nil},
	} {
		rules, faults := Parse(tc.entries, tc.depth)
		for path, want := range tc.want {
			if got := rules.Servers(path); got != want {
				t.Errorf("%s: %s is served by %d, want %d", name, path, got, want)
			}
		}
		if len(faults) != len(tc.faults) {
			t.Errorf("%s: faults %v", name, faults)
			continue
		}
		for i, want := range tc.faults {
			if !strings.Contains(fmt.Sprint(faults[i]), want) {
				t.Errorf("%s: %q does not say %q", name, faults[i], want)
			}
		}
	}
}
