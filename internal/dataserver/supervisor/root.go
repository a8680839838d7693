package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// envRoot tells ganesha its root directory (internal/ganesha/build/patches/0431-root-directory.patch).
const envRoot = "HOWDAH_ROOT"

// Files that ganesha and its libraries look for in /etc. In its root directory, /etc is the folder of the configuration (serverpod.EtcDir).
const (
	// mountsFile: ganesha finds out there which file system a path is on.
	mountsFile = "mtab"
	// netconfigFile: ganesha does not start without it (nfs_Init_svc).
	netconfigFile = "netconfig"
)

// PrepareRoot writes what ganesha needs in its root directory, beside the configuration, and returns the environment with which it goes there.
func PrepareRoot(root, configFile string) (environment []string, err error) {
	if root == "" {
		return nil, nil
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{mountsFile: []byte(mountsBelow(root, string(mounts)))}
	netconfig, err := os.ReadFile("/etc/" + netconfigFile)
	switch {
	case err == nil:
		files[netconfigFile] = netconfig
	case !errors.Is(err, fs.ErrNotExist): // Ganesha says so itself.
		return nil, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(filepath.Dir(configFile), name), content, 0o644); err != nil {
			return nil, err
		}
	}
	return []string{envRoot + "=" + root}, nil
}

// mountsBelow is what a process whose root directory is root reads in its /proc/self/mounts (proc_pid_mounts(5)), from that of one outside.
func mountsBelow(root, mounts string) string {
	var below strings.Builder
	for line := range strings.Lines(mounts) {
		source, rest, _ := strings.Cut(line, " ")
		point, rest, found := strings.Cut(rest, " ")
		inside, within := strings.CutPrefix(point, root)
		switch {
		case !found || !within || inside != "" && inside[0] != '/':
			continue
		case inside == "":
			inside = "/"
		}
		below.WriteString(source + " " + inside + " " + rest)
	}
	return below.String()
}

// KeepOut keeps ganesha out of this process. Both have the same user, and so ganesha could read and change this process's memory and take
// its descriptors, which lead out of ganesha's root (ptrace(2), section "Ptrace access mode checking"). CAP_SYS_CHROOT, which this process has
// and ganesha doesn't, prevents that by itself; this holds also if the capabilities should be equal one day.
func KeepOut() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping other processes out of this one: %w", err)
	}
	return nil
}
