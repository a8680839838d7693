package rollout

import "testing"

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
	begun := Progress{FileServer: "ns/a", Cause: Operator, Updated: 1}
	with := func(change func(*Progress)) Progress {
		p := begun
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		other  Progress
		holder string
		want   string
	}{
		"it has begun":                    {begun, "", "ns/a"},
		"it is done":                      {with(func(p *Progress) { p.Complete = true }), "ns/a", ""},
		"it waits itself":                 {with(func(p *Progress) { p.Updated = 0 }), "", ""},
		"its first pod is not made yet":   {with(func(p *Progress) { p.Updated = 0 }), "ns/a", "ns/a"},
		"it is paused":                    {with(func(p *Progress) { p.Paused = true }), "", ""},
		"its user has changed it":         {with(func(p *Progress) { p.Cause = Specification }), "ns/a", ""},
		"it is not recorded why it rolls": {with(func(p *Progress) { p.Cause = "" }), "", ""},
	} {
		if got := HeldBy([]Progress{{FileServer: "ns/b"}, tc.other}, tc.holder); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
