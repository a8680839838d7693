package rollout

import (
	"slices"
	"testing"
)

func TestTheCauseOfAChange(t *testing.T) {
	known := Record{Template: "a", Generation: 5, Cause: Specification}
	waiting := Record{Template: "a", Generation: 5, Cause: Operator}
	for name, tc := range map[string]struct {
		before           Record
		template         string
		generation       int64
		existing, urgent bool
		want             Cause
	}{
		"a new FileServer": {Record{}, "a", 1, false, false, Specification},
		"data servers of an operator without records": {Record{}, "a", 5, true, false, Operator},
		"nothing":                                    {known, "a", 5, true, false, Specification},
		"nothing while one waits":                    {waiting, "a", 5, true, false, Operator},
		"a field that pods don't have":               {waiting, "a", 6, true, false, Operator},
		"the specification":                          {known, "b", 6, true, false, Specification},
		"the specification, while another one waits": {waiting, "b", 6, true, false, Specification},
		"a new operator":                             {known, "b", 5, true, false, Operator},
		"lost certificates":                          {known, "b", 5, true, true, Specification},
		"two new operators in a row":                 {waiting, "b", 5, true, false, Operator},
	} {
		got := tc.before.Next(tc.template, tc.generation, tc.existing, tc.urgent)
		if want := (Record{tc.template, tc.generation, tc.want}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if again := ParseRecord(got.String()); again != got {
			t.Errorf("%s: read back as %+v", name, again)
		}
	}
	for _, text := range []string{"", "a", "a 5", "a five Operator", "a 5 Other", "a 5 Operator more"} {
		if got := ParseRecord(text); got != (Record{}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestWhichFileServerHoldsOthersUp(t *testing.T) {
	begun := Progress{FileServer: "ns/b", Cause: Operator, Updated: 1}
	with := func(change func(*Progress)) Progress {
		p := begun
		change(&p)
		return p
	}
	before, after, waits := begun, with(func(p *Progress) { p.FileServer = "ns/c" }), with(func(p *Progress) { p.Updated = 0 })
	before.FileServer = "ns/a"
	for name, tc := range map[string]struct {
		self   Progress
		other  Progress
		holder string
		want   string
	}{
		"it has begun":                           {waits, before, "", "ns/a"},
		"it has begun, and comes after this":     {waits, after, "", "ns/c"},
		"it is done":                             {waits, with(func(p *Progress) { p.FileServer, p.Complete = "ns/a", true }), "ns/a", ""},
		"it waits itself":                        {waits, with(func(p *Progress) { p.FileServer, p.Updated = "ns/a", 0 }), "", ""},
		"its first pod is not made yet":          {waits, with(func(p *Progress) { p.FileServer, p.Updated = "ns/a", 0 }), "ns/a", "ns/a"},
		"it is paused":                           {waits, with(func(p *Progress) { p.FileServer, p.Paused = "ns/a", true }), "", ""},
		"its user has changed it":                {waits, with(func(p *Progress) { p.FileServer, p.Cause = "ns/a", Specification }), "", ""},
		"it is not recorded why it rolls":        {waits, with(func(p *Progress) { p.FileServer, p.Cause = "ns/a", "" }), "", ""},
		"both have begun: the first in order":    {begun, before, "", "ns/a"},
		"both have begun: this is the first":     {begun, after, "", ""},
		"both have begun, this one last":         {begun, before, "ns/b", ""},
		"both have begun, the other one last":    {begun, after, "ns/c", "ns/c"},
		"both have begun, another one has since": {begun, after, "ns/d", ""},
	} {
		tc.self.Holds, tc.other.Holds = tc.self.FileServer == tc.holder, tc.other.FileServer == tc.holder
		if got := HeldBy(tc.self, []Progress{{FileServer: "ns/x"}, tc.other}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Whatever is known of FileServers, one of those that the operator changes may go on: they never wait for each other.
func TestFileServersNeverWaitForEachOther(t *testing.T) {
	names := []string{"ns/a", "ns/b", "ns/c"}
	for holders := range 1 << len(names) {
		for begun := range 1 << len(names) {
			var all []Progress
			for i, name := range names {
				all = append(all, Progress{FileServer: name, Cause: Operator, Updated: int32(begun >> i & 1), Holds: holders>>i&1 == 1})
			}
			free := 0
			for i := range all {
				if HeldBy(all[i], slices.Delete(slices.Clone(all), i, i+1)) == "" {
					free++
				}
			}
			if anyBegun := begun > 0 || holders > 0; free == 0 || anyBegun && free > 1 {
				t.Errorf("begun %03b, with the turn %03b: %d may go on", begun, holders, free)
			}
		}
	}
}
