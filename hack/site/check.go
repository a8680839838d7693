package main

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
)

var (
	refers = regexp.MustCompile(`\s(?:href|src)="([^"]*)"`)
	named  = regexp.MustCompile(`\s(?:id|name)="([^"]*)"`)
	// loaded is what a browser would fetch from elsewhere by itself.
	loaded = regexp.MustCompile(`<(?:script|img|iframe|link)\b[^>]*\s(?:src|href)="((?:https?:)?//[^"]*)"`)
	shownC = regexp.MustCompile(`(?s)<pre.*?</pre>|<code.*?</code>`)
)

// check reads all pages of a site and counts them and their links. Links to other sites are not followed.
func check(public string) (pages, links int, err error) {
	texts := map[string]string{}
	site := os.DirFS(public)
	err = fs.WalkDir(site, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".html") {
			return err
		}
		text, err := fs.ReadFile(site, file)
		texts[file] = shownC.ReplaceAllString(string(text), "")
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	anchors := map[string]map[string]bool{}
	for file, text := range texts {
		anchors[file] = map[string]bool{}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			anchors[file][html.UnescapeString(found[1])] = true
		}
	}
	var faults []error
	for file, text := range texts {
		for _, found := range loaded.FindAllStringSubmatch(text, -1) {
			faults = append(faults, fmt.Errorf("%s: loads %s from elsewhere", file, found[1]))
		}
		for _, found := range refers.FindAllStringSubmatch(text, -1) {
			links++
			target, err := url.Parse(html.UnescapeString(found[1]))
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", file, err))
				continue
			}
			if target.Scheme != "" || target.Host != "" {
				continue
			}
			to := file
			if target.Path != "" {
				to = path.Join(path.Dir(file), target.Path)
			}
			if info, err := fs.Stat(site, to); err != nil || info.IsDir() {
				faults = append(faults, fmt.Errorf("%s: nothing at %s", file, found[1]))
			} else if target.Fragment != "" && !anchors[to][target.Fragment] {
				faults = append(faults, fmt.Errorf("%s: no heading for %s", file, found[1]))
			}
		}
	}
	if links == 0 {
		faults = append(faults, fmt.Errorf("no page with a link in %s", public))
	}
	return len(texts), links, errors.Join(faults...)
}
