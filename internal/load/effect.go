package load

import (
	"fmt"
	"slices"
	"time"
)

const (
	// beforeWindow is how much of the time before an event, and of the time after recovery, the medians are of.
	beforeWindow = 30 * time.Second
	// effectWindow is how long after an event its effect is looked for, at most: a second in which few operations were done much later
	// has another cause.
	effectWindow = 2 * time.Minute
	// recovered is the part of the operations per second before an event from which on the load counts as recovered.
	recovered = 0.9
	// steady is the number of seconds whose mean must be that high: single seconds differ without any event.
	steady = 3
)

// Effect is what an event did to the random load. All figures are operations per second of whole seconds.
type Effect struct {
	// At is the time of the event: the load was marked then.
	At time.Time `json:"at"`
	// Before is the median of the half minute before the event, After that of the half minute after recovery, and During that of the time
	// between the event and recovery.
	Before int `json:"before"`
	During int `json:"during"`
	After  int `json:"after"`
	// Least is the lowest second after the event, at LeastAt.
	Least   int       `json:"least"`
	LeastAt time.Time `json:"leastAt"`
	// DipPercent is by how much Least is below Before.
	DipPercent float64 `json:"dipPercent"`
	// RecoverySeconds is the time from the event until, after the lowest second, three seconds in a row have at least 90 % of Before on average;
	// 0 if no second was lower than that. It is negative if the load did not recover before the next event, or the end.
	RecoverySeconds float64 `json:"recoverySeconds"`
}

// Recovered reports whether the load recovered.
func (e Effect) Recovered() bool { return e.RecoverySeconds >= 0 }

// String is the effect in one line.
func (e Effect) String() string {
	if e.Before == 0 {
		return fmt.Sprintf("event at %s: nothing was done in the half minute before it, so no effect can be seen", e.At.Format(clockFormat))
	}
	text := fmt.Sprintf("event at %s: %d operations per second before, lowest %d at %s: a dip of %.0f %%", e.At.Format(clockFormat),
		e.Before, e.Least, e.LeastAt.Format(clockFormat), e.DipPercent)
	switch {
	case !e.Recovered():
		return text + fmt.Sprintf("; not back above %.0f %%", recovered*100)
	case e.RecoverySeconds == 0:
		return text + fmt.Sprintf("; never below %.0f %%", recovered*100)
	}
	return text + fmt.Sprintf("; back above %.0f %% after %.1f s, median %d until then and %d afterwards", recovered*100, e.RecoverySeconds, e.During, e.After)
}

// effectsOf are the effects of the marked events, in the order of time. Events outside of what was measured have none.
func (r *Random) effectsOf(marks []time.Time) (effects []Effect) {
	marks = slices.Clone(marks)
	slices.SortFunc(marks, time.Time.Compare)
	whole := r.whole()
	from := 0
	for i, mark := range marks {
		end := len(whole)
		if i+1 < len(marks) {
			end = min(end, r.secondOf(marks[i+1]))
		}
		at := r.secondOf(mark)
		end = min(end, at+int(effectWindow/time.Second))
		if at > from && at < end {
			effects = append(effects, r.effect(mark, whole[max(from, at-int(beforeWindow/time.Second)):at], at, whole[:end]))
		}
		from = max(from, at)
	}
	return effects
}

// effect is that of an event in second at of until, which ends with the next event.
func (r *Random) effect(mark time.Time, before []int, at int, until []int) Effect {
	since := until[at:]
	low := slices.Index(since, slices.Min(since))
	e := Effect{At: mark.UTC(), Before: median(before), Least: since[low], LeastAt: r.startOf(at + low), RecoverySeconds: -1}
	if e.Before > 0 {
		e.DipPercent = 100 * float64(e.Before-e.Least) / float64(e.Before)
	}
	wanted := recovered * float64(e.Before)
	if float64(e.Least) >= wanted {
		e.RecoverySeconds, e.During, e.After = 0, median(since), median(since[:min(len(since), int(beforeWindow/time.Second))])
		return e
	}
	for back := low + 1; back+steady <= len(since); back++ {
		sum := 0
		for _, n := range since[back : back+steady] {
			sum += n
		}
		// Its first second is not one of those that are too few.
		if float64(sum) >= wanted*steady && float64(since[back]) >= wanted {
			e.RecoverySeconds = max(r.startOf(at+back).Sub(mark).Seconds(), 0)
			e.During, e.After = median(since[:back]), median(since[back:min(len(since), back+int(beforeWindow/time.Second))])
			return e
		}
	}
	e.During = median(since)
	return e
}

// secondOf is the index of the second that a time is in.
func (r *Random) secondOf(at time.Time) int { return max(int(at.Sub(r.From)/time.Second), 0) }

func (r *Random) startOf(second int) time.Time {
	return r.From.Add(time.Duration(second) * time.Second)
}

func median(values []int) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Together is the random load of several directories: the sum of each second that all of them have.
func Together(loads ...*Random) *Random {
	var from time.Time
	for _, r := range loads {
		if r != nil && r.From.After(from) {
			from = r.From
		}
	}
	var sum *Random
	for _, r := range loads {
		if r == nil {
			continue
		}
		// Their seconds begin at different times: each counts for the nearest.
		skip := int(from.Sub(r.From).Round(time.Second) / time.Second)
		seconds := r.PerSecond[min(skip, len(r.PerSecond)):]
		if sum == nil {
			sum = &Random{From: from, PerSecond: slices.Clone(seconds)}
			continue
		}
		sum.PerSecond = sum.PerSecond[:min(len(sum.PerSecond), len(seconds))]
		for i := range sum.PerSecond {
			sum.PerSecond[i] += seconds[i]
		}
	}
	return sum
}

// WithMarks is the result with the effects of the marked events.
func (r Result) WithMarks(marks []time.Time) Result {
	if len(marks) == 0 {
		return r
	}
	r.Directories = slices.Clone(r.Directories)
	loads := make([]*Random, 0, len(r.Directories))
	for i := range r.Directories {
		random := r.Directories[i].Random
		if random == nil {
			continue
		}
		r.Directories[i].Random = &Random{From: random.From, PerSecond: random.PerSecond, Effects: random.effectsOf(marks)}
		loads = append(loads, random)
	}
	if len(loads) > 1 {
		r.Together = Together(loads...)
		r.Together.Effects = r.Together.effectsOf(marks)
	}
	return r
}
