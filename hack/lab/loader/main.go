// Command loader gives containerd an image whose parts lie in a folder. `ctr
// images import` does the same for an archive, but sends every byte through two
// processes, at 10 MB/s on a UML node; here containerd finds the parts in place.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	socket      = "/run/containerd/containerd.sock"
	blobs       = "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
	snapshotter = "overlayfs"
)

// index is written by the lab's tool (internal/image, type Parts).
type index struct {
	Names    []string
	Manifest blob
	Config   blob
	Layers   []blob
}

type blob struct {
	Digest digest.Digest
	Size   int64
}

func main() {
	keep := flag.Bool("copy", false, "copy the parts, for a folder that goes away; else link them")
	flag.Parse()
	for _, dir := range flag.Args() {
		if err := load(context.Background(), dir, *keep); err != nil {
			fmt.Fprintln(os.Stderr, "loader:", err)
			os.Exit(1)
		}
	}
}

func load(ctx context.Context, dir string, keep bool) error {
	started := time.Now()
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return err
	}
	var in index
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	c, err := client.New(socket)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx = namespaces.WithNamespace(ctx, "k8s.io")
	if has(ctx, c, in) {
		fmt.Println("has", in.Names)
		return nil
	}
	// Nothing is collected as unused while the lease is there.
	ctx, done, err := c.WithLease(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = done(ctx) }() // It expires by itself as well.
	if err := addContent(ctx, c, dir, in, keep); err != nil {
		return err
	}
	for _, name := range in.Names {
		if err := addImage(ctx, c, name, in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	// Containerd leaves it to the kernel when the files of an image are written. A node that loses its power before has shortened programs, which
	// end without a word, and an image that passes for whole.
	syscall.Sync()
	fmt.Printf("got %v in %.1fs\n", in.Names, time.Since(started).Seconds())
	return nil
}

// has reports whether every name stands for this very image, ready for use.
func has(ctx context.Context, c *client.Client, in index) bool {
	for _, name := range in.Names {
		image, err := c.GetImage(ctx, name)
		if err != nil || image.Target().Digest != in.Manifest.Digest {
			return false
		}
		if unpacked, err := image.IsUnpacked(ctx, snapshotter); err != nil || !unpacked {
			return false
		}
	}
	return true
}

func addContent(ctx context.Context, c *client.Client, dir string, in index, keep bool) error {
	labels := map[string]string{"containerd.io/gc.ref.content.config": in.Config.Digest.String()}
	for i, layer := range in.Layers {
		labels[fmt.Sprintf("containerd.io/gc.ref.content.l.%d", i)] = layer.Digest.String()
	}
	for _, part := range append([]blob{in.Config}, in.Layers...) {
		if err := addBlob(ctx, c, dir, part, keep, nil); err != nil {
			return err
		}
	}
	return addBlob(ctx, c, dir, in.Manifest, keep, labels)
}

// addBlob puts the file where containerd keeps its content and then offers it:
// containerd takes content that it has on disk without reading it again. If it
// should not, the same call sends the file.
func addBlob(ctx context.Context, c *client.Client, dir string, part blob, keep bool, labels map[string]string) error {
	file := filepath.Join(dir, part.Digest.Encoded())
	target := filepath.Join(blobs, part.Digest.Encoded())
	if err := place(file, target, keep); err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	var opts []content.Opt
	if labels != nil {
		opts = append(opts, content.WithLabels(labels))
	}
	desc := ocispec.Descriptor{Digest: part.Digest, Size: part.Size}
	if err := content.WriteBlob(ctx, c.ContentStore(), "lab-"+part.Digest.Encoded(), in, desc, opts...); err != nil {
		return fmt.Errorf("content %s: %w", part.Digest, err)
	}
	return nil
}

func place(file, target string, keep bool) error {
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	temp := target + ".lab"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if keep {
		if err := copyFile(file, temp); err != nil {
			return err
		}
	} else if err := os.Symlink(file, temp); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func addImage(ctx context.Context, c *client.Client, name string, in index) error {
	record := images.Image{Name: name, Target: ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: in.Manifest.Digest, Size: in.Manifest.Size,
	}}
	_, err := c.ImageService().Create(ctx, record)
	if errdefs.IsAlreadyExists(err) {
		_, err = c.ImageService().Update(ctx, record)
	}
	if err != nil {
		return err
	}
	return client.NewImage(c, record).Unpack(ctx, snapshotter)
}
