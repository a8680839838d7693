// Package image assembles small container images and takes docker-archives apart, the one form that
// buildah writes without a registry, into files that nodes share with the host.
package image

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec is a small image: some files and how to start one of them.
type Spec struct {
	Name       string
	Files      map[string]string // Path in the image -> path on the host.
	Entrypoint []string
	User       string
}

// epoch is the time of everything in an image, so that the same input makes the
// same image and nodes that have it can tell.
var epoch = time.Unix(0, 0).UTC()

// assemble makes the image in memory.
func assemble(spec Spec) (v1.Image, error) {
	layer, err := layerOf(spec.Files)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = "amd64", "linux", v1.Time{Time: epoch}
	file.Config = v1.Config{Entrypoint: spec.Entrypoint, User: spec.User, WorkingDir: "/"}
	return mutate.ConfigFile(img, file)
}

func layerOf(files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		target := strings.TrimPrefix(inside, "/")
		if err := addParents(archive, made, target); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(files[inside])
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: target, Mode: 0o755, Size: int64(len(data)), ModTime: epoch}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func addParents(archive *tar.Writer, made map[string]bool, file string) error {
	dir := path.Dir(file)
	if dir == "." || made[dir] {
		return nil
	}
	if err := addParents(archive, made, dir); err != nil {
		return err
	}
	made[dir] = true
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch})
}

// FullName completes a short image name the way containerd and kubelet do.
func FullName(short string) (string, error) {
	tag, err := name.NewTag(short)
	if err != nil {
		return "", err
	}
	// The library has Docker's older name of its registry.
	if full, ok := strings.CutPrefix(tag.Name(), name.DefaultRegistry+"/"); ok {
		return "docker.io/" + full, nil
	}
	return tag.Name(), nil
}
