package counters

import (
	"strconv"
	"strings"
)

// ParseSample splits a line of Prometheus' text format, `name{label="value",…} number`. Lines that are no sample give ok false.
func ParseSample(line string) (name string, labels map[string]string, value float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", nil, 0, false
	}
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return "", nil, 0, false
	}
	name, rest := line[:end], line[end:]
	labels = map[string]string{}
	if rest[0] == '{' {
		if rest, ok = parseLabels(rest[1:], labels); !ok {
			return "", nil, 0, false
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", nil, 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil && value >= 0
}

// parseLabels reads up to and with the closing brace, and returns what follows it.
func parseLabels(s string, labels map[string]string) (rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, ", ")
		if strings.HasPrefix(s, "}") {
			return s[1:], true
		}
		key, after, found := strings.Cut(s, `="`)
		if !found {
			return "", false
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return "", false
		}
		labels[key] = after[:end]
		s = after[end+1:]
	}
}
