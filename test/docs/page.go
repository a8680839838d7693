package docs

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Page is what is known of one Markdown file.
type Page struct {
	// File is its path from the root of the repository, with slashes.
	File string
	// Title is its first heading.
	Title string
	// Anchors are what a link can name after #, as GitHub makes them of headings.
	Anchors map[string]bool
	Links   []Link
	Blocks  []Block
}

// Link is a link or an image.
type Link struct {
	Line   int
	Target string
}

// Block is a block of code. Language is what stands behind the fence; indented blocks have none.
type Block struct {
	Line           int
	Language, Text string
	// Marker is the comment right before the block, without <!-- and -->.
	Marker string
}

// skipped are folders that hold no documentation of this project.
var skipped = []string{".git", ".test-results", "bin", "node_modules", "dist", "site"}

// Files are the Markdown files below a folder, by their paths from there.
func Files(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && slices.Contains(skipped, entry.Name()) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(path, ".md") {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(relative))
		}
		return nil
	})
	return files, err
}

// Read reads one file of the repository at root.
func Read(root, file string) (Page, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return Page{}, err
	}
	page := parse(string(text))
	page.File = file
	return page, nil
}

var (
	heading = regexp.MustCompile(`^#{1,6} +(.*)$`)
	// inline is a link or an image, target without a title. Targets with spaces are not used here.
	inline = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	anchor = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	code   = regexp.MustCompile("`[^`]*`")
	marker = regexp.MustCompile(`^\s*<!--\s*(.*?)\s*-->\s*$`)
	fence  = regexp.MustCompile("^(\\s*)(```+|~~~+)\\s*(\\w*)")
)

// reading is the state of parse between two lines.
type reading struct {
	page   Page
	number int
	// closing ends the fenced block that is read, "" outside of one; indented is true inside of an indented one.
	closing  string
	indented bool
	block    Block
	lines    []string
	// marker is the last comment, while nothing but empty lines has followed it; blank is true after an empty line.
	marker string
	blank  bool
}

func parse(text string) Page {
	r := reading{page: Page{Anchors: map[string]bool{}}, blank: true}
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		r.number++
		r.line(scanner.Text())
	}
	r.end()
	return r.page
}

func (r *reading) line(line string) {
	trimmed := strings.TrimSpace(line)
	if r.closing != "" {
		if strings.HasPrefix(trimmed, r.closing) {
			r.end()
			return
		}
		r.lines = append(r.lines, line)
		return
	}
	if begins := fence.FindStringSubmatch(line); begins != nil {
		r.end()
		r.begin(begins[3])
		r.closing = begins[2]
		return
	}
	inside := strings.HasPrefix(line, "    ") && trimmed != ""
	switch {
	case r.indented && (inside || trimmed == ""):
		r.lines = append(r.lines, line)
		return
	case inside && r.blank:
		r.begin("")
		r.indented = true
		r.lines = append(r.lines, line)
		return
	}
	r.end()
	r.blank = trimmed == ""
	if r.blank {
		return
	}
	r.marker = ""
	if comment := marker.FindStringSubmatch(line); comment != nil {
		r.marker, r.blank = comment[1], true
		return
	}
	r.prose(line)
}

func (r *reading) begin(language string) {
	r.block, r.lines = Block{Line: r.number, Language: language, Marker: r.marker}, nil
	r.marker = ""
}

func (r *reading) end() {
	if r.closing == "" && !r.indented {
		return
	}
	r.block.Text = strings.TrimRight(strings.Join(r.lines, "\n"), "\n ")
	r.page.Blocks = append(r.page.Blocks, r.block)
	// What follows an indented block had an empty line before it, or it would be a part of it.
	r.blank = true
	r.closing, r.indented = "", false
}

func (r *reading) prose(line string) {
	if found := heading.FindStringSubmatch(line); found != nil {
		if r.page.Title == "" {
			r.page.Title = found[1]
		}
		r.addAnchor(Slug(found[1]))
	}
	for _, found := range anchor.FindAllStringSubmatch(line, -1) {
		r.page.Anchors[found[1]] = true
	}
	for _, found := range inline.FindAllStringSubmatch(code.ReplaceAllString(line, "``"), -1) {
		r.page.Links = append(r.page.Links, Link{r.number, found[1]})
	}
}

// addAnchor gives the second heading of the same words -1, the third -2.
func (r *reading) addAnchor(slug string) {
	unique := slug
	for i := 1; r.page.Anchors[unique]; i++ {
		unique = slug + "-" + string(rune('0'+i))
	}
	r.page.Anchors[unique] = true
}

var (
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noLabel = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// Slug is what GitHub makes of a heading's text.
func Slug(text string) string {
	text = linked.ReplaceAllString(strings.TrimSpace(text), "$1")
	return strings.ReplaceAll(noLabel.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}
