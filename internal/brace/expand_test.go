package brace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    string
	}{
		"a pattern without braces stands for itself":  {"train", "train"},
		"a comma outside braces is a character":       {"a,b", "a,b"},
		"a range of numbers":                          {"train/{0..3}", "train/0 train/1 train/2 train/3"},
		"a range of padded numbers":                   {"{08..11}", "08 09 10 11"},
		"padding by the end":                          {"{8..010}", "008 009 010"},
		"a zero is not padding":                       {"{0..10..5}", "0 5 10"},
		"a range downwards":                           {"{2..0}", "2 1 0"},
		"a range through zero":                        {"{-1..1}", "-1 0 1"},
		"a padded range through zero counts the sign": {"{-01..1}", "-01 000 001"},
		"a step that does not reach the end":          {"{0..5..2}", "0 2 4"},
		"a step's sign does not matter":               {"{0..5..-2}", "0 2 4"},
		"a step of zero is one":                       {"{0..2..0}", "0 1 2"},
		"a range of one":                              {"{7..7}", "7"},
		"a range of letters":                          {"{a..e..2}", "a c e"},
		"a range of capitals downwards":               {"{C..A}", "C B A"},
		"a list":                                      {"{train,valid}", "train valid"},
		"a list with an empty item":                   {"a{,b}", "a ab"},
		"a product varies the right side fastest":     {"{a,b}{1..2}", "a1 a2 b1 b2"},
		"a list in a list":                            {"{a,b{1,2}c}d", "ad b1cd b2cd"},
		"a range in a list":                           {"{x,{1..2}}", "x 1 2"},
		"a path with two expressions":                 {"{train,valid}/{00..01}", "train/00 train/01 valid/00 valid/01"},
		"the largest numbers":                         {"{9223372036854775806..9223372036854775807}", "9223372036854775806 9223372036854775807"},
		"the whole width of numbers in two steps":     {"{-9223372036854775808..9223372036854775807..9223372036854775807}", "-9223372036854775808 -1 9223372036854775806"},
		"duplicates are kept":                         {"{a,a}", "a a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Expand(tc.pattern, 100)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(tc.want, " "), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestExpandRefuses(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    string
	}{
		"an expression that is neither":  {"train/{0-15}", `pattern "train/{0-15}": "{0-15}" is neither a list like {a,b} nor a range like {0..15}`},
		"a list of one":                  {"{a}", `pattern "{a}": "{a}" is neither a list like {a,b} nor a range like {0..15}`},
		"empty braces":                   {"a{}", `pattern "a{}": "{}" is neither a list like {a,b} nor a range like {0..15}`},
		"a range with three dots":        {"{0...5}", `pattern "{0...5}": "{0...5}" is neither a list like {a,b} nor a range like {0..15}`},
		"a range to a list":              {"{1..{2,3}}", `pattern "{1..{2,3}}": "{1..{2,3}}" is neither a list like {a,b} nor a range like {0..15}`},
		"a range from number to letter":  {"{1..c}", `pattern "{1..c}": the ends of range "{1..c}" must be two numbers, two small letters or two capitals`},
		"a range from small to capital":  {"{a..C}", `pattern "{a..C}": the ends of range "{a..C}" must be two numbers, two small letters or two capitals`},
		"a brace that is never closed":   {"a{b,c", `pattern "a{b,c": the { at "{b,c" is never closed; add the }`},
		"a brace that closes nothing":    {"{a,b}}", `pattern "{a,b}}": the } at "}" closes nothing; remove it or add the { it belongs to`},
		"numbers that are too large":     {"{0..9223372036854775808}", `pattern "{0..9223372036854775808}": the numbers of range "{0..9223372036854775808}" are too large`},
		"a step that is too large":       {"{0..1..9223372036854775808}", `pattern "{0..1..9223372036854775808}": the step of range "{0..1..9223372036854775808}" is too large`},
		"more than the limit":            {"{0..100}", `pattern "{0..100}" brings the number of directories to 101, and 100 is the limit; make its ranges smaller or make the directories with mkdir`},
		"more than there are numbers":    {"{0..9223372036854775807}{0..9}", `pattern "{0..9223372036854775807}{0..9}" brings the number of directories to more than 18446744073709551614, and 100 is the limit; make its ranges smaller or make the directories with mkdir`},
		"a sum of more than there are":   {"{{0..9223372036854775807},{0..9223372036854775807},a}", `pattern "{{0..9223372036854775807},{0..9223372036854775807},a}" brings the number of directories to more than 18446744073709551614, and 100 is the limit; make its ranges smaller or make the directories with mkdir`},
		"a range of more than there are": {"{-9223372036854775808..9223372036854775807}", `pattern "{-9223372036854775808..9223372036854775807}" brings the number of directories to more than 18446744073709551614, and 100 is the limit; make its ranges smaller or make the directories with mkdir`},
		"braces nested without end":      {strings.Repeat("{", 40), fmt.Sprintf("pattern %q: braces are nested more than 32 deep", strings.Repeat("{", 40))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Expand(tc.pattern, 100)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, error\n%v, want\n%s", got, err, tc.want)
			}
		})
	}
}

func TestDirectories(t *testing.T) {
	got, err := Directories([]string{"{train,valid}/{0..1}", "test/a"}, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"train/0", "train/1", "valid/0", "valid/1", "test/a"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDirectoriesRefuses(t *testing.T) {
	tests := map[string]struct {
		patterns []string
		want     string
	}{
		"a directory of two patterns":      {[]string{"train/{0..3}", "train/2"}, `directories[1]: pattern "train/2" gives "train/2", and so does directories[0], pattern "train/{0..3}"; list it once`},
		"a directory twice in one pattern": {[]string{"{a,a}/b"}, `directories[0]: pattern "{a,a}/b" gives "a/b" twice; list it once`},
		"too many in one pattern":          {[]string{"a/{0..20}"}, `directories[0]: pattern "a/{0..20}" brings the number of directories to 21, and 20 is the limit; make its ranges smaller or make the directories with mkdir`},
		"too many in total":                {[]string{"a/{0..9}", "b/{0..10}"}, `directories[1]: pattern "b/{0..10}" brings the number of directories to 21, and 20 is the limit; make its ranges smaller or make the directories with mkdir`},
		"dot-dot made by braces":           {[]string{"a/{x,..}"}, `directories[0]: pattern "a/{x,..}" gives "a/..": the path element ".." is not allowed; name the directory itself`},
		"a name of Howdah's own":           {[]string{"a/.howdah-x"}, `directories[0]: pattern "a/.howdah-x" gives "a/.howdah-x": names that begin with ".howdah" are those of Howdah's own directories; use another name`},
		"one that braces make":             {[]string{"a/{x,.how}dah"}, `directories[0]: pattern "a/{x,.how}dah" gives "a/.howdah": names that begin with ".howdah" are those of Howdah's own directories; use another name`},
		"one above":                        {[]string{"{.howdah,a}/x"}, `directories[0]: pattern "{.howdah,a}/x" gives ".howdah/x": names that begin with ".howdah" are those of Howdah's own directories; use another name`},
		"an element made empty by braces":  {[]string{"a/{x,}"}, `directories[0]: pattern "a/{x,}" gives "a/": a path element is empty; remove the / at the start, at the end, or one of two in a row`},
		"too shallow":                      {[]string{"a"}, `directories[0]: pattern "a" gives "a": it has 1 path element; spec.depth asks for 2`},
		"too deep":                         {[]string{"a/b/{c,d}"}, `directories[0]: pattern "a/b/{c,d}" gives "a/b/c": it has 3 path elements; spec.depth asks for 2`},
		"an element that is too long":      {[]string{"a/" + strings.Repeat("b", 256)}, fmt.Sprintf(`directories[0]: pattern %[1]q gives %[1]q: a path element has 256 bytes; 255 is the most`, "a/"+strings.Repeat("b", 256))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Directories(tc.patterns, 2, 20)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, error\n%v, want\n%s", got, err, tc.want)
			}
		})
	}
}

// bash is the reference where it is installed: random well-formed patterns must expand alike.
func TestExpandAsBashDoes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here; TestExpand has its answers")
	}
	random := rand.New(rand.NewPCG(1, 2))
	var patterns []string
	var script strings.Builder
	for len(patterns) < 300 {
		// The letter keeps bash from dropping a word that would be empty.
		pattern := "w" + randomPattern(random, 2)
		patterns = append(patterns, pattern)
		fmt.Fprintf(&script, "echo %s\n", pattern)
	}
	command := exec.Command(bash, "--norc", "--noprofile", "-c", "set -f\n"+script.String())
	command.Env = []string{"LC_ALL=C"}
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(lines) != len(patterns) {
		t.Fatalf("bash answered %d lines for %d patterns", len(lines), len(patterns))
	}
	for i, pattern := range patterns {
		got, err := Expand(pattern, 1_000_000)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if want := lines[i]; strings.Join(got, " ") != want {
			t.Errorf("%s:\ngot  %s\nbash %s", pattern, strings.Join(got, " "), want)
		}
	}
}

func randomPattern(random *rand.Rand, depth int) string {
	var pattern strings.Builder
	for range 1 + random.IntN(3) {
		switch choice := random.IntN(4); {
		case choice == 0 && depth > 0:
			items := make([]string, 2+random.IntN(2))
			for i := range items {
				if random.IntN(6) > 0 {
					items[i] = randomPattern(random, depth-1)
				}
			}
			pattern.WriteString("{" + strings.Join(items, ",") + "}")
		case choice == 1:
			fmt.Fprintf(&pattern, "{%s..%s}", randomNumber(random), randomNumber(random))
		case choice == 2:
			fmt.Fprintf(&pattern, "{%c..%c..%d}", 'a'+random.IntN(5), 'a'+random.IntN(5), random.IntN(5)-2)
		default:
			pattern.WriteByte("ab/=.+@:-_"[random.IntN(10)])
		}
	}
	return pattern.String()
}

func randomNumber(random *rand.Rand) string {
	number := fmt.Sprintf("%0*d", 1+random.IntN(3), random.IntN(7))
	if random.IntN(4) == 0 {
		return "-" + number
	}
	return number
}

func FuzzDirectories(f *testing.F) {
	for _, seed := range []string{"train/{0..15}", "{train,valid}/{00..07}", "{a,{b,c}}", "{", "}{", "{-1..1..-9}", "{a..z..3}", "a/{x,..}", "{0..99999999999}"} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, pattern string, depth int) {
		const limit = 1000
		got, err := Directories([]string{pattern}, depth, limit)
		if err != nil {
			var many *TooMany
			if len(got) != 0 || errors.As(err, &many) && many.Count <= limit {
				t.Errorf("%q: %d directories with error %v", pattern, len(got), err)
			}
			return
		}
		seen := map[string]bool{}
		for _, directory := range got {
			if seen[directory] || strings.ContainsAny(directory, "{}") || strings.Count(directory, "/") != depth-1 || len(directory) > len(pattern) {
				t.Errorf("%q gave %q", pattern, directory)
			}
			seen[directory] = true
			for element := range strings.SplitSeq(directory, "/") {
				if element == "" || element == "." || element == ".." || len(element) > 255 {
					t.Errorf("%q gave %q", pattern, directory)
				}
			}
		}
		if len(got) == 0 || len(got) > limit {
			t.Errorf("%q gave %d directories", pattern, len(got))
		}
	})
}
