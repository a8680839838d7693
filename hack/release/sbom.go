package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"go/build"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// part is one thing that a release contains: a Go module, or a Debian package.
type part struct {
	name, version, purl string
	// checksum is a Go module's (h1:…), "" of others.
	checksum string
	// licences is an expression of SPDX's, or "" if there is none to name.
	licences string
}

// writeSBOM lists what is in programs, by what the Go linker wrote into them, and in an image, by Debian's own database.
func writeSBOM(out io.Writer, name, version, archive string, programs []string, at time.Time) error {
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name + "-" + version,
		DocumentNamespace: "https://github.com/howdah/howdah/sbom/" + name + "-" + version,
		CreationInfo: &spdx.CreationInfo{
			Created: at.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "howdah/hack/release"}},
		},
	}
	root := element(part{name: name, version: version})
	root.PackageSPDXIdentifier = "Package-root"
	document.Packages = []*spdx.Package{root}
	relate := func(from, to common.ElementID, how string) {
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: how,
		})
	}
	relate("DOCUMENT", root.PackageSPDXIdentifier, common.TypeRelationshipDescribe)
	parts := map[string]part{}
	for _, program := range programs {
		if err := modulesOf(program, parts); err != nil {
			return err
		}
	}
	if archive != "" {
		status, err := fileOf(archive, "var/lib/dpkg/status")
		if err != nil {
			return err
		}
		licences, err := licenceFiles(archive)
		if err != nil {
			return err
		}
		packagesOf(status, licences, parts)
		if err := addGanesha(archive, licences, parts); err != nil {
			return err
		}
	}
	if len(parts) == 0 {
		return fmt.Errorf("nothing is in %s: name programs or an image", name)
	}
	for _, purl := range sorted(parts) {
		p := element(parts[purl])
		document.Packages = append(document.Packages, p)
		relate(root.PackageSPDXIdentifier, p.PackageSPDXIdentifier, common.TypeRelationshipContains)
	}
	return spdxjson.Write(document, out, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))
}

// modulesOf adds the modules that a Go program was linked of, Go's own library among them.
func modulesOf(program string, parts map[string]part) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	add := func(name, version, sum string) {
		purl := "pkg:golang/" + name + "@" + url.PathEscape(version)
		parts[purl] = part{name, version, purl, sum, moduleLicences(moduleCache(), name, version)}
	}
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")
	for _, dependency := range info.Deps {
		module := dependency
		for module.Replace != nil {
			module = module.Replace
		}
		add(module.Path, module.Version, module.Sum)
	}
	return nil
}

// packagesOf adds the Debian packages that are installed, by dpkg's status file.
func packagesOf(status []byte, licences map[string][]byte, parts map[string]part) {
	for stanza := range bytes.SplitSeq(status, []byte("\n\n")) {
		field := map[string]string{}
		scanner := bufio.NewScanner(bytes.NewReader(stanza))
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			if name, value, found := strings.Cut(scanner.Text(), ": "); found && !strings.HasPrefix(name, " ") {
				field[name] = value
			}
		}
		if field["Package"] == "" || !strings.HasSuffix(field["Status"], " installed") {
			continue
		}
		purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", field["Package"], url.QueryEscape(field["Version"]), field["Architecture"])
		parts[purl] = part{name: field["Package"], version: field["Version"], purl: purl, licences: debianLicences(licences[field["Package"]])}
	}
}

// addGanesha adds the nfs-ganesha that Howdah builds, which no package manager knows: internal/ganesha/build/build.sh says what it is.
func addGanesha(archive string, licences map[string][]byte, parts map[string]part) error {
	if _, built := licences["nfs-ganesha"]; !built {
		return nil
	}
	text, err := fileOf(archive, docFolder+"nfs-ganesha/version")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return fmt.Errorf("%snfs-ganesha/version of %s says %q: want nfs-ganesha and a version", docFolder, archive, text)
	}
	purl := "pkg:generic/nfs-ganesha@" + url.PathEscape(fields[1]+"+howdah")
	parts[purl] = part{name: "nfs-ganesha", version: fields[1] + "+howdah", purl: purl, licences: "LGPL-3.0-or-later"}
	return nil
}

// moduleCache is the folder that Go keeps modules in.
func moduleCache() string {
	if folder := os.Getenv("GOMODCACHE"); folder != "" {
		return folder
	}
	return filepath.Join(build.Default.GOPATH, "pkg", "mod")
}

var noID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// element is a part as SPDX has it. What its licences are is declared by the part; nothing is concluded.
func element(p part) *spdx.Package {
	sum := sha256.Sum256([]byte(p.purl))
	e := &spdx.Package{
		PackageName: p.name, PackageVersion: p.version, PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: cmp.Or(p.licences, unknownLicence), PackageCopyrightText: "NOASSERTION",
		PackageSPDXIdentifier: common.ElementID("Package-" + noID.ReplaceAllString(p.name, "-") + "-" + hex.EncodeToString(sum[:4])),
	}
	if p.purl != "" {
		e.PackageExternalReferences = []*spdx.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: p.purl}}
	}
	if p.checksum != "" {
		e.PackageComment = "go.sum " + p.checksum
	}
	return e
}

func sorted(parts map[string]part) []string {
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// goVersion is the Go that a program was built with, for the statement of provenance.
func goVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.GoVersion
	}
	return "unknown"
}

// digest is the SHA-256 of a file.
func digest(file string) (string, error) {
	f, err := os.Open(file) //nolint:gosec // who runs this names it
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
