package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/howdah/howdah/internal/dataserver/durable"
	"github.com/howdah/howdah/internal/dataserver/exportids"
)

// prepareRoot makes the directory of a share on a volume. It sets the wanted attributes if the directory is new or if
// they differ from the applied ones.
func prepareRoot(where layout, share string, index int32, wanted exportids.RootAttributes, applied *exportids.RootAttributes) error {
	path := where.share(share, index)
	volume, err := where.open(index)
	if err != nil {
		return fmt.Errorf("making the export's root: %w", err)
	}
	defer func() { _ = volume.Close() }()
	where.about("make " + path)
	err = volume.Mkdir(share, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the export's root: %w", err)
	}
	if !made {
		info, err := volume.Lstat(share)
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
	where.about("give to its owner " + path)
	// Set the owner first: chown clears the set-id bits that chmod sets.
	if err := volume.Lchown(share, int(wanted.Owner), int(wanted.Group)); err != nil {
		return fmt.Errorf("giving the export's root its owner: %w", err)
	}
	if err := volume.Chmod(share, fileMode(uint32(mode))); err != nil {
		return fmt.Errorf("giving the export's root its mode: %w", err)
	}
	return durable.SyncIn(volume, ".")
}

// fileMode converts permission bits of chmod(2) to Go's.
func fileMode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}
