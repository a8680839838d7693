package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/licenseclassifier/v2/assets"
	"golang.org/x/mod/module"
)

// unknownLicence is SPDX's word for a licence that was not found out.
const unknownLicence = "NOASSERTION"

// docFolder has a folder for each Debian package, with its file copyright.
const docFolder = "usr/share/doc/"

// licenceFiles reads the files copyright of an image, by package. A folder that is a link to another package's has that one's.
func licenceFiles(archive string) (map[string][]byte, error) {
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	texts, links := map[string][]byte{}, map[string]string{}
	for _, layer := range layers {
		reader, err := layer.Uncompressed()
		if err != nil {
			return nil, err
		}
		err = readLicences(reader, texts, links)
		_ = reader.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
	}
	for name, target := range links {
		if text, found := texts[target]; found && texts[name] == nil {
			texts[name] = text
		}
	}
	return texts, nil
}

func readLicences(layer io.Reader, texts map[string][]byte, links map[string]string) error {
	from := tar.NewReader(layer)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, below := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(header.Name, "./"), "/"), docFolder)
		switch {
		case !below:
		case header.Typeflag == tar.TypeSymlink && !strings.Contains(name, "/"):
			links[name] = path.Base(header.Linkname)
		case header.Typeflag == tar.TypeReg && path.Base(name) == "copyright" && strings.Count(name, "/") == 1:
			if texts[path.Dir(name)], err = io.ReadAll(from); err != nil {
				return err
			}
		}
	}
}

// spdxOf are SPDX's names for the short names of Debian's copyright format, where the two differ.
var spdxOf = map[string]string{
	"Apache-2": "Apache-2.0", "Artistic": "Artistic-1.0-Perl", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause",
	"BSD-4-clause": "BSD-4-Clause", "CC0": "CC0-1.0", "Expat": "MIT", "zlib": "Zlib", "public-domain": "",
	"GPL-1": "GPL-1.0-only", "GPL-1+": "GPL-1.0-or-later", "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later",
	"GPL-2.0": "GPL-2.0-only", "GPL-2.0+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only", "GPL-3+": "GPL-3.0-or-later",
	"LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later",
	"LGPL-3": "LGPL-3.0-only", "LGPL-3+": "LGPL-3.0-or-later",
}

// ownNames are licences whose names Debian and SPDX have alike.
var ownNames = []string{"Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "Zlib"}

// debianLicences are the licences that a file copyright of Debian's format names, as SPDX has them and joined by AND: what is in
// the package is under all of them. A name that SPDX does not have, or a file in another form, is read by its text.
func debianLicences(text []byte) string {
	found := map[string]bool{}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		short, isLicence := strings.CutPrefix(scanner.Text(), "License:")
		if !isLicence {
			continue
		}
		for _, name := range strings.FieldsFunc(strings.TrimSpace(short), func(r rune) bool { return r == ' ' || r == ',' }) {
			known, listed := spdxOf[name]
			switch {
			case listed && known != "":
				found[known] = true
			case slices.Contains(ownNames, name):
				found[name] = true
			}
		}
	}
	if len(found) == 0 {
		return textLicences(text)
	}
	return joined(found)
}

// classifier knows the texts of licences. Making it takes a second.
var classifier = sync.OnceValues(assets.DefaultClassifier)

// textLicences are the licences whose texts are in a text.
func textLicences(text []byte) string {
	known, err := classifier()
	if err != nil {
		return unknownLicence
	}
	found := map[string]bool{}
	for _, match := range known.Match(text).Matches {
		if match.MatchType == "License" {
			found[match.Name] = true
		}
	}
	return joined(found)
}

// moduleLicences are those of a Go module, read from the module cache: what was just built is there.
func moduleLicences(cache, name, version string) string {
	if name == "stdlib" {
		return "BSD-3-Clause"
	}
	escaped, err := module.EscapePath(name)
	if err != nil {
		return unknownLicence
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil {
		return unknownLicence
	}
	files, _ := filepath.Glob(filepath.Join(cache, filepath.FromSlash(escaped)+"@"+escapedVersion, "[LlCc][IiOo][CcPp][EeYy][NnIi]*")) // The pattern is right.
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a module's licence
		if err != nil {
			continue
		}
		if licences := textLicences(text); licences != unknownLicence {
			return licences
		}
	}
	return unknownLicence
}

func joined(found map[string]bool) string {
	if len(found) == 0 {
		return unknownLicence
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, " AND ")
}
