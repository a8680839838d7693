package cache

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/image"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Build is one image of the project.
type Build struct {
	Dockerfile string
	Context    string
	Target     string
	Tag        string
	Args       []string // NAME=VALUE
	Arch       string   // The processor, as Go names it.
}

// Image builds the image if its inputs have changed and returns its archive.
func (c *Cache) Image(b Build) (string, error) {
	inputs, err := b.inputs()
	if err != nil {
		return "", err
	}
	sum, err := hashTree(b.Context, inputs)
	if err != nil {
		return "", err
	}
	var bases strings.Builder
	for _, name := range []string{stampOf("image-debian", b.Arch), stampOf("image-golang", b.Arch), stampOf("image-distroless", b.Arch)} {
		stamp, _ := os.ReadFile(c.Path("stamps", name)) // BaseImages has just made it.
		bases.Write(stamp)
	}
	// Two tags of one target must not take turns in one file.
	name := stampOf("image-"+b.Target+"-"+hash(b.Context, b.Tag)[:8], b.Arch)
	archive := c.Path("images", name+".tar")
	err = c.ensure(product{
		name:  name,
		files: []string{archive},
		stamp: hash(append([]string{sum, bases.String(), b.Target, b.Tag}, b.Args...)...),
		make:  func() error { return c.makeImage(b, archive) },
	})
	return archive, err
}

// Unpacked builds a stage and returns the folder with its files.
func (c *Cache) Unpacked(b Build) (string, error) {
	dockerfile, err := hashFiles(b.Dockerfile)
	if err != nil {
		return "", err
	}
	inputs, err := b.stageInputs()
	if err != nil {
		return "", err
	}
	sum, err := hashTree(b.Context, inputs)
	if err != nil {
		return "", err
	}
	debian, err := os.ReadFile(c.Path("stamps", stampOf("image-debian", b.Arch)))
	if err != nil {
		return "", err
	}
	dir := c.Path("roots", stampOf(b.Target, b.Arch))
	return dir, c.ensure(product{
		name:  stampOf("root-"+b.Target, b.Arch),
		files: []string{filepath.Join(dir, "usr")},
		stamp: hash(append([]string{dockerfile, sum, string(debian), b.Target}, b.Args...)...),
		make:  func() error { return c.unpack(b, dir) },
	})
}

// unpack takes the way by an image: buildah's own --output gives another stage's files
// when the wanted one comes from its cache (1.28).
func (c *Cache) unpack(b Build, dir string) error {
	name := stampOf("localhost/howdah-stage-"+b.Target, b.Arch)
	if err := c.build(b, name); err != nil {
		return err
	}
	out, err := c.buildah("from", "--pull-never", "--arch", b.Arch, name)
	if err != nil {
		return err
	}
	container := strings.TrimSpace(out)
	defer func() { _, _ = c.buildah("rm", container) }()
	mounted, err := c.buildah("mount", container)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return sys.Run("cp", "-a", strings.TrimSpace(mounted)+"/.", dir)
}

// build builds the image into buildah's store. Go in the image is the host's
// (makeGo) and gets the host's caches: whoever has run the tests has compiled most of it.
func (c *Cache) build(b Build, tag string) error {
	args := []string{"bud", "--pull-never", "--layers", "--platform", "linux/" + b.Arch, "--file", b.Dockerfile, "--target", b.Target}
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		dir, err := goEnv(name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		inside := "/host-cache/" + name
		args = append(args, "--volume", dir+":"+inside, "--build-arg", name+"="+inside)
	}
	for _, arg := range append(baseArgs(b.Arch), b.Args...) {
		args = append(args, "--build-arg", arg)
	}
	_, err := c.buildah(append(args, "--tag", tag, b.Context)...)
	return err
}

func (c *Cache) makeImage(b Build, archive string) error {
	name, err := image.FullName(b.Tag)
	if err != nil {
		return err
	}
	if err := c.build(b, name); err != nil {
		return err
	}
	temp := archive + ".tmp"
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if _, err := c.buildah("push", name, "docker-archive:"+temp+":"+name); err != nil {
		return err
	}
	return os.Rename(temp, archive)
}

// inputs lists the files that a build may read: what git tracks or would track,
// less what .dockerignore keeps out.
func (b Build) inputs() ([]string, error) {
	cmd := exec.Command("git", "-C", b.Context, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	out, err := sys.Capture(cmd)
	if err != nil {
		return nil, fmt.Errorf("inputs of %s: %w", b.Target, err)
	}
	ignore, err := readIgnore(filepath.Join(b.Context, ".dockerignore"))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range strings.Split(out, "\x00") {
		if file != "" && !ignore.match(file) {
			files = append(files, file)
		}
	}
	dockerfile, err := filepath.Rel(b.Context, b.Dockerfile)
	if err != nil {
		return nil, err
	}
	return append(files, dockerfile), nil
}

// hashTree sums up files by name and content. A file that git tracks may have
// been removed; its absence counts too, by its not being there.
func hashTree(root string, files []string) (string, error) {
	var parts []string
	for _, file := range files {
		path := filepath.Join(root, file)
		info, err := os.Lstat(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			parts = append(parts, file)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		parts = append(parts, file, info.Mode().String(), string(data))
	}
	return hash(parts...), nil
}
