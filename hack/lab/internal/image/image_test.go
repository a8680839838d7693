package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func makeImage(t *testing.T, program, dir string) Parts {
	t.Helper()
	parts, err := Make(Spec{
		Name:       "howdah-lab/thing:1",
		Files:      map[string]string{"/usr/bin/thing": write(t, filepath.Join(t.TempDir(), "thing"), program)},
		Entrypoint: []string{"/usr/bin/thing"},
	}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func checkParts(t *testing.T, parts Parts, dir string) {
	t.Helper()
	for _, part := range parts.All() {
		file, err := os.Open(filepath.Join(dir, part.Digest.Hex))
		if err != nil {
			t.Error(err)
			continue
		}
		got, size, err := v1.SHA256(file)
		if err != nil || got != part.Digest || size != part.Size {
			t.Errorf("part %s is %s of %d bytes, want %d (%v)", part.Digest, got, size, part.Size, err)
		}
		file.Close()
	}
}

func TestAnImageIsMadeOfItsFilesAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parts")
	parts := makeImage(t, "same", dir)
	checkParts(t, parts, dir)
	if len(parts.Names) != 1 || parts.Names[0] != "docker.io/howdah-lab/thing:1" || len(parts.Layers) != 1 {
		t.Errorf("Make = %+v", parts)
	}
	if again := makeImage(t, "same", t.TempDir()); again.Manifest.Digest != parts.Manifest.Digest {
		t.Error("the same files make two images")
	}
	if other := makeImage(t, "other", dir); other.Manifest.Digest == parts.Manifest.Digest || other.ID() == parts.ID() {
		t.Error("another program makes the same image")
	}
	text, err := os.ReadFile(filepath.Join(dir, parts.ID()))
	var config v1.ConfigFile
	if err != nil || json.Unmarshal(text, &config) != nil || config.Config.Entrypoint[0] != "/usr/bin/thing" ||
		config.RootFS.DiffIDs[0] != parts.Layers[0].Digest {
		t.Errorf("its configuration is %s, %v", text, err)
	}
}

func TestThePartsArePlacedWithAnIndexForTheLoader(t *testing.T) {
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "inbox")
	parts := makeImage(t, "one", dir)
	if err := parts.Place(dir, target); err != nil {
		t.Fatal(err)
	}
	checkParts(t, parts, target)
	// As in hack/lab/loader.
	var index struct {
		Names    []string
		Manifest struct {
			Digest string
			Size   int64
		}
	}
	data, err := os.ReadFile(filepath.Join(target, "index.json"))
	if err != nil || json.Unmarshal(data, &index) != nil || index.Manifest.Digest != parts.Manifest.Digest.String() || index.Manifest.Size == 0 {
		t.Errorf("index.json = %s, %v", data, err)
	}
}

// entry is a file of a docker-archive, or with link a symbolic link.
type entry struct{ name, text, link string }

// archiveOf writes a docker-archive in the way buildah does: layers are not compressed.
func archiveOf(t *testing.T, entries ...entry) string {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: 0o644, Size: int64(len(e.text))}
		if e.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "image.tar"), out.String())
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	digest, _, err := v1.SHA256(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

const manifest = `[{"Config":"c.json","RepoTags":["x:1"],"Layers":["l.tar","same/layer.tar"]}]`

func configOf(layers ...string) string {
	return `{"rootfs":{"type":"layers","diff_ids":["` + strings.Join(layers, `","`) + `"]}}`
}

// A layer that occurs twice is a link the second time.
func TestSplit(t *testing.T) {
	layer := strings.Repeat("a layer", 1000)
	file := archiveOf(t, entry{name: "l.tar", text: layer}, entry{name: "same/layer.tar", link: "../l.tar"},
		entry{name: "c.json", text: configOf(digestOf(t, layer), digestOf(t, layer))}, entry{name: "manifest.json", text: manifest})
	dir := filepath.Join(t.TempDir(), "parts")
	for range 2 { // The second time the layer is there.
		parts, err := Split(file, dir)
		if err != nil {
			t.Fatal(err)
		}
		checkParts(t, parts, dir)
		if len(parts.Names) != 1 || parts.Names[0] != "docker.io/library/x:1" || len(parts.Layers) != 2 || parts.Layers[0].Digest.String() != digestOf(t, layer) {
			t.Errorf("Split = %+v", parts)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	named := entry{name: "manifest.json", text: `[{"Config":"c.json","RepoTags":["x:1"],"Layers":["l.tar"]}]`}
	for name, tc := range map[string]struct {
		file, want string
	}{
		"no archive":  {write(t, filepath.Join(t.TempDir(), "a.tar"), "no archive at all"), "a.tar: no docker-archive"},
		"no manifest": {archiveOf(t, entry{name: "l.tar"}), "manifest.json not found"},
		"a damaged layer": {
			archiveOf(t, entry{name: "l.tar", text: "other"}, entry{name: "c.json", text: configOf(digestOf(t, "this"))}, named), "layer 1: damaged",
		},
		"a layer too few": {archiveOf(t, entry{name: "c.json", text: configOf(digestOf(t, "this"))}, named), "l.tar not found"},
		"two images":      {archiveOf(t, entry{name: "manifest.json", text: "[{},{}]"}), "single image"},
		"no name":         {archiveOf(t, entry{name: "c.json", text: "{}"}, entry{name: "manifest.json", text: `[{"Config":"c.json"}]`}), "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := Split(tc.file, dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	old := write(t, filepath.Join(dir, "old"), "")
	fresh := write(t, filepath.Join(dir, "fresh"), "")
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if err := Prune(dir, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an unused part is still there")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("a part in use has gone")
	}
}

func TestFullName(t *testing.T) {
	for short, want := range map[string]string{
		"debian":                      "docker.io/library/debian:latest",
		"debian:13":                   "docker.io/library/debian:13",
		"docker.io/debian:13":         "docker.io/library/debian:13",
		"howdah/howdah:dev":           "docker.io/howdah/howdah:dev",
		"docker.io/howdah/howdah:dev": "docker.io/howdah/howdah:dev",
		"localhost/howdah:dev":        "localhost/howdah:dev",
		"example.com/a/b/c:1":         "example.com/a/b/c:1",
		"localhost:5000/howdah":       "localhost:5000/howdah:latest",
	} {
		if got, err := FullName(short); err != nil || got != want {
			t.Errorf("FullName(%q) = %q, %v, want %q", short, got, err, want)
		}
	}
}
