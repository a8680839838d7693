package image

import (
	"archive/tar"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func archiveOf(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	spec := Spec{
		Name:       "docker.io/howdah-lab/thing:1",
		Files:      map[string]string{"usr/bin/thing": write(t, filepath.Join(dir, "thing"), program)},
		Entrypoint: []string{"/usr/bin/thing"},
	}
	file := filepath.Join(dir, "thing.tar")
	if err := Write(spec, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWriteIsReproducible(t *testing.T) {
	a, err := os.ReadFile(archiveOf(t, "same"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(archiveOf(t, "same"))
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Error("the same files make two archives")
	}
}

func TestSplit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parts")
	parts, err := Split(archiveOf(t, "one"), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(parts.Names) != 1 || parts.Names[0] != "docker.io/howdah-lab/thing:1" || len(parts.Layers) != 1 {
		t.Errorf("Split = %+v", parts)
	}
	for _, part := range parts.All() {
		info, err := os.Stat(filepath.Join(dir, part.File()))
		if err != nil || info.Size() != part.Size {
			t.Errorf("part %s: %v, want %d bytes", part.Digest, err, part.Size)
		}
	}
	if other, err := Split(archiveOf(t, "two"), dir); err != nil || other.Manifest == parts.Manifest {
		t.Errorf("another program makes the same image (%v)", err)
	}
	target := filepath.Join(t.TempDir(), "inbox")
	if err := parts.Place(dir, target); err != nil {
		t.Fatal(err)
	}
	var index Parts
	data, err := os.ReadFile(filepath.Join(target, "index.json"))
	if err != nil || json.Unmarshal(data, &index) != nil || index.Manifest != parts.Manifest {
		t.Errorf("index.json = %s, %v", data, err)
	}
}

func TestSplitRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Split(write(t, filepath.Join(dir, "a.tar"), "no archive at all"), dir); err == nil {
		t.Error("a file that is no archive was taken")
	}
	out, err := os.Create(filepath.Join(dir, "b.tar"))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(out)
	files := [][2]string{
		{"manifest.json", `[{"Config":"c.json","RepoTags":["x:1"],"Layers":["l.tar"]}]`},
		{"c.json", `{"rootfs":{"diff_ids":["sha256:0000"]}}`},
		{"l.tar", "not what the configuration says"},
	}
	for _, file := range files {
		if err := addFile(archive, file[0], 0o644, []byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if _, err := Split(out.Name(), dir); err == nil || !strings.Contains(err.Error(), "layer 1 is damaged") {
		t.Errorf("Split of a damaged archive: %v", err)
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
		"debian":                        "docker.io/library/debian:latest",
		"debian:13":                     "docker.io/library/debian:13",
		"docker.io/debian:13":           "docker.io/library/debian:13",
		"howdah/howdah:dev":             "docker.io/howdah/howdah:dev",
		"docker.io/howdah/howdah:dev":   "docker.io/howdah/howdah:dev",
		"localhost/howdah:dev":          "localhost/howdah:dev",
		"example.com/a/b/c:1":           "example.com/a/b/c:1",
		"localhost:5000/howdah":         "localhost:5000/howdah:latest",
		"registry.example.com/x@sha256": "registry.example.com/x@sha256",
	} {
		if got := FullName(short); got != want {
			t.Errorf("FullName(%q) = %q, want %q", short, got, want)
		}
	}
}
