package filesharesnapshotschedule

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// calendar has the times of snapshots. Daylight saving is handled as in CronJobs (robfig/cron): a time that is skipped
// in spring is skipped that day.
type calendar struct {
	schedule cron.Schedule
	zone     *time.Location
}

// parseCalendar reads spec.schedule and spec.timeZone. The error names the field.
func parseCalendar(schedule, zone string) (calendar, error) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return calendar{}, fmt.Errorf("spec.timeZone: %q is no time zone of the IANA data base; Europe/Berlin and Etc/UTC are", zone)
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return calendar{}, fmt.Errorf("spec.schedule: %q can't be read: %w; five fields are MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK, for example \"0 3 * * *\"", schedule, err)
	}
	return calendar{parsed, location}, nil
}

// next is the first time after t; zero if there is none within five years.
func (c calendar) next(t time.Time) time.Time { return c.schedule.Next(t.In(c.zone)).UTC() }

// last is the last time after one moment and not after another; false if there is none. It is a binary search, because
// there may be a million times between them.
func (c calendar) last(after, now time.Time) (time.Time, bool) {
	isBefore := func(t time.Time) bool { return c.hasBetween(t, now) }
	if !isBefore(after) {
		return time.Time{}, false
	}
	// There is a time after low and not after now; there is none after high. Times are at least a minute apart.
	low, high := after, now
	for high.Sub(low) > time.Second {
		if middle := low.Add(high.Sub(low) / 2); isBefore(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return c.next(low), true
}

func (c calendar) hasBetween(after, now time.Time) bool {
	next := c.schedule.Next(after.In(c.zone))
	return !next.IsZero() && !next.After(now)
}
