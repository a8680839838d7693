package brace

import (
	"regexp"
	"strconv"
	"strings"
)

// parser reads a pattern from left to right.
type parser struct {
	pattern  string
	position int
	depth    int
}

func parse(pattern string) (product, error) {
	p := &parser{pattern: pattern}
	parsed, err := p.product("")
	if err != nil {
		return nil, err
	}
	if p.position < len(pattern) {
		return nil, wrong(pattern, "the } at %s closes nothing; remove it or add the { it belongs to", quote(pattern[p.position:]))
	}
	return parsed, nil
}

// product reads parts up to the end, a } or one of stops.
func (p *parser) product(stops string) (product, error) {
	var parts product
	for p.position < len(p.pattern) {
		rest := p.pattern[p.position:]
		if rest[0] == '{' {
			expression, err := p.expression()
			if err != nil {
				return nil, err
			}
			parts = append(parts, expression)
			continue
		}
		end := strings.IndexAny(rest, "{}"+stops)
		if end == 0 {
			break
		}
		if end < 0 {
			end = len(rest)
		}
		parts = append(parts, literal(rest[:end]))
		p.position += end
	}
	return parts, nil
}

// expression reads a list or a range with its braces.
func (p *parser) expression() (part, error) {
	start := p.position
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, wrong(p.pattern, "braces are nested more than %d deep", maxDepth)
	}
	var items list
	for {
		p.position++ // the { or the comma
		item, err := p.product(",")
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if p.position == len(p.pattern) {
			return nil, wrong(p.pattern, "the { at %s is never closed; add the }", quote(p.pattern[start:]))
		}
		if p.pattern[p.position] == '}' {
			break
		}
	}
	p.position++
	if len(items) > 1 {
		return items, nil
	}
	return parseSpan(p.pattern, p.pattern[start:p.position])
}

var spanForm = regexp.MustCompile(`^\{(-?[0-9]+|[a-z]|[A-Z])\.\.(-?[0-9]+|[a-z]|[A-Z])(?:\.\.(-?[0-9]+))?\}$`)

// parseSpan reads a range; expression has its braces.
func parseSpan(pattern, expression string) (part, error) {
	fields := spanForm.FindStringSubmatch(expression)
	if fields == nil {
		return nil, wrong(pattern, "%s is neither a list like {a,b} nor a range like {0..15}", quote(expression))
	}
	first, last := fields[1], fields[2]
	if class(first) != class(last) {
		return nil, wrong(pattern, "the ends of range %s must be two numbers, two small letters or two capitals", quote(expression))
	}
	step, err := parseStep(fields[3])
	if err != nil {
		return nil, wrong(pattern, "the step of range %s is too large", quote(expression))
	}
	if class(first) != number {
		return newSpan(span{step: step, letter: true}, int64(first[0]), int64(last[0])), nil
	}
	from, fromErr := strconv.ParseInt(first, 10, 64)
	to, toErr := strconv.ParseInt(last, 10, 64)
	if fromErr != nil || toErr != nil {
		return nil, wrong(pattern, "the numbers of range %s are too large", quote(expression))
	}
	form := span{step: step}
	if padded(first) || padded(last) {
		form.width = max(len(first), len(last))
	}
	return newSpan(form, from, to), nil
}

// newSpan fills in the values of a range.
func newSpan(form span, first, last int64) span {
	form.first, form.down = first, last < first
	distance := uint64(last) - uint64(first)
	if form.down {
		distance = uint64(first) - uint64(last)
	}
	form.steps = distance / form.step
	return form
}

// parseStep reads the step of a range. As in bash its sign is ignored (the ends give the direction), and 0 or none is 1.
func parseStep(text string) (uint64, error) {
	if text == "" {
		return 1, nil
	}
	// 63 bits: bash's numbers are signed.
	step, err := strconv.ParseUint(strings.TrimPrefix(text, "-"), 10, 63)
	return max(1, step), err
}

// Classes of a range's ends.
const (
	number = iota
	small
	capital
)

func class(end string) int {
	switch c := end[0]; {
	case 'a' <= c && c <= 'z':
		return small
	case 'A' <= c && c <= 'Z':
		return capital
	default:
		return number
	}
}

// padded: a number with leading zeros makes all numbers as wide.
func padded(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	return len(digits) > 1 && digits[0] == '0'
}
