package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Parts is an image as single files, named by their SHA-256, in the form that a
// node's loader reads (hack/lab/loader).
type Parts struct {
	Names    []string
	Manifest Part
	Config   Part
	Layers   []Part
}

// Part is one of the files.
type Part struct {
	Digest string // sha256:…
	Size   int64
}

// File is the part's file name.
func (p Part) File() string {
	return p.Digest[len("sha256:"):]
}

// All lists every part.
func (p Parts) All() []Part {
	return append([]Part{p.Manifest, p.Config}, p.Layers...)
}

// Split takes a docker-archive apart into dir. Layers that are there stay as they
// are: images that share a base share its files.
func Split(archive, dir string) (Parts, error) {
	entry, summary, err := readManifest(archive)
	if err != nil {
		return Parts{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Parts{}, err
	}
	wanted := map[string]bool{path.Clean(entry.Config): true}
	for _, layer := range entry.Layers {
		wanted[path.Clean(layer)] = true
	}
	found, err := extract(archive, dir, wanted)
	if err != nil {
		return Parts{}, fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	parts := Parts{Names: summary.Names, Config: found[path.Clean(entry.Config)]}
	for _, layer := range entry.Layers {
		parts.Layers = append(parts.Layers, found[path.Clean(layer)])
	}
	if err := checkLayers(filepath.Join(dir, parts.Config.File()), parts.Layers); err != nil {
		return Parts{}, fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	parts.Manifest, err = writeManifest(dir, parts)
	return parts, err
}

// extract writes the wanted entries into dir and returns what each became. The
// entry of a layer that occurs twice may be a link to the first.
func extract(archive, dir string, wanted map[string]bool) (map[string]Part, error) {
	in, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	found, links := map[string]Part{}, map[string]string{}
	reader := tar.NewReader(in)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeSymlink:
			links[name] = path.Join(path.Dir(name), header.Linkname)
		case header.Typeflag == tar.TypeLink:
			links[name] = path.Clean(header.Linkname)
		case header.Typeflag == tar.TypeReg:
			if found[name], err = writePart(dir, reader, wanted[name]); err != nil {
				return nil, err
			}
		}
	}
	for name := range wanted {
		if target, linked := links[name]; linked {
			found[name] = found[target]
		}
		if found[name].Digest == "" {
			return nil, fmt.Errorf("no %s in it", name)
		}
	}
	return found, nil
}

func writePart(dir string, in io.Reader, wanted bool) (Part, error) {
	if !wanted {
		return Part{}, nil
	}
	temp, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return Part{}, err
	}
	defer os.Remove(temp.Name()) // Gone already after a good rename.
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(temp, sum), in)
	if err != nil {
		temp.Close()
		return Part{}, err
	}
	if err := temp.Close(); err != nil {
		return Part{}, err
	}
	part := Part{Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: size}
	file := filepath.Join(dir, part.File())
	if sys.Exists(file) {
		now := time.Now()
		return part, os.Chtimes(file, now, now) // Prune goes by the last use.
	}
	return part, os.Rename(temp.Name(), file)
}

// checkLayers compares the layers with what the configuration says they are; a
// compressed layer, for one, would not do.
func checkLayers(configFile string, layers []Part) error {
	data, err := os.ReadFile(configFile)
	if err != nil {
		return err
	}
	var config struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return err
	}
	if len(config.RootFS.DiffIDs) != len(layers) {
		return fmt.Errorf("%d layers, but the configuration has %d", len(layers), len(config.RootFS.DiffIDs))
	}
	for i, layer := range layers {
		if layer.Digest != config.RootFS.DiffIDs[i] {
			return fmt.Errorf("layer %d is damaged or compressed", i+1)
		}
	}
	return nil
}

func writeManifest(dir string, parts Parts) (Part, error) {
	type descriptor struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int64  `json:"size"`
	}
	const oci = "application/vnd.oci.image."
	layers := []descriptor{}
	for _, layer := range parts.Layers {
		layers = append(layers, descriptor{oci + "layer.v1.tar", layer.Digest, layer.Size})
	}
	data, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     oci + "manifest.v1+json",
		"config":        descriptor{oci + "config.v1+json", parts.Config.Digest, parts.Config.Size},
		"layers":        layers,
	})
	if err != nil {
		return Part{}, err
	}
	sum := sha256.Sum256(data)
	part := Part{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	return part, sys.WriteFile(filepath.Join(dir, part.File()), data, 0o644)
}

// Place links the image's parts from dir into target, and writes the index that
// the loader starts from.
func (p Parts) Place(dir, target string) error {
	for _, part := range p.All() {
		if err := sys.LinkOrCopy(filepath.Join(dir, part.File()), filepath.Join(target, part.File())); err != nil {
			return err
		}
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return sys.WriteFile(filepath.Join(target, "index.json"), data, 0o644)
}

// Prune removes parts that no load has used for so long; nodes keep their own
// links to what they got.
func Prune(dir string, unused time.Duration) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < unused {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
