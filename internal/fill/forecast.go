package fill

import (
	"math"
	"slices"
	"time"
)

const (
	// remembered is the age of the oldest sample that a forecast uses: a rate of an hour is that of a job, and not of one write.
	remembered = time.Hour
	// maxSamples bounds the samples.
	maxSamples = 128
	// leastSamples and leastSpan are what a forecast needs.
	leastSamples = 5
	leastSpan    = 4 * time.Minute
	// leastGrowth is the part of a volume that must have been taken in the time of the samples: less is noise.
	leastGrowth = 1.0 / 512
	// Horizon is how far a forecast looks.
	Horizon = 72 * time.Hour
)

// History is what a volume used at earlier moments. The zero value is empty.
type History struct {
	samples []sample
}

type sample struct {
	at    time.Time
	usage Usage
}

// Add notes what a volume uses at a moment. A volume that was expanded, and a clock that was set back, begin a new history.
func (h *History) Add(at time.Time, usage Usage) {
	if n := len(h.samples); n > 0 {
		last := h.samples[n-1]
		if !at.After(last.at) || last.usage.Bytes.Total != usage.Bytes.Total {
			h.samples = nil
		}
	}
	h.samples = append(h.samples, sample{at, usage})
	h.samples = slices.DeleteFunc(h.samples, func(s sample) bool { return at.Sub(s.at) > remembered })
	if extra := len(h.samples) - maxSamples; extra > 0 {
		h.samples = slices.Delete(h.samples, 0, extra)
	}
}

// FullAt is when the volume will be full, of bytes or of inodes, at the rate of its samples; the zero time if it does not fill, is full, or
// will be full after the horizon only.
func (h *History) FullAt() time.Time {
	if len(h.samples) < leastSamples {
		return time.Time{}
	}
	last := h.samples[len(h.samples)-1]
	if last.at.Sub(h.samples[0].at) < leastSpan {
		return time.Time{}
	}
	left := math.Inf(1)
	for _, of := range []func(Usage) Amount{func(u Usage) Amount { return u.Bytes }, func(u Usage) Amount { return u.Files }} {
		left = min(left, h.secondsLeft(of))
	}
	if left <= 0 || left > Horizon.Seconds() {
		return time.Time{}
	}
	return last.at.Add(time.Duration(left * float64(time.Second)))
}

// secondsLeft divides what is free by the rate: the slope of the line with the least squares through the samples.
func (h *History) secondsLeft(of func(Usage) Amount) float64 {
	first, last := h.samples[0], h.samples[len(h.samples)-1]
	amount := of(last.usage)
	if !amount.known() {
		return math.Inf(1)
	}
	var meanTime, meanUsed float64
	for _, s := range h.samples {
		meanTime += s.at.Sub(first.at).Seconds()
		meanUsed += float64(of(s.usage).Used)
	}
	meanTime, meanUsed = meanTime/float64(len(h.samples)), meanUsed/float64(len(h.samples))
	var product, square float64
	for _, s := range h.samples {
		distance := s.at.Sub(first.at).Seconds() - meanTime
		product += distance * (float64(of(s.usage).Used) - meanUsed)
		square += distance * distance
	}
	rate := product / square
	if rate*last.at.Sub(first.at).Seconds() < leastGrowth*float64(amount.Total) {
		return math.Inf(1)
	}
	return float64(amount.Free) / rate
}

// Steady keeps a forecast that was reported as long as a new one differs by less than a quarter of the time that is left, so that reports
// change rarely. Both may be zero.
func Steady(reported, now, forecast time.Time) time.Time {
	if reported.IsZero() || forecast.IsZero() || !reported.After(now) {
		return forecast
	}
	difference, left := forecast.Sub(reported), forecast.Sub(now)
	if max(difference, -difference) <= left/4 {
		return reported
	}
	return forecast
}
