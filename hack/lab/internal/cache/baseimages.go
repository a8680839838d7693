package cache

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Names of the base images that the project's Dockerfile builds on, each made
// here because no registry can be reached. A Dockerfile takes its bases from
// ARGs, so that a release can pin digests, which a stand-in can't satisfy.
const (
	debianImage     = "docker.io/library/debian:" + nodeSuite + "-slim"
	goImage         = "docker.io/library/golang:1.26-" + nodeSuite
	distrolessImage = "gcr.io/distroless/static-debian12:nonroot"
)

const (
	hostCAs    = "/etc/ssl/certs/ca-certificates.crt"
	nonroot    = "65532"
	passwdText = "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	groupText = "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"
)

// baseArgs are the Dockerfile's arguments for an image for a processor. The base images of others than this machine's have
// names of their own: buildah finds one image by a name.
func baseArgs(arch string) []string {
	if arch == runtime.GOARCH {
		return nil
	}
	return []string{"DEBIAN_IMAGE=" + forArch(debianImage, arch), "BASE_IMAGE=" + forArch(distrolessImage, arch), "GO_IMAGE=" + forArch(goImage, arch)}
}

func forArch(name, arch string) string {
	if arch == runtime.GOARCH {
		return name
	}
	return name + "-" + arch
}

// goSettings are the settings of the host's Go that a build inside an image needs
// as well. They are part of the Go image alone, not of what is built with it.
var goSettings = []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOINSECURE"}

// clearLeftovers removes working containers and their folders that killed builds left in buildah's store. The lock of the cache keeps others
// from using the store.
func (c *Cache) clearLeftovers() error {
	if !sys.Exists(c.Path("buildah")) {
		return nil
	}
	out, err := c.buildah("rm", "--all")
	if err != nil {
		return err
	}
	folders, err := filepath.Glob(c.Path("tmp", "buildah*"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	if containers := len(strings.Fields(out)); containers+len(folders) > 0 {
		c.Say("removed what a build left that was killed: %d working containers, %d folders", containers, len(folders))
	}
	return nil
}

// BaseImages makes the base images in buildah's store for one processor. What is in the one with Go is for this machine's all the same, which
// compiles for the other one: buildah 1.28 would take FROM --platform, which the Dockerfile has for that, for all stages that follow. Where
// programs for the processor can't run here, an emulator must be there (hack/emulate.sh).
func (c *Cache) BaseImages(arch string) error {
	if err := c.clearLeftovers(); err != nil {
		return err
	}
	mirror, err := Mirror()
	if err != nil {
		return err
	}
	env, err := c.goEnvironment()
	if err != nil {
		return err
	}
	cas, err := hashFiles(hostCAs)
	if err != nil {
		return fmt.Errorf("the host's certificate authorities: %w", err)
	}
	store := c.Path("buildah", "root", "overlay-images")
	debian := func(arch string) product {
		return product{name: stampOf("image-debian", arch), stamp: hash(mirror, nodeSuite, recipe), make: func() error { return c.makeDebian(mirror, arch) }}
	}
	products := []product{
		debian(runtime.GOARCH),
		{name: stampOf("image-distroless", arch), stamp: hash(cas, passwdText, recipe), make: func() error { return c.makeDistroless(arch) }},
		{name: stampOf("image-golang", arch), stamp: hash(mirror, cas, strings.Join(env, "\n"), runtime.Version(), recipe), make: func() error {
			return c.makeGo(env, arch)
		}},
	}
	if arch != runtime.GOARCH {
		products = append(products, debian(arch))
	}
	for _, p := range products {
		p.files = []string{store}
		if err := c.ensure(p); err != nil {
			return err
		}
	}
	return nil
}

// stampOf names a product that there is for several processors.
func stampOf(name, arch string) string {
	if arch == runtime.GOARCH {
		return name
	}
	return name + "-" + arch
}

// buildah runs buildah with a store of its own in the cache.
func (c *Cache) buildah(args ...string) (string, error) {
	// chroot isolation needs neither a container runtime nor cgroups of the host.
	options := []string{
		"--root", c.Path("buildah", "root"), "--runroot", c.Path("buildah", "run"), "--storage-driver", "overlay",
	}
	cmd := exec.Command("buildah", append(options, args...)...)
	cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot", "TMPDIR="+c.Path("tmp"))
	return sys.Capture(cmd)
}

// commit makes an image: from, changed by the buildah commands, as name. In the
// commands @ stands for the working container.
func (c *Cache) commit(arch, from, name string, commands ...[]string) error {
	if err := os.MkdirAll(c.Path("tmp"), 0o755); err != nil {
		return err
	}
	out, err := c.buildah("from", "--pull-never", "--arch", arch, from)
	if err != nil {
		return err
	}
	container := strings.TrimSpace(out)
	for _, command := range append(commands, []string{"commit", "--quiet", "@", name}) {
		for i, word := range command {
			if word == "@" {
				command[i] = container
			}
		}
		if _, err = c.buildah(command...); err != nil {
			break
		}
	}
	if _, rmErr := c.buildah("rm", container); err == nil {
		err = rmErr
	}
	return err
}

func (c *Cache) makeDebian(mirror, arch string) error {
	archive := c.Path("tmp", "debian.tar")
	if err := os.MkdirAll(c.Path("tmp"), 0o755); err != nil {
		return err
	}
	defer os.Remove(archive)
	source := fmt.Sprintf("deb %s %s main", mirror, nodeSuite)
	if err := sys.Run("mmdebstrap", "--variant=minbase", "--architectures="+arch, nodeSuite, archive, source); err != nil {
		return err
	}
	// The same form as in the real image, because Dockerfiles edit it.
	sources := c.Path("tmp", "debian.sources")
	text := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s %[2]s-updates\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
		mirror, nodeSuite)
	if err := sys.WriteFile(sources, []byte(text), 0o644); err != nil {
		return err
	}
	defer os.Remove(sources)
	empty := c.Path("tmp", "empty")
	if err := sys.WriteFile(empty, nil, 0o644); err != nil {
		return err
	}
	defer os.Remove(empty)
	return c.commit(arch, "scratch", forArch(debianImage, arch),
		[]string{"add", "@", archive, "/"},
		[]string{"copy", "@", sources, "/etc/apt/sources.list.d/debian.sources"},
		[]string{"copy", "@", empty, "/etc/apt/sources.list"},
		[]string{"config", "--cmd", "bash", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "@"},
	)
}

func (c *Cache) makeGo(env []string, arch string) error {
	root, err := goEnv("GOROOT")
	if err != nil {
		return err
	}
	config := []string{
		"config", "--arch", arch, "--workingdir", "/go", "--env", "GOPATH=/go", "--env", "GOTOOLCHAIN=local",
		"--env", "PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	for _, setting := range env {
		config = append(config, "--env", setting)
	}
	return c.commit(runtime.GOARCH, debianImage, forArch(goImage, arch),
		[]string{"copy", "@", root, "/usr/local/go"},
		[]string{"copy", "@", hostCAs, hostCAs},
		append(config, "@"),
	)
}

func (c *Cache) goEnvironment() ([]string, error) {
	var env []string
	for _, name := range goSettings {
		value, err := goEnv(name)
		if err != nil {
			return nil, err
		}
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

func goEnv(name string) (string, error) {
	out, err := sys.Output("go", "env", name)
	return strings.TrimSpace(out), err
}

func (c *Cache) makeDistroless(arch string) error {
	work := c.Path("tmp", "distroless")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, dir := range []string{"tmp", "home/nonroot", "etc/ssl/certs"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"etc/passwd": passwdText, "etc/group": groupText} {
		if err := sys.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := sys.Run("cp", "-L", hostCAs, filepath.Join(work, hostCAs)); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(work, "tmp"), 0o1777|os.ModeSticky); err != nil {
		return err
	}
	return c.commit(arch, "scratch", forArch(distrolessImage, arch),
		[]string{"copy", "@", work, "/"},
		[]string{
			"config", "--user", nonroot, "--workingdir", "/home/nonroot", "--env", "PATH=/usr/local/bin:/usr/bin:/bin",
			"--env", "SSL_CERT_FILE=" + hostCAs, "@",
		},
	)
}
