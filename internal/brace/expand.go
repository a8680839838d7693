package brace

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// maxDepth bounds how deep braces may be nested.
const maxDepth = 32

// TooMany is the error of patterns that expand to more strings than allowed.
type TooMany struct {
	// Pattern is the pattern that went over the limit.
	Pattern string
	// Count is the number of strings of all patterns up to this one; math.MaxUint64 means that many or more.
	Count uint64
	// Limit is how many are allowed.
	Limit int
}

// Error implements error.
func (e *TooMany) Error() string {
	count := fmt.Sprint(e.Count)
	if e.Count == math.MaxUint64 {
		count = "more than 18446744073709551614"
	}
	return fmt.Sprintf("pattern %q brings the number of directories to %s, and %d is the limit; make its ranges smaller or make the directories with mkdir", e.Pattern, count, e.Limit)
}

// Expand returns the strings of a pattern in bash's order (the rightmost expression varies fastest), with duplicates. The error is a
// *TooMany if there are more than limit, or says what is wrong with the pattern.
func Expand(pattern string, limit int) ([]string, error) {
	parsed, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	if count := parsed.count(); limit < 0 || count > uint64(limit) {
		return nil, &TooMany{Pattern: pattern, Count: count, Limit: limit}
	}
	return parsed.expand([]string{""}), nil
}

// part is a piece of a pattern.
type part interface {
	// count is the number of strings; math.MaxUint64 means that many or more.
	count() uint64
	// expand appends each of the part's strings to each prefix, prefix by prefix.
	expand(prefixes []string) []string
}

type literal string

func (literal) count() uint64 { return 1 }

func (l literal) expand(prefixes []string) []string {
	for i := range prefixes {
		prefixes[i] += string(l)
	}
	return prefixes
}

// product is parts one after the other.
type product []part

func (p product) count() uint64 {
	count := uint64(1)
	for _, factor := range p {
		high, low := bits.Mul64(count, factor.count())
		if high != 0 {
			return math.MaxUint64
		}
		count = low
	}
	return count
}

func (p product) expand(prefixes []string) []string {
	for _, factor := range p {
		prefixes = factor.expand(prefixes)
	}
	return prefixes
}

// list is {a,b}.
type list []product

func (l list) count() uint64 {
	count := uint64(0)
	for _, item := range l {
		sum, carry := bits.Add64(count, item.count(), 0)
		if carry != 0 {
			return math.MaxUint64
		}
		count = sum
	}
	return count
}

func (l list) expand(prefixes []string) []string {
	var items []string
	for _, item := range l {
		items = append(items, item.expand([]string{""})...)
	}
	return multiply(prefixes, items)
}

// span is {first..last..step}: steps+1 values from first on.
type span struct {
	first  int64
	steps  uint64
	step   uint64
	down   bool
	width  int
	letter bool
}

func (s span) count() uint64 {
	if s.steps == math.MaxUint64 {
		return math.MaxUint64
	}
	return s.steps + 1
}

func (s span) expand(prefixes []string) []string {
	values := make([]string, 0, s.count())
	for i := uint64(0); i <= s.steps; i++ {
		// Two's complement makes the wrapped sum right: every value lies between both ends.
		value := s.first + int64(i*s.step)
		if s.down {
			value = s.first - int64(i*s.step)
		}
		if s.letter {
			values = append(values, string(rune(value)))
		} else {
			values = append(values, fmt.Sprintf("%0*d", s.width, value))
		}
	}
	return multiply(prefixes, values)
}

func multiply(prefixes, suffixes []string) []string {
	all := make([]string, 0, len(prefixes)*len(suffixes))
	for _, prefix := range prefixes {
		for _, suffix := range suffixes {
			all = append(all, prefix+suffix)
		}
	}
	return all
}

// wrong is the error of a malformed pattern.
func wrong(pattern, format string, arguments ...any) error {
	return fmt.Errorf("pattern %q: %s", pattern, fmt.Sprintf(format, arguments...))
}

// quote shortens an expression for an error.
func quote(expression string) string {
	const most = 40
	if len(expression) > most {
		expression = strings.ToValidUTF8(expression[:most], "") + "…"
	}
	return fmt.Sprintf("%q", expression)
}
