package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Parts is an image as single files, named by their SHA-256, in the form that a
// node's loader reads (hack/lab/loader).
type Parts struct {
	Names    []string // In full, as containerd knows them.
	Manifest v1.Descriptor
	Config   v1.Descriptor
	Layers   []v1.Descriptor
}

// ID tells one image from another: it is the digest of its configuration.
func (p Parts) ID() string { return p.Config.Digest.Hex }

// All lists every part.
func (p Parts) All() []v1.Descriptor {
	return append([]v1.Descriptor{p.Manifest, p.Config}, p.Layers...)
}

// Make assembles an image into dir.
func Make(spec Spec, dir string) (Parts, error) {
	img, err := assemble(spec)
	if err != nil {
		return Parts{}, err
	}
	return store(img, []string{spec.Name}, dir)
}

// Split takes a docker-archive apart into dir.
func Split(archive, dir string) (Parts, error) {
	parts, err := split(archive, dir)
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	return parts, err
}

func split(archive, dir string) (Parts, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return Parts{}, fmt.Errorf("no docker-archive: %w", err)
	}
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return Parts{}, err
	}
	if len(manifest[0].RepoTags) == 0 {
		return Parts{}, errors.New("the image has no name")
	}
	return store(img, manifest[0].RepoTags, dir)
}

// store writes an image's parts into dir. Layers that are there stay as they are and are not even read: images that
// share a base share its files. Layers are kept uncompressed, so that a node can use them in place; that is why
// the manifest is another than the library would write.
func store(img v1.Image, tags []string, dir string) (parts Parts, err error) {
	for _, tag := range tags {
		full, err := FullName(tag)
		if err != nil {
			return parts, err
		}
		parts.Names = append(parts.Names, full)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return parts, err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return parts, err
	}
	if parts.Config, err = storeBytes(config, types.OCIConfigJSON, dir); err != nil {
		return parts, err
	}
	layers, err := img.Layers()
	if err != nil {
		return parts, err
	}
	for i, layer := range layers {
		part, err := storeLayer(layer, dir)
		if err != nil {
			return parts, fmt.Errorf("layer %d: %w", i+1, err)
		}
		parts.Layers = append(parts.Layers, part)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: parts.Config, Layers: parts.Layers,
	})
	if err != nil {
		return parts, err
	}
	parts.Manifest, err = storeBytes(manifest, types.OCIManifestSchema1, dir)
	return parts, err
}

func storeBytes(data []byte, media types.MediaType, dir string) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(data))
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: media, Digest: digest, Size: size}, sys.WriteFile(filepath.Join(dir, digest.Hex), data, 0o644)
}

func storeLayer(layer v1.Layer, dir string) (v1.Descriptor, error) {
	want, err := layer.DiffID()
	if err != nil {
		return v1.Descriptor{}, err
	}
	part, file := v1.Descriptor{MediaType: types.OCIUncompressedLayer, Digest: want}, filepath.Join(dir, want.Hex)
	if info, err := os.Stat(file); err == nil {
		part.Size = info.Size()
		now := time.Now()
		return part, os.Chtimes(file, now, now) // Prune goes by the last use.
	}
	in, err := layer.Uncompressed()
	if err != nil {
		return part, err
	}
	defer in.Close()
	temp, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return part, err
	}
	defer os.Remove(temp.Name()) // Gone already after a good rename.
	got, size, err := v1.SHA256(io.TeeReader(in, temp))
	if err := errors.Join(err, temp.Close()); err != nil {
		return part, err
	}
	if got != want {
		return part, fmt.Errorf("damaged: it is %s, and the configuration has %s", got, want)
	}
	part.Size = size
	return part, os.Rename(temp.Name(), file)
}

// Place links the image's parts from dir into target, and writes the index that
// the loader starts from.
func (p Parts) Place(dir, target string) error {
	for _, part := range p.All() {
		if err := sys.LinkOrCopy(filepath.Join(dir, part.Digest.Hex), filepath.Join(target, part.Digest.Hex)); err != nil {
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
