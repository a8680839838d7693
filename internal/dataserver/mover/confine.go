package mover

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ConfinedCommand and TunnelCommand are subcommands of the binary that the mover runs.
const (
	ConfinedCommand = "confined"
	TunnelCommand   = "tunnel"
)

// landlockAll are the accesses that the first version of Landlock (Linux 5.13) knows: what is not allowed is refused.
const landlockAll = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
	unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM

// programs are where rsync and its libraries are. There is no secret.
var programs = []string{"/usr", "/lib", "/lib64"}

// Confined runs a program that may read what is below a directory, and change nothing. Clients may put a symbolic link in the place of a directory while
// rsync reads it as root: without this they would get what the link leads to, keys for example. It returns only with an error.
func Confined(directory string, command []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if err := confine(directory); err != nil {
		return err
	}
	if err := os.Chdir(directory); err != nil {
		return err
	}
	err := syscall.Exec(command[0], command, []string{"LANG=C", "PATH=/usr/bin:/bin"}) //nolint:gosec // The data server gives the command.
	return fmt.Errorf("running %s: %w", command[0], err)
}

// HasLandlock tells whether the kernel can confine.
func HasLandlock() bool {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && version >= 1
}

// confine restricts this thread, and what it executes.
func confine(directory string) error {
	if !HasLandlock() {
		return nil // The mover has logged it.
	}
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: landlockAll}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes.Handled_access_fs), 0) //nolint:gosec // x/sys has no call for it.
	if errno != 0 {
		return fmt.Errorf("making a Landlock ruleset: %w", errno)
	}
	defer func() { _ = unix.Close(int(ruleset)) }()
	const read = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	if err := allow(int(ruleset), directory, read); err != nil {
		return err
	}
	for _, path := range programs {
		if err := allow(int(ruleset), path, read|unix.LANDLOCK_ACCESS_FS_EXECUTE); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("confining rsync to its directory: %w", errno)
	}
	return nil
}

func allow(ruleset int, path string, access uint64) error {
	directory, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(directory) }()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(directory)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // x/sys has no call for it.
	if errno != 0 {
		return fmt.Errorf("allowing rsync to read %s: %w", path, errno)
	}
	return nil
}
