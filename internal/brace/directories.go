package brace

import (
	"errors"
	"fmt"
	"strings"
)

// reserved begins the names of Howdah's own directories (naming.OwnPrefix), which nothing takes for those of a share.
const reserved = ".howdah"

// maxElement is the longest name that file systems take, in bytes (NAME_MAX).
const maxElement = 255

// Directories returns the directories of the patterns in their order, each of exactly depth path elements, at most limit in total and none
// twice. An error names the pattern, by number from 0, and what to do; it wraps a *TooMany if there are too many.
func Directories(patterns []string, depth, limit int) ([]string, error) {
	return Paths("directories", patterns, depth, limit)
}

// Paths is Directories for the patterns of another field, which errors name.
func Paths(field string, patterns []string, depth, limit int) ([]string, error) {
	var all []string
	from := map[string]int{}
	for i, pattern := range patterns {
		expanded, err := Expand(pattern, limit-len(all))
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, inTotal(err, len(all), limit))
		}
		for _, directory := range expanded {
			if fault := check(directory, depth); fault != "" {
				return nil, fmt.Errorf("%s[%d]: pattern %q gives %q: %s", field, i, pattern, directory, fault)
			}
			if first, twice := from[directory]; twice {
				if first == i {
					return nil, fmt.Errorf("%s[%d]: pattern %q gives %q twice; list it once", field, i, pattern, directory)
				}
				return nil, fmt.Errorf("%s[%d]: pattern %q gives %q, and so does %s[%d], pattern %q; list it once", field, i, pattern, directory, field, first, patterns[first])
			}
			from[directory] = i
			all = append(all, directory)
		}
	}
	return all, nil
}

// inTotal adds the directories of earlier patterns to the count of a TooMany.
func inTotal(err error, before, limit int) error {
	var many *TooMany
	if !errors.As(err, &many) {
		return err
	}
	total := many.Count + uint64(before)
	if total < many.Count {
		total = many.Count
	}
	return &TooMany{Pattern: many.Pattern, Count: total, Limit: limit}
}

// check is what is wrong with a directory; "" if nothing is.
func check(directory string, depth int) string {
	elements := strings.Split(directory, "/")
	for _, element := range elements {
		switch {
		case element == "":
			return "a path element is empty; remove the / at the start, at the end, or one of two in a row"
		case element == "." || element == "..":
			return fmt.Sprintf("the path element %q is not allowed; name the directory itself", element)
		case strings.HasPrefix(element, reserved):
			return fmt.Sprintf("names that begin with %q are those of Howdah's own directories; use another name", reserved)
		case len(element) > maxElement:
			return fmt.Sprintf("a path element has %d bytes; %d is the most", len(element), maxElement)
		}
	}
	if len(elements) != depth {
		return fmt.Sprintf("it has %s; spec.depth asks for %d", count(len(elements), "path element"), depth)
	}
	return ""
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
