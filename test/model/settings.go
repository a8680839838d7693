package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/howdah/howdah/test/verdict"
)

// Comparison is one setting with two values, measured one after the other in each round.
type Comparison struct {
	// Setting has the value Usual today and the value Other beside it.
	Setting, Usual, Other string
	// What was measured, and its unit: more is better but for seconds.
	What, Unit string
	// OfUsual and OfOther are the rounds.
	OfUsual, OfOther []float64
}

// Seconds is the unit of comparisons in which less is better.
const Seconds = "s"

// Ratio is how much better the other value is: 1.1 is a tenth.
func (c Comparison) Ratio() float64 {
	usual, other := verdict.Median(c.OfUsual), verdict.Median(c.OfOther)
	if c.Unit == Seconds {
		usual, other = other, usual
	}
	if usual == 0 {
		return 0
	}
	return other / usual
}

// Finding is what the rounds say: a difference counts only if the worst round with one value is better than the best with the other.
func (c Comparison) Finding() string {
	ratio := c.Ratio()
	if len(c.OfUsual) < 2 || len(c.OfOther) < 2 {
		return "one round says nothing"
	}
	if apart(c.OfUsual, c.OfOther) {
		return fmt.Sprintf("%+.0f %%", 100*(ratio-1))
	}
	return fmt.Sprintf("no difference: %+.0f %%, and the rounds overlap", 100*(ratio-1))
}

func apart(a, b []float64) bool {
	lowest := func(values []float64) float64 {
		least := math.Inf(1)
		for _, value := range values {
			least = min(least, value)
		}
		return least
	}
	highest := func(values []float64) float64 {
		most := math.Inf(-1)
		for _, value := range values {
			most = max(most, value)
		}
		return most
	}
	return highest(a) < lowest(b) || highest(b) < lowest(a)
}

func (r *Run) settings() string {
	var text strings.Builder
	for _, c := range r.Settings {
		fmt.Fprintf(&text, "%s: %s / %s\n", c.Setting, c.Other, c.Usual)
		fmt.Fprintf(&text, "  %-96s %9.3f   %s\n", c.What+", "+c.Unit, c.Ratio(), c.Finding())
		fmt.Fprintf(&text, "  %s: %s    %s: %s\n", c.Usual, values(c.OfUsual), c.Other, values(c.OfOther))
	}
	return text.String()
}

func values(rounds []float64) string {
	var texts []string
	for _, value := range rounds {
		texts = append(texts, fmt.Sprintf("%.4g", value))
	}
	return strings.Join(texts, " ")
}
