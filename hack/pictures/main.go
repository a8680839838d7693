// Command pictures makes the pictures of the documentation from drawings in text: docs/pictures/NAME.txt becomes
// NAME.svg beside it. The first line of a drawing is its title, after "# ". It is a module of its own, so that the product
// does not depend on what draws.
//
//	go -C hack/pictures run . ../../docs/pictures
package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/bep/goat"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures FOLDER")
		os.Exit(2)
	}
	drawn, err := drawAll(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
	for file, picture := range drawn {
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "pictures:", err)
			os.Exit(1)
		}
	}
}

// drawAll gives the pictures of all drawings in a folder, by the files that they belong into.
func drawAll(folder string) (map[string][]byte, error) {
	drawings, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(drawings) == 0 {
		return nil, fmt.Errorf("no drawing (*.txt) in %s", folder)
	}
	drawn := map[string][]byte{}
	for _, drawing := range drawings {
		text, err := os.ReadFile(drawing) //nolint:gosec // who runs this names it
		if err != nil {
			return nil, err
		}
		picture, err := draw(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", drawing, err)
		}
		drawn[strings.TrimSuffix(drawing, ".txt")+".svg"] = picture
	}
	return drawn, nil
}

// style has the lines and letters in colours that are read on a light and on a dark page.
const style = `<style>
svg { color: #1b1f24; background: #ffffff; }
text { font-size: 13px; }
@media (prefers-color-scheme: dark) { svg { color: #e6e6e6; background: #16191d; } }
</style>
`

// draw makes an SVG of a drawing.
func draw(text string) ([]byte, error) {
	first, body, _ := strings.Cut(text, "\n")
	title, found := strings.CutPrefix(first, "# ")
	if !found {
		return nil, errors.New("the first line is to be the title: # What it shows")
	}
	picture := goat.BuildSVG(strings.NewReader(strings.Trim(body, "\n")))
	var svg bytes.Buffer
	fmt.Fprintf(&svg, "<!-- Made by hack/pictures from the .txt beside it. -->\n")
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\" role=\"img\""+
		" font-family=\"Menlo, DejaVu Sans Mono, monospace\">\n", picture.Width, picture.Height)
	fmt.Fprintf(&svg, "<title>%s</title>\n%s%s</svg>\n", html.EscapeString(title), style, picture.Body)
	return svg.Bytes(), nil
}
