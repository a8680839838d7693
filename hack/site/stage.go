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
	return nil
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	marker = regexp.MustCompile(`(?m)^(\s*)<!-- (run by|not run): (.*?) -->$`)
	blocks = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// page writes one, with links as they are on the site. What is said of who runs its commands is to be seen there.
func (s *stager) page(file string) error {
	text, err := os.ReadFile(filepath.Join(s.root, file))
	if err != nil {
		return err
	}
	var out strings.Builder
	title := s.pages[file].Title
	// Said for each page: Hugo would write the names in small letters, and a folder's own page beside the folder.
	url := strings.TrimSuffix(file, ".md")
	if path.Base(file) == "README.md" {
		url = path.Join(path.Dir(file), "index")
	}
	out.WriteString(frontMatter(strings.ReplaceAll(title, "`", ""), url))
	rest := string(text)
	for rest != "" {
		prose, block := rest, ""
		if at := blocks.FindStringIndex(rest); at != nil {
			prose, block = rest[:at[0]], rest[at[0]:at[1]]
		}
		rest = rest[len(prose)+len(block):]
		prose = marker.ReplaceAllStringFunc(prose, said)
		prose = link.ReplaceAllStringFunc(prose, func(found string) string { return "](" + s.target(file, found[2:len(found)-1]) + ")" })
		out.WriteString(prose + block)
	}
	return write(filepath.Join(s.into, "content", filepath.FromSlash(contentOf(file))), out.String())
}

// frontMatter is what Hugo is told of a page. up leads to the site's root.
func frontMatter(title, url string) string {
	return fmt.Sprintf("---\ntitle: %q\nurl: /%s.html\nup: %q\n---\n", title, url, strings.Repeat("../", strings.Count(url, "/")))
}

// said is what a reader sees of the comment before commands. An empty line ends it: HTML goes on until there is one.
func said(comment string) string {
	parts := marker.FindStringSubmatch(comment)
	if parts[2] == "run by" {
		by, _, _ := strings.Cut(parts[3], " (")
		return parts[1] + `<p class="ran">Run by ` + html.EscapeString(by) + "</p>\n"
	}
	return parts[1] + `<p class="ran">Not run by a test: ` + html.EscapeString(parts[3]) + "</p>\n"
}

// contentOf is where Hugo wants a page: a folder's own is _index.md.
func contentOf(file string) string {
	if path.Base(file) == "README.md" {
		return path.Join(path.Dir(file), "_index.md")
	}
	return file
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
		page := strings.TrimSuffix(name, ".md") + ".html"
		if path.Base(to) == "README.md" {
			page = path.Join(path.Dir(name), "index.html")
		}
		return page + anchor
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(to)))
	if err != nil {
		return target // The check says so.
	}
	if _, hasPage := s.pages[path.Join(to, "README.md")]; info.IsDir() && hasPage {
		return path.Join(name, "index.html")
	}
	s.copied[to] = true
	if info.IsDir() {
		return path.Join(name, "files.html")
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
		return write(filepath.Join(s.into, "static", filepath.FromSlash(shown(file))), string(text))
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	list := frontMatter(file, file+"/files") + "# " + file + "\n\n"
	for _, entry := range entries {
		name := entry.Name()
		below := path.Join(file, name)
		switch _, isPage := s.pages[below]; {
		case isPage:
			list += fmt.Sprintf("- [%s](%s)\n", name, strings.TrimSuffix(name, ".md")+".html")
		case entry.IsDir():
			list += fmt.Sprintf("- [%s/](%s/files.html)\n", name, name)
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
