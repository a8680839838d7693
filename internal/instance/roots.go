package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// attributesOf are what an export's root should have.
func attributesOf(export internalv1.ShareExportSpec) (rootAttributes, error) {
	mode, err := strconv.ParseUint(export.Mode, 8, 12)
	if err != nil {
		return rootAttributes{}, fmt.Errorf("mode %q is not octal permission bits: %w", export.Mode, err)
	}
	if export.UID == nil || export.GID == nil {
		return rootAttributes{}, errors.New("owner and group must be set")
	}
	return rootAttributes{Owner: *export.UID, Group: *export.GID, Mode: strconv.FormatUint(mode, 8)}, nil
}

// prepareRoot makes the directory of a share on a volume, and gives it the
// attributes if it is new or if they are others than those it was last given.
func prepareRoot(path string, wanted rootAttributes, applied *rootAttributes) error {
	err := os.Mkdir(path, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the export's root: %w", err)
	}
	if !made {
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("looking at the export's root: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory; move it away", path)
		}
		if applied != nil && *applied == wanted {
			return nil
		}
	}
	mode, err := strconv.ParseUint(wanted.Mode, 8, 12)
	if err != nil {
		return fmt.Errorf("mode %q: %w", wanted.Mode, err)
	}
	// The owner first: chown clears the set-id bits that chmod sets.
	if err := os.Lchown(path, int(wanted.Owner), int(wanted.Group)); err != nil {
		return fmt.Errorf("giving the export's root its owner: %w", err)
	}
	if err := os.Chmod(path, fileMode(uint32(mode))); err != nil {
		return fmt.Errorf("giving the export's root its mode: %w", err)
	}
	return syncDirectory(filepath.Dir(path))
}

// fileMode turns permission bits as chmod(2) has them into Go's.
func fileMode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}
