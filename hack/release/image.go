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

// writeImage makes an OCI layout of an image, with all times set to one, and beside it the same image for other
// processors: also has ARCH=FILE, the program in place of binary.
func writeImage(archive, name, into, binary string, also []string, at time.Time) error {
	first, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	config, err := first.ConfigFile()
	if err != nil {
		return err
	}
	if config.Architecture == "" || config.OS != "linux" {
		return fmt.Errorf("%s is for %s/%s: want an image of Linux", archive, config.OS, config.Architecture)
	}
	images := map[string]v1.Image{config.Architecture: first}
	order := []string{config.Architecture}
	for _, other := range also {
		arch, file, found := strings.Cut(other, "=")
		if !found {
			return fmt.Errorf("--also %s: want ARCH=FILE", other)
		}
		program, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if images[arch], err = forProcessor(first, arch, binary, program); err != nil {
			return err
		}
		order = append(order, arch)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range order {
		image, err := plain(images[arch], at)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
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

// forProcessor is an image with another program. Nothing else in it may depend on the processor.
func forProcessor(image v1.Image, arch, binary string, program []byte) (v1.Image, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	replaced := 0
	addenda := make([]mutate.Addendum, 0, len(layers))
	for _, layer := range layers {
		other, found, err := withProgram(layer, strings.TrimPrefix(binary, "/"), program)
		if err != nil {
			return nil, err
		}
		if found {
			replaced++
		}
		addenda = append(addenda, mutate.Addendum{Layer: other})
	}
	if replaced != 1 {
		return nil, fmt.Errorf("%d layers have %s, want one", replaced, binary)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: arch, OS: config.OS, Config: config.Config, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, addenda...)
}

// withProgram is a layer with another content of one file.
func withProgram(layer v1.Layer, file string, program []byte) (v1.Layer, bool, error) {
	reader, err := layer.Uncompressed()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = reader.Close() }()
	var out bytes.Buffer
	found := false
	from, to := tar.NewReader(reader), tar.NewWriter(&out)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return nil, false, err
		}
		switch {
		case strings.TrimPrefix(strings.TrimPrefix(header.Name, "./"), "/") == file:
			found = true
			content, header.Size = program, int64(len(program))
		case bytes.HasPrefix(content, []byte("\x7fELF")):
			return nil, false, fmt.Errorf("%s is a program for one processor: only %s is there for others", header.Name, file)
		}
		if err := to.WriteHeader(header); err != nil {
			return nil, false, err
		}
		if _, err := to.Write(content); err != nil {
			return nil, false, err
		}
	}
	if err := to.Close(); err != nil {
		return nil, false, err
	}
	if !found {
		return layer, false, nil
	}
	text := out.Bytes()
	other, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
	return other, true, err
}

// hasProgram holds that an image has the very program that is released beside it.
func hasProgram(archive, binary, file string) error {
	inside, err := fileOf(archive, strings.TrimPrefix(binary, "/"))
	if err != nil {
		return err
	}
	released, err := os.ReadFile(file) //nolint:gosec // who runs this names it
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
