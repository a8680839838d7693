package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var entry = regexp.MustCompile(`^- \[([^\]]+)\]\(([^)]+)\)`)

// navigation is MkDocs' nav, made of the lists of docs/README.md: a part for each heading, a page for each link. A page
// that is listed twice has its place where it is first. A folder gets its pages below it.
func (s *stager) navigation(contents string) string {
	var out strings.Builder
	out.WriteString("nav:\n  - Home: README.md\n")
	listed := map[string]bool{"README.md": true}
	add := func(indent, name, file string) {
		if _, isPage := s.pages[file]; !isPage || listed[file] {
			return
		}
		listed[file] = true
		fmt.Fprintf(&out, "%s- %q: %s\n", indent, name, file)
	}
	for line := range strings.Lines(contents) {
		if part, found := strings.CutPrefix(strings.TrimSpace(line), "## "); found {
			fmt.Fprintf(&out, "  - %q:\n", part)
			if len(listed) == 1 {
				add("      ", "All pages", "docs/README.md")
			}
			continue
		}
		found := entry.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		file := path.Join("docs", found[2])
		if _, isPage := s.pages[file]; isPage {
			add("      ", found[1], file)
			continue
		}
		fmt.Fprintf(&out, "      - %q:\n", found[1])
		for _, below := range s.below(file) {
			add("          ", s.title(below), below)
		}
	}
	return out.String()
}

// below are the pages of a folder, in the order of their names.
func (s *stager) below(folder string) []string {
	var all []string
	for file := range s.pages {
		if path.Dir(file) == folder {
			all = append(all, file)
		}
	}
	slices.Sort(all)
	return all
}
