package filesharesnapshotschedule

import (
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestTheNextTime(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, zone, after, want string }{
		"at three at night":                 {"0 3 * * *", "Etc/UTC", "2026-11-22T12:00:00Z", "2026-11-23T03:00:00Z"},
		"never the moment itself":           {"0 3 * * *", "Etc/UTC", "2026-11-23T03:00:00Z", "2026-11-24T03:00:00Z"},
		"at three in Berlin, in winter":     {"0 3 * * *", "Europe/Berlin", "2026-11-22T12:00:00Z", "2026-11-23T02:00:00Z"},
		"at three in Berlin, in summer":     {"0 3 * * *", "Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-02T01:00:00Z"},
		"a time of day that is left out":    {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		"every hour in the doubled hour":    {"0 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"},
		"@hourly":                           {"@hourly", "Etc/UTC", "2026-11-22T12:00:01Z", "2026-11-22T13:00:00Z"},
		"on Mondays, by name":               {"15 4 * * MON", "Etc/UTC", "2026-11-22T12:00:00Z", "2026-11-23T04:15:00Z"},
		"the leap day, some years from now": {"0 0 29 2 *", "Etc/UTC", "2026-11-22T12:00:00Z", "2028-02-29T00:00:00Z"},
	} {
		when, err := parseCalendar(tc.schedule, tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := when.next(at(t, tc.after)); !got.Equal(at(t, tc.want)) {
			t.Errorf("%s: %s, want %s", name, got.Format(time.RFC3339), tc.want)
		}
	}
}

func TestTheLastTimeThatWasMissed(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, after, now, want string }{
		"none yet":                  {"0 3 * * *", "2026-11-22T12:00:00Z", "2026-11-23T02:59:59Z", ""},
		"now":                       {"0 3 * * *", "2026-11-22T12:00:00Z", "2026-11-23T03:00:00Z", "2026-11-23T03:00:00Z"},
		"not the one that was made": {"0 3 * * *", "2026-11-22T03:00:00Z", "2026-11-22T12:00:00Z", ""},
		"one of many":               {"*/5 * * * *", "2026-11-20T00:00:00Z", "2026-11-22T12:03:10Z", "2026-11-22T12:00:00Z"},
		"one of a million":          {"* * * * *", "2024-11-20T00:00:00Z", "2026-11-22T12:03:10Z", "2026-11-22T12:03:00Z"},
		"long ago, once":            {"0 0 1 1 *", "2025-06-01T00:00:00Z", "2026-11-22T12:00:00Z", "2026-01-01T00:00:00Z"},
		"a minute that is not over": {"* * * * *", "2026-11-22T12:00:00Z", "2026-11-22T12:00:59Z", ""},
		"the clock was set back":    {"* * * * *", "2026-11-22T13:00:00Z", "2026-11-22T12:00:00Z", ""},
		"the end of a burst":        {"* 1-2 * * *", "2026-11-20T00:00:00Z", "2026-11-22T12:00:00Z", "2026-11-22T02:59:00Z"},
	} {
		when, err := parseCalendar(tc.schedule, "Etc/UTC")
		if err != nil {
			t.Fatal(err)
		}
		got, found := when.last(at(t, tc.after), at(t, tc.now))
		if found != (tc.want != "") || found && !got.Equal(at(t, tc.want)) {
			t.Errorf("%s: %s (%v), want %s", name, got.Format(time.RFC3339), found, tc.want)
		}
	}
}

func TestWhatCantBeReadNamesTheField(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, zone, want string }{
		"an hour that is none":   {"0 25 * * *", "Etc/UTC", "spec.schedule"},
		"four fields":            {"0 3 * *", "Etc/UTC", "spec.schedule"},
		"no such time zone":      {"0 3 * * *", "Europe/Atlantis", "spec.timeZone"},
		"a zone that is a place": {"0 3 * * *", "Berlin", "spec.timeZone"},
	} {
		if _, err := parseCalendar(tc.schedule, tc.zone); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
