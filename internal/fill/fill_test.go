package fill

import (
	"math"
	"testing"
	"time"
)

func bytes(used, free int64) Usage {
	return Usage{Bytes: Amount{Total: used + free, Used: used, Free: free}}
}

func TestLevels(t *testing.T) {
	tib := int64(1) << 40
	for name, tc := range map[string]struct {
		usage  Usage
		before Level
		want   Level
	}{
		"empty":                           {bytes(0, 1000), Roomy, Roomy},
		"just below 80 %":                 {bytes(799, 201), Roomy, Roomy},
		"80 %":                            {bytes(800, 200), Roomy, Above80},
		"90 %":                            {bytes(900, 100), Roomy, Above90},
		"95 %":                            {bytes(950, 50), Above80, Above95},
		"nothing free":                    {bytes(1000, 0), Above95, Full},
		"less than a write is free":       {bytes(tib-1<<20+1, 1<<20-1), Above95, Full},
		"a write is free":                 {bytes(tib-1<<20, 1<<20), Above95, Above95},
		"was full, little is free":        {bytes(tib-tib/101, tib/101), Full, Full},
		"was full, 1 % is free":           {bytes(tib-tib/99, tib/99), Full, Above95},
		"small, a 64th is free":           {bytes(985, 15), Above95, Above95},
		"small, less is free":             {bytes(986, 14), Above95, Full},
		"small, was full, 3 % are free":   {bytes(970, 30), Full, Above95},
		"small, was full, less is free":   {bytes(971, 29), Full, Full},
		"an inode is free":                {Usage{Bytes: Amount{1000, 10, 990}, Files: Amount{100, 99, 1}}, Roomy, Above95},
		"falls to 79 %":                   {bytes(790, 210), Above80, Above80},
		"falls to 77 %":                   {bytes(779, 221), Above80, Roomy},
		"falls from 95 to 93 %":           {bytes(930, 70), Above95, Above95},
		"falls from 95 to 92 %":           {bytes(929, 71), Above95, Above90},
		"falls far at once":               {bytes(10, 990), Full, Roomy},
		"root keeps the last twentieth":   {Usage{Bytes: Amount{Total: 1000, Used: 760, Free: 190}}, Roomy, Above80},
		"root's part is all that is left": {Usage{Bytes: Amount{Total: 1000, Used: 950, Free: 0}}, Roomy, Full},
		"no inodes":                       {Usage{Bytes: Amount{1000, 10, 990}, Files: Amount{100, 100, 0}}, Roomy, Full},
		"few inodes":                      {Usage{Bytes: Amount{1000, 10, 990}, Files: Amount{100, 91, 9}}, Roomy, Above90},
		"no table of inodes":              {Usage{Bytes: Amount{1000, 850, 150}}, Roomy, Above80},
		"a volume of 0 bytes":             {Usage{}, Roomy, Roomy},
		"a volume of 0 bytes, was full":   {Usage{}, Full, Roomy},
		"less than nothing is free":       {Usage{Bytes: Amount{1000, 1200, -200}}, Roomy, Roomy},
		"less than nothing is used":       {Usage{Bytes: Amount{1000, -10, 0}}, Roomy, Roomy},
		"used and free are 0":             {Usage{Bytes: Amount{1000, 0, 0}}, Roomy, Roomy},
		"as large as numbers go":          {Usage{Bytes: Amount{math.MaxInt64, math.MaxInt64 - tib, tib}}, Roomy, Above95},
	} {
		if got := LevelOf(tc.usage, tc.before); got != tc.want {
			t.Errorf("%s: level %d, want %d", name, got, tc.want)
		}
	}
}

// Around each border a volume goes up and down by half of the relief: its level changes once.
func TestLevelsDoNotFlap(t *testing.T) {
	for _, border := range begins {
		level, changes := Roomy, 0
		for i := range 100 {
			used := border*10 - 5
			if i%2 == 0 {
				used = border*10 + 5
			}
			if next := LevelOf(bytes(used, 1000-used), level); next != level {
				level, changes = next, changes+1
			}
		}
		if changes != 1 {
			t.Errorf("around %d %% the level changes %d times", border, changes)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, tc := range []struct {
		amount  Amount
		percent int
		known   bool
	}{
		{Amount{1000, 999, 1}, 99, true},
		{Amount{1000, 0, 1000}, 0, true},
		{Amount{1000, 1000, 0}, 100, true},
		{Amount{}, 0, false},
		{Amount{1000, 2000, -1000}, 0, false},
		{Amount{math.MaxInt64, math.MaxInt64, 0}, 100, true},
	} {
		if percent, known := tc.amount.Percent(); percent != tc.percent || known != tc.known {
			t.Errorf("%+v: %d %v, want %d %v", tc.amount, percent, known, tc.percent, tc.known)
		}
	}
}

func TestWhetherInodesAreFuller(t *testing.T) {
	for name, tc := range map[string]struct {
		usage Usage
		want  bool
	}{
		"bytes":         {Usage{Bytes: Amount{100, 90, 10}, Files: Amount{100, 10, 90}}, false},
		"inodes":        {Usage{Bytes: Amount{100, 10, 90}, Files: Amount{100, 90, 10}}, true},
		"no inodes":     {bytes(10, 90), false},
		"inodes alone":  {Usage{Files: Amount{100, 10, 90}}, true},
		"nothing known": {Usage{}, false},
	} {
		if got := OfFiles(tc.usage); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestForecasts(t *testing.T) {
	every := func(step time.Duration, used ...int64) (h History) {
		for i, u := range used {
			h.Add(noon.Add(time.Duration(i)*step), bytes(u, 1000-u))
		}
		return h
	}
	tests := map[string]struct {
		history History
		// want is the time from the last sample; 0 for no forecast.
		want time.Duration
	}{
		"nothing known":             {History{}, 0},
		"too few samples":           {every(time.Hour/4, 100, 200, 300), 0},
		"too short a time":          {every(10*time.Second, 100, 200, 300, 400, 500), 0},
		"10 a minute, 500 are left": {every(time.Minute, 450, 460, 470, 480, 490, 500), 50 * time.Minute},
		"flat":                      {every(time.Minute, 500, 500, 500, 500, 500, 500), 0},
		"shrinks":                   {every(time.Minute, 500, 490, 480, 470, 460, 450), 0},
		"noise":                     {every(time.Minute, 500, 501, 500, 501, 500, 501), 0},
		"up and down as much":       {every(time.Minute, 100, 300, 100, 300, 100, 300, 100), 0},
		"in steps of 20 every other minute": {
			every(time.Minute, 400, 400, 420, 420, 440, 440, 460, 460, 480, 480, 500, 500), 50 * time.Minute,
		},
		"full":     {every(time.Minute, 960, 970, 980, 990, 1000), 0},
		"expanded": {every(time.Minute, 450, 460, 470, 480, 490, 500), 50 * time.Minute},
	}
	grown := tests["expanded"]
	grown.history.Add(noon.Add(6*time.Minute), bytes(510, 1490))
	grown.want = 0
	tests["expanded"] = grown
	slow := History{}
	for i := range 61 { // 0.05 a minute: full in a week.
		slow.Add(noon.Add(time.Duration(i)*time.Minute), Usage{Bytes: Amount{1000000, 500000 + int64(i)*50, 500000 - int64(i)*50}})
	}
	tests["beyond the horizon"] = struct {
		history History
		want    time.Duration
	}{slow, 0}
	inodes := History{}
	for i := range 11 {
		n := int64(i)
		inodes.Add(noon.Add(time.Duration(i)*time.Minute), Usage{Bytes: Amount{1000, 100, 900}, Files: Amount{1000, 100 + 10*n, 900 - 10*n}})
	}
	tests["of inodes"] = struct {
		history History
		want    time.Duration
	}{inodes, 80 * time.Minute}
	for name, tc := range tests {
		got := time.Duration(0)
		if at := tc.history.FullAt(); !at.IsZero() {
			got = at.Sub(tc.history.samples[len(tc.history.samples)-1].at)
		}
		if difference := got - tc.want; max(difference, -difference) > tc.want/10 {
			t.Errorf("%s: full after %s, want %s", name, got, tc.want)
		}
	}
}

func TestAHistoryIsBounded(t *testing.T) {
	var h History
	for i := range 100_000 {
		h.Add(noon.Add(time.Duration(i)*time.Second), bytes(1, 999))
	}
	if len(h.samples) != maxSamples {
		t.Errorf("%d samples are kept", len(h.samples))
	}
	h.Add(noon, bytes(1, 999)) // The clock was set back.
	if len(h.samples) != 1 {
		t.Errorf("%d samples are kept of another time", len(h.samples))
	}
	h.Add(noon.Add(2*time.Hour), bytes(1, 999))
	if len(h.samples) != 1 {
		t.Errorf("%d samples are kept, of which one is too old", len(h.samples))
	}
}

func TestForecastsAreReportedRarely(t *testing.T) {
	in := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, tc := range map[string]struct{ reported, forecast, want time.Time }{
		"the first":             {time.Time{}, in(time.Hour), in(time.Hour)},
		"none any more":         {in(time.Hour), time.Time{}, time.Time{}},
		"about the same":        {in(time.Hour), in(70 * time.Minute), in(time.Hour)},
		"later":                 {in(time.Hour), in(2 * time.Hour), in(2 * time.Hour)},
		"sooner":                {in(time.Hour), in(20 * time.Minute), in(20 * time.Minute)},
		"the reported has gone": {in(-time.Minute), in(time.Minute), in(time.Minute)},
	} {
		if got := Steady(tc.reported, noon, tc.forecast); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
