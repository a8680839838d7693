package main

import (
	"regexp"
	"strings"
)

var item = regexp.MustCompile(`^( *)([-*+]|\d+[.)]) +`)

// indented changes Markdown as GitHub reads it to what Python's library reads alike: what belongs to an item of a list is
// indented by four spaces for each level, and a list has an empty line before it.
func indented(text string) string {
	var out []string
	// levels has where the content of each open item begins.
	var levels []int
	fence, blank, block := "", true, false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		if trimmed == "" {
			out, blank = append(out, ""), true
			continue
		}
		if fence == "" {
			for len(levels) > 0 && indent < levels[len(levels)-1] {
				levels, block = levels[:len(levels)-1], false
			}
		}
		content := 0
		if len(levels) > 0 {
			content = levels[len(levels)-1]
		}
		moved := strings.Repeat(" ", 4*len(levels)+max(0, indent-content)) + trimmed
		switch opens := fenced.FindStringSubmatch(line); {
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence != "":
		case opens != nil:
			fence = opens[1]
		case indent-content >= 4 && (blank || block):
			block = true
			out, blank = append(out, moved), false
			continue
		case item.MatchString(line):
			if !blank && (len(out) == 0 || !isItem(out[len(out)-1])) && len(levels) == 0 && !inList(out) {
				out = append(out, "")
			}
			levels = append(levels, len(item.FindString(line)))
		}
		out, blank, block = append(out, moved), false, false
	}
	return strings.Join(out, "\n")
}

func isItem(line string) bool { return item.MatchString(line) }

// inList tells whether the lines before this one, up to an empty one, have an item of a list.
func inList(lines []string) bool {
	for i := len(lines) - 1; i >= 0 && lines[i] != ""; i-- {
		if isItem(lines[i]) {
			return true
		}
	}
	return false
}
