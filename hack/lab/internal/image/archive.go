// Package image reads and writes container images as docker-archive files, the
// one form that buildah writes and containerd imports without a registry.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Spec is a small image: some files and how to start one of them.
type Spec struct {
	Name       string
	Files      map[string]string // Path in the image -> path on the host.
	Entrypoint []string
	User       string
}

// Summary is what tells one image archive from another.
type Summary struct {
	ID    string   // The digest of its configuration.
	Names []string // In full, as containerd knows them.
}

type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// epoch is the time of everything in an image, so that the same input makes the
// same image and nodes that have it can tell.
var epoch = time.Unix(0, 0).UTC()

// Write assembles the image into a docker-archive.
func Write(spec Spec, file string) error {
	layer, err := layerOf(spec.Files)
	if err != nil {
		return err
	}
	layerSum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64",
		"os":           "linux",
		"created":      epoch,
		"config":       map[string]any{"Entrypoint": spec.Entrypoint, "User": spec.User, "WorkingDir": "/"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(layerSum[:])}},
	})
	if err != nil {
		return err
	}
	configSum := sha256.Sum256(config)
	configName := hex.EncodeToString(configSum[:]) + ".json"
	layerName := hex.EncodeToString(layerSum[:]) + ".tar"
	manifest, err := json.Marshal([]manifestEntry{{Config: configName, RepoTags: []string{spec.Name}, Layers: []string{layerName}}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, part := range []struct {
		name string
		data []byte
	}{{layerName, layer}, {configName, config}, {"manifest.json", manifest}} {
		if err := addFile(archive, part.name, 0o644, part.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return sys.WriteFile(file, out.Bytes(), 0o644)
}

func layerOf(files map[string]string) ([]byte, error) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, name := range names {
		if err := addParents(archive, made, strings.TrimPrefix(name, "/")); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(files[name])
		if err != nil {
			return nil, err
		}
		if err := addFile(archive, strings.TrimPrefix(name, "/"), 0o755, data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func addParents(archive *tar.Writer, made map[string]bool, name string) error {
	dir := path.Dir(name)
	if dir == "." || made[dir] {
		return nil
	}
	if err := addParents(archive, made, dir); err != nil {
		return err
	}
	made[dir] = true
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch})
}

func addFile(archive *tar.Writer, name string, mode int64, data []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: epoch}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}

// readManifest finds the one image of a docker-archive.
func readManifest(file string) (manifestEntry, Summary, error) {
	in, err := os.Open(file)
	if err != nil {
		return manifestEntry{}, Summary{}, err
	}
	defer in.Close()
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return manifestEntry{}, Summary{}, fmt.Errorf("%s: no manifest.json, so no docker-archive", filepath.Base(file))
		}
		if err != nil {
			return manifestEntry{}, Summary{}, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		if path.Clean(header.Name) == "manifest.json" {
			return parseManifest(archive)
		}
	}
}

func parseManifest(in io.Reader) (manifestEntry, Summary, error) {
	var entries []manifestEntry
	if err := json.NewDecoder(in).Decode(&entries); err != nil {
		return manifestEntry{}, Summary{}, fmt.Errorf("manifest.json: %w", err)
	}
	if len(entries) != 1 || len(entries[0].RepoTags) == 0 {
		return manifestEntry{}, Summary{}, fmt.Errorf("manifest.json: want one image with a name, found %d images", len(entries))
	}
	summary := Summary{ID: strings.TrimSuffix(path.Base(entries[0].Config), ".json")}
	for _, tag := range entries[0].RepoTags {
		summary.Names = append(summary.Names, FullName(tag))
	}
	return entries[0], summary, nil
}

// FullName completes a short image name the way containerd and kubelet do.
func FullName(name string) string {
	const hub = "docker.io/"
	first, rest, nested := strings.Cut(name, "/")
	switch {
	case !nested:
		name = hub + "library/" + name
	case first == "docker.io" && !strings.Contains(rest, "/"):
		name = hub + "library/" + rest
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		name = hub + name
	}
	if !strings.Contains(path.Base(name), ":") && !strings.Contains(name, "@") {
		name += ":latest"
	}
	return name
}
