package cache

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

const archiveKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// hostPackages maps a Debian package to a program that shows it is installed.
var hostPackages = map[string]string{
	"mmdebstrap":             "mmdebstrap",
	"buildah":                "buildah",
	"e2fsprogs":              "mkfs.ext4",
	"iproute2":               "tc",
	"debian-archive-keyring": archiveKeyring,
	// For the nodes' kernel.
	"gcc":       "gcc",
	"make":      "make",
	"flex":      "flex",
	"bison":     "bison",
	"bc":        "bc",
	"xz-utils":  "xz",
	"libc6-dev": "/usr/include/stdio.h",
}

// InstallPackages installs what the host lacks.
func (c *Cache) InstallPackages() error {
	var missing []string
	for name, program := range hostPackages {
		if _, err := exec.LookPath(program); err != nil && !sys.Exists(program) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	c.Say("installing %s", strings.Join(missing, ", "))
	if err := aptGet("update"); err != nil {
		return err
	}
	return aptGet(append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
}

func aptGet(args ...string) error {
	// Another apt, or another lab command, may be running.
	cmd := exec.Command("apt-get", append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	_, err := sys.Capture(cmd)
	return err
}

// Mirror is the Debian mirror of this host. The lab takes it from the host's own
// settings and names none itself: a company, or a build farm, may reach no other.
func Mirror() (string, error) {
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	for _, file := range append([]string{"/etc/apt/sources.list"}, files...) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if uri := findMirror(string(data)); uri != "" {
			return uri, nil
		}
	}
	return "", fmt.Errorf("no Debian mirror in /etc/apt/sources.list*")
}

// findMirror reads either form of a sources file. A mirror of Debian proper is
// distinguished from security updates and third-party packages by its suites.
func findMirror(text string) string {
	var uri string
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "deb":
			rest := fields[1:]
			if strings.HasPrefix(rest[0], "[") {
				for len(rest) > 0 && !strings.HasSuffix(rest[0], "]") {
					rest = rest[1:]
				}
				rest = rest[min(1, len(rest)):]
			}
			if len(rest) >= 2 && isRelease(rest[1]) {
				return rest[0]
			}
		case "URIs:":
			uri = fields[1]
		case "Suites:":
			if uri != "" && isRelease(fields[1]) {
				return uri
			}
		}
	}
	return ""
}

func isRelease(suite string) bool {
	switch suite {
	case "bookworm", "trixie", "forky", "sid", "stable", "testing", "oldstable", "unstable":
		return true
	}
	return false
}

// release is another Debian release than the host's, with apt settings of its
// own so that the host's package lists stay as they are.
type release struct {
	work    string
	options []string
}

func openRelease(suite string) (*release, error) {
	mirror, err := Mirror()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "howdah-lab-apt-")
	if err != nil {
		return nil, err
	}
	r := &release{work: work}
	// apt's own user must be able to read its lists.
	if err := os.Chmod(work, 0o755); err != nil {
		return r, err
	}
	for _, sub := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(work, sub), 0o755); err != nil {
			return r, err
		}
	}
	list := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", archiveKeyring, mirror, suite)
	if err := os.WriteFile(filepath.Join(work, "sources.list"), []byte(list), 0o644); err != nil {
		return r, err
	}
	r.options = []string{
		"-o", "Dir::Etc::sourcelist=" + filepath.Join(work, "sources.list"),
		"-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(work, "lists"),
		"-o", "Dir::Cache::archives=" + filepath.Join(work, "archives"),
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
		"-o", "APT::Sandbox::User=root",
		// The Release file of a release under way expires within days, and machines
		// with a frozen clock or mirror see it late.
		"-o", "Acquire::Check-Valid-Until=false",
		"-o", "Acquire::Languages=none",
	}
	return r, aptGet(append(r.options, "update")...)
}

func (r *release) close() {
	if r != nil {
		_ = os.RemoveAll(r.work)
	}
}

// packages are the names that match a pattern, in order of age as far as their
// names tell it.
func (r *release) packages(pattern *regexp.Regexp) ([]string, error) {
	text, err := sys.Output("apt-cache", append(r.options, "pkgnames")...)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range strings.Fields(text) {
		if pattern.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNumbered)
	return names, nil
}

// compareNumbered orders by the numbers in names: x-6.9 before x-6.12.
func compareNumbered(a, b string) int {
	numbers := regexp.MustCompile(`\d+`)
	left, right := numbers.FindAllString(a, -1), numbers.FindAllString(b, -1)
	return slices.CompareFunc(left, right, func(x, y string) int {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	})
}

// unpack puts the files of one package below dir.
func (r *release) unpack(name, dir string) error {
	download := exec.Command("apt-get", append(r.options, "download", name)...)
	download.Dir = r.work
	if _, err := sys.Capture(download); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(r.work, name+"_*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("package %s: found %d files: %w", name, len(files), err)
	}
	return sys.Run("dpkg", "-x", files[0], dir)
}
