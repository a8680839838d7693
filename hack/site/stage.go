package main

import (
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/howdah/howdah/test/docs"
)

// stager copies pages, and what they link to, from a repository.
type stager struct {
	root, into string
	pages      map[string]docs.Page
	// copied are files and folders that some page links to.
	copied map[string]bool
}

// stage writes INTO/content, which has the pages with links and lists as MkDocs wants them, and INTO/mkdocs.yml.
func stage(root, into string) error {
	files, err := docs.Files(root)
	if err != nil {
		return err
	}
	s := stager{root: root, into: into, pages: map[string]docs.Page{}, copied: map[string]bool{}}
	for _, file := range files {
		if s.pages[file], err = docs.Read(root, file); err != nil {
			return err
		}
	}
	for file := range s.pages {
		if err := s.page(file); err != nil {
			return err
		}
	}
	for file := range s.copied {
		if err := s.copy(file); err != nil {
			return err
		}
	}
	return s.settings()
}

// settings writes mkdocs.yml: that of this folder, with the navigation.
func (s *stager) settings() error {
	base, err := os.ReadFile(filepath.Join(s.root, "hack", "site", "mkdocs.yml"))
	if err != nil {
		return err
	}
	contents, err := os.ReadFile(filepath.Join(s.root, "docs", "README.md"))
	if err != nil {
		return err
	}
	return write(filepath.Join(s.into, "mkdocs.yml"), string(base)+"docs_dir: content\n"+s.navigation(string(contents)))
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	marker = regexp.MustCompile(`^(\s*)<!-- (run by|not run): (.*?) -->$`)
	fenced = regexp.MustCompile("^\\s*(```+|~~~+)")
	titled = regexp.MustCompile(`^(#{1,6}) +(.*)$`)
)

// page writes one, with its front matter, links and headings as they are on the site.
func (s *stager) page(file string) error {
	text, err := os.ReadFile(filepath.Join(s.root, file))
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "---\ntitle: %q\nsearch:\n  boost: %s\n---\n", s.title(file), weight(file))
	anchors := map[string]bool{}
	inFence := false
	for line := range strings.SplitSeq(indented(string(text)), "\n") {
		switch {
		case fenced.MatchString(line):
			inFence = !inFence
		case inFence:
		case marker.MatchString(line):
			line = whoRuns(line)
		default:
			line = link.ReplaceAllStringFunc(line, func(found string) string { return "](" + s.target(file, found[2:len(found)-1]) + ")" })
			line = withAnchor(line, anchors)
		}
		out.WriteString(line + "\n")
	}
	return write(filepath.Join(s.into, "content", filepath.FromSlash(file)), out.String())
}

// title is a page's first heading, without marks.
func (s *stager) title(file string) string {
	return strings.NewReplacer("`", "", "*", "").Replace(s.pages[file].Title)
}

// weight is what a page counts in the search: pages for users before notes of their day, and all else last.
func weight(file string) string {
	switch {
	case strings.HasPrefix(file, "docs/design/"):
		return "0.2"
	case strings.HasPrefix(file, "docs/"), !strings.Contains(file, "/"):
		return "2"
	}
	return "0.1"
}

// withAnchor gives a heading the anchor that GitHub gives it.
func withAnchor(line string, taken map[string]bool) string {
	found := titled.FindStringSubmatch(line)
	if found == nil {
		return line
	}
	slug := docs.Slug(found[2])
	unique := slug
	for i := 1; taken[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", slug, i)
	}
	taken[unique] = true
	return fmt.Sprintf("%s { #%s }", line, unique)
}

// whoRuns is what a reader sees of the comment before commands.
func whoRuns(comment string) string {
	parts := marker.FindStringSubmatch(comment)
	text := "Not run by a test: " + parts[3]
	if parts[2] == "run by" {
		by, _, _ := strings.Cut(parts[3], " (")
		text = "Run by " + by
	}
	text = strings.NewReplacer("_", `\_`, "*", `\*`).Replace(html.EscapeString(text))
	return parts[1] + text + "\n" + parts[1] + "{: .ran }\n"
}

// target is a link of a page of the repository, as it is on the site.
func (s *stager) target(file, target string) string {
	if strings.Contains(target, ":") || strings.HasPrefix(target, "#") {
		return target
	}
	name, anchor, _ := strings.Cut(target, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	to := path.Join(path.Dir(file), name)
	if _, isPage := s.pages[to]; isPage {
		return name + anchor
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(to)))
	if err != nil {
		return target // The check of the site reports it.
	}
	if _, hasPage := s.pages[path.Join(to, "README.md")]; info.IsDir() && hasPage {
		return path.Join(name, "README.md")
	}
	s.copied[to] = true
	if info.IsDir() {
		return path.Join(name, "files.md")
	}
	return shown(name)
}

// shown is the name of a copied file: browsers show text and pictures, and would save others.
func shown(name string) string {
	switch path.Ext(name) {
	case ".svg", ".png", ".txt":
		return name
	}
	return name + ".txt"
}

// copy takes a file along, or lists a folder and takes its files along.
func (s *stager) copy(file string) error {
	from := filepath.Join(s.root, filepath.FromSlash(file))
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return write(filepath.Join(s.into, "content", filepath.FromSlash(shown(file))), string(text))
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	list := fmt.Sprintf("---\ntitle: %q\n---\n# %s\n\n", file, file)
	for _, entry := range entries {
		name := entry.Name()
		below := path.Join(file, name)
		switch page, isPage := s.pages[below]; {
		case isPage:
			list += fmt.Sprintf("- [%s](%s)\n", page.Title, name)
		case entry.IsDir():
			list += fmt.Sprintf("- [%s/](%s/files.md)\n", name, name)
		default:
			list += fmt.Sprintf("- [%s](%s)\n", name, shown(name))
		}
		if _, isPage := s.pages[below]; !isPage {
			if err := s.copy(below); err != nil {
				return err
			}
		}
	}
	return write(filepath.Join(s.into, "content", filepath.FromSlash(file), "files.md"), list)
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // below the folder that the caller named, for whoever serves it
}
