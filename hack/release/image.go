package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage makes an OCI layout of an image, with all times set to one: of its archives for different processors, in their order.
func writeImage(archives []string, name, into string, at time.Time) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	from := map[string]string{}
	for _, archive := range archives {
		image, err := tarball.ImageFromPath(archive, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		if config.Architecture == "" || config.OS != "linux" {
			return fmt.Errorf("%s is for %s/%s: want an image of Linux", archive, config.OS, config.Architecture)
		}
		if other := from[config.Architecture]; other != "" {
			return fmt.Errorf("%s and %s are both for %s", other, archive, config.Architecture)
		}
		from[config.Architecture] = archive
		if image, err = plain(image, at); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: config.Architecture}},
		})
	}
	if len(from) == 0 {
		return errors.New("--archive is missing")
	}
	_, tag, _ := strings.Cut(name, ":")
	folder, err := layout.Write(into, empty.Index)
	if err != nil {
		return err
	}
	return folder.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "docker.io/" + name,
	}))
}

// plain is an image of the same layers and settings, with one time for every file and a history that says nothing: a
// builder writes the ids of what it made on the way into that.
func plain(image v1.Image, at time.Time) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	addenda := make([]mutate.Addendum, 0, len(layers))
	for _, layer := range layers {
		addenda = append(addenda, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "hack/release.sh"}})
	}
	image, err = mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: config.Architecture, OS: config.OS, Config: config.Config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	if image, err = mutate.Append(image, addenda...); err != nil {
		return nil, err
	}
	if image, err = mutate.Time(image, at, tarball.WithMediaType(types.OCILayer)); err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

// hasProgram holds that an image has the very program that is released beside it.
func hasProgram(archive, binary, file string) error {
	inside, err := fileOf(archive, strings.TrimPrefix(binary, "/"))
	if err != nil {
		return err
	}
	released, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(inside, released) {
		return fmt.Errorf("%s of %s is not %s: they were built with other settings, or by another Go", binary, archive, file)
	}
	return nil
}

// fileOf reads one file of an image: the uppermost layer that has it counts.
func fileOf(archive, file string) ([]byte, error) {
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for i := len(layers) - 1; i >= 0; i-- {
		text, found, err := fileOfLayer(layers[i], file)
		if err != nil || found {
			return text, err
		}
	}
	return nil, fmt.Errorf("%s has no %s", archive, file)
}

func fileOfLayer(layer v1.Layer, file string) ([]byte, bool, error) {
	reader, err := layer.Uncompressed()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = reader.Close() }()
	from := tar.NewReader(reader)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if strings.TrimPrefix(strings.TrimPrefix(header.Name, "./"), "/") == file {
			text, err := io.ReadAll(from)
			return text, true, err
		}
	}
}
