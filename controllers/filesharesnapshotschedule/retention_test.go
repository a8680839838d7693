package filesharesnapshotschedule

import (
	"slices"
	"testing"
	"time"
)

func TestRetention(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	// hourly are a number of snapshots, the newest an hour old; those of the given ages, in hours, can't be read.
	hourly := func(n int, lost ...int) (all []made) {
		for age := 1; age <= n; age++ {
			all = append(all, made{name: now.Add(-time.Duration(age) * time.Hour).Format("02T15"), at: now.Add(-time.Duration(age) * time.Hour), ready: !slices.Contains(lost, age)})
		}
		return all
	}
	for name, tc := range map[string]struct {
		all  []made
		keep keep
		want []string
		// next is after how long the next one is too old, 0 if none will be.
		next time.Duration
	}{
		"none":                                {nil, keep{last: 3}, nil, 0},
		"fewer than may stay":                 {hourly(2), keep{last: 3}, nil, 0},
		"the oldest go, the oldest first":     {hourly(5), keep{last: 3}, []string{"22T07", "22T08"}, 0},
		"what is too old goes":                {hourly(4), keep{age: 150 * time.Minute}, []string{"22T08", "22T09"}, 30 * time.Minute},
		"to the second":                       {hourly(3), keep{age: 2 * time.Hour}, []string{"22T09", "22T10"}, 0},
		"what either keeps stays":             {hourly(6), keep{last: 3, age: 4*time.Hour + time.Minute}, []string{"22T06", "22T07"}, time.Minute},
		"the newest stays, however old":       {hourly(3), keep{age: time.Minute}, []string{"22T09", "22T10"}, 0},
		"the newest that can be read stays":   {hourly(4, 1, 2), keep{last: 1}, []string{"22T08", "22T10"}, 0},
		"nor does one that can never be read": {hourly(3, 2), keep{last: 2}, []string{"22T09"}, 0},
		"two of one moment":                   {[]made{{"b", now, true}, {"a", now, true}}, keep{last: 1}, []string{"a"}, 0},
	} {
		reversed := slices.Clone(tc.all)
		slices.Reverse(reversed)
		for _, all := range [][]made{tc.all, reversed} {
			got, next := expired(all, now, tc.keep)
			in := time.Duration(0)
			if !next.IsZero() {
				in = next.Sub(now)
			}
			if !slices.Equal(got, tc.want) || in != tc.next {
				t.Errorf("%s: %v in %s, want %v in %s", name, got, in, tc.want, tc.next)
			}
		}
	}
}
