package limits

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// share is number i of a tenant, a second younger than the one before.
func share(i int, tenant string, wants Usage) Demand {
	return Demand{Key: tenant + "." + string(rune('a'+i)), Tenant: tenant, Created: noon.Add(time.Duration(i) * time.Second), Wants: wants}
}

func admitted(d Demand) Demand {
	d.Admitted, d.Has = true, d.Wants
	return d
}

func caps(total, per Usage) Caps {
	return Caps{FileServer: "fs", Namespace: "storage", Total: total, PerNamespace: per}
}

func TestDefaultsAreSpelledOutAndNoLimitIsAboveTheCeiling(t *testing.T) {
	fs := builders.FileServer("storage", "fs").Build()
	if got := Of(fs, 4096, 1); got.Total != (Usage{4096, 100_000, 131_072}) || got.PerNamespace != (Usage{512, 20_000, 16_384}) {
		t.Errorf("unset: %+v", got)
	}
	if got := Of(fs, 4095, 16); got.Total != (Usage{4095, 100_000, 8_192}) || got.PerNamespace != (Usage{512, 20_000, 1_024}) {
		t.Errorf("unset, with 16 volumes: %+v", got)
	}
	fs.Spec.Limits = v1alpha1.FileServerLimits{Total: v1alpha1.ShareLimits{Shares: 4096, Directories: 7}, PerNamespace: v1alpha1.ShareLimits{AccessNetworks: 3}}
	if got := Of(fs, 4095, 16); got.Total != (Usage{4095, 7, 8_192}) || got.PerNamespace != (Usage{512, 20_000, 3}) {
		t.Errorf("set: %+v", got)
	}
}

func TestAccessNetworks(t *testing.T) {
	for want, rules := range map[int][]v1alpha1.AccessRule{
		1: nil,
		3: {{Clients: []string{"Nodes", "10.0.0.0/8"}}, {Clients: []string{"10.0.0.1"}}},
	} {
		if got := AccessNetworks(rules); got != want {
			t.Errorf("%v are %d", rules, got)
		}
	}
}

func TestAShareThatDoesNotFitIsRefusedByTheLimitThatHasNoRoom(t *testing.T) {
	limits := caps(Usage{10, 100, 1000}, Usage{3, 50, 500})
	one := Usage{1, 10, 100}
	for name, tc := range map[string]struct {
		own    Demand
		others []Demand
		field  string
		words  string
	}{
		"the first":                                           {share(0, "a", one), nil, "", ""},
		"the last of its namespace":                           {share(3, "a", one), []Demand{admitted(share(0, "a", one)), admitted(share(1, "a", one))}, "", ""},
		"one share more than its namespace":                   {share(3, "a", one), []Demand{admitted(share(0, "a", one)), admitted(share(1, "a", one)), admitted(share(2, "a", one))}, "spec.limits.perNamespace.shares", "the shares of namespace a together 3 shares (spec.limits.perNamespace.shares); others have 3 and this one is newer"},
		"others have its own":                                 {share(3, "b", one), []Demand{admitted(share(0, "a", one)), admitted(share(1, "a", one)), admitted(share(2, "a", one))}, "", ""},
		"more directories than its namespace":                 {share(0, "a", Usage{1, 51, 1}), nil, "spec.limits.perNamespace.directories", "others have 0 and this one would have 51: ask the administrator of the FileServer to raise spec.limits.perNamespace.directories"},
		"its namespace is the FileServer's":                   {share(0, "storage", Usage{1, 100, 1000}), nil, "", ""},
		"and has total":                                       {share(0, "storage", Usage{1, 101, 1000}), nil, "spec.limits.total.directories", "all shares together 100 directories"},
		"more networks in all":                                {share(9, "c", Usage{1, 0, 2}), []Demand{admitted(share(0, "a", Usage{1, 0, 500})), admitted(share(0, "b", Usage{1, 0, 499}))}, "spec.limits.total.accessNetworks", "others have 999 and this one would have 2"},
		"an older one that waits goes first":                  {share(1, "a", Usage{1, 30, 1}), []Demand{share(0, "a", Usage{1, 30, 1})}, "spec.limits.perNamespace.directories", "others have 30"},
		"a younger one does not":                              {share(0, "a", Usage{1, 30, 1}), []Demand{share(1, "a", Usage{1, 30, 1})}, "", ""},
		"an older one that does not fit itself takes no room": {share(1, "a", Usage{1, 30, 1}), []Demand{share(0, "a", Usage{1, 51, 1})}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			grant := limits.Admit(tc.own, tc.others, Taken{})
			if tc.field == "" {
				if !grant.Admitted || grant.Has != tc.own.Wants || grant.Refused != nil {
					t.Errorf("%+v", grant)
				}
				return
			}
			if grant.Admitted || grant.Refused == nil || grant.Refused.Field != tc.field || !strings.Contains(grant.Refused.Message("fs"), tc.words) {
				t.Errorf("%+v, %+v", grant, grant.Refused)
			}
		})
	}
}

// What directories of shares that are gone stand for is still there.
func TestRetainedDirectoriesTakeRoom(t *testing.T) {
	var retained Taken
	retained.Add("a", Usage{Directories: 45})
	limits := caps(Usage{10, 100, 1000}, Usage{3, 50, 500})
	if grant := limits.Admit(share(0, "a", Usage{1, 10, 1}), nil, retained); grant.Admitted {
		t.Errorf("%+v", grant)
	}
	if grant := limits.Admit(share(0, "b", Usage{1, 10, 1}), nil, retained); !grant.Admitted {
		t.Errorf("%+v", grant)
	}
}

// A limit that is lowered takes nothing away, and growth is refused for each kind by itself.
func TestWhatIsLetInStaysAndGrowsWhereThereIsRoom(t *testing.T) {
	limits := caps(Usage{1, 20, 20}, Usage{1, 20, 20})
	other := admitted(share(1, "b", Usage{1, 15, 5}))
	own := Demand{Key: "a", Tenant: "a", Admitted: true, Has: Usage{1, 15, 5}}
	for name, tc := range map[string]struct {
		wants, has            Usage
		directories, networks bool
	}{
		"the same, above the limits":     {Usage{1, 15, 5}, Usage{1, 15, 5}, false, false},
		"less":                           {Usage{1, 3, 1}, Usage{1, 3, 1}, false, false},
		"more networks":                  {Usage{1, 15, 15}, Usage{1, 15, 15}, false, false},
		"too many networks":              {Usage{1, 15, 16}, Usage{1, 15, 5}, false, true},
		"too many directories":           {Usage{1, 16, 4}, Usage{1, 15, 4}, true, false},
		"too many of both":               {Usage{1, 16, 99}, Usage{1, 15, 5}, true, true},
		"less of one, too many of other": {Usage{1, 2, 99}, Usage{1, 2, 5}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			own.Wants = tc.wants
			grant := limits.Admit(own, []Demand{other}, Taken{})
			if !grant.Admitted || grant.Has != tc.has || (grant.Directories != nil) != tc.directories || (grant.AccessNetworks != nil) != tc.networks {
				t.Errorf("%+v", grant)
			}
		})
	}
}

// Whatever the order in which shares are looked at, the same are served and the same are refused, and it stays so when all are looked at again.
func TestTheSameSharesAreServedInWhateverOrderTheyAreLookedAt(t *testing.T) {
	limits := caps(Usage{20, 300, 400}, Usage{8, 120, 150})
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var first []bool
		shares := make([]Demand, 30)
		for i := range shares {
			shares[i] = share(i, []string{"a", "b", "storage"}[random.IntN(3)], Usage{1, random.IntN(40), 1 + random.IntN(40)})
		}
		for try := range 3 {
			now := slices.Clone(shares)
			look := func() {
				for _, i := range random.Perm(len(now)) {
					others := slices.Delete(slices.Clone(now), i, i+1)
					grant := limits.Admit(now[i], others, Taken{})
					now[i].Admitted, now[i].Has = grant.Admitted, grant.Has
				}
			}
			var seen [2][]bool
			for round := range seen {
				look()
				for i := range now {
					seen[round] = append(seen[round], now[i].Admitted)
				}
			}
			if try == 0 {
				first = seen[0]
			}
			if !slices.Equal(first, seen[0]) || !slices.Equal(first, seen[1]) {
				t.Fatalf("served are %v, then %v, and in the first order %v", seen[0], seen[1], first)
			}
		}
	}
}
