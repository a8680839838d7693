package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// pruneRecovery removes the directories that unclean stops of ganesha leave
// behind (measured: ten after ten kills). The backend fs_ng makes v4recov/<hostname>.XXXXXX at
// each start and turns the symlink v4recov/<hostname> to it when grace
// ends; only the link's target is ever read. Call it while ganesha is not running.
func pruneRecovery(root, hostname string) error {
	directory := filepath.Join(root, "v4recov")
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pruning recovery records: %w", err)
	}
	target, err := os.Readlink(filepath.Join(directory, hostname))
	if err != nil {
		// No grace has ended yet, or the link is a directory of the older backend fs: keep all.
		return nil
	}
	var faults []error
	for _, entry := range entries {
		suffix, ours := strings.CutPrefix(entry.Name(), hostname+".")
		if !ours || len(suffix) != len("XXXXXX") || !entry.IsDir() || entry.Name() == filepath.Base(target) {
			continue
		}
		faults = append(faults, os.RemoveAll(filepath.Join(directory, entry.Name())))
	}
	return errors.Join(faults...)
}

// forgetOwnClients removes the recovery records of clients that came over loopback: namespace servers, and the instance
// manager itself. They open and lock nothing, so they have nothing to reclaim, and ganesha would wait for them in vain: a
// record has the client's address (measured: "::ffff:127.42.92.217-(...)"), and the instance manager's is another after each of
// its starts. Call it while ganesha is not running.
func forgetOwnClients(root, hostname string) error {
	directory := filepath.Join(root, "v4recov", hostname)
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading recovery records: %w", err)
	}
	var faults []error
	for _, entry := range entries {
		text, _, found := strings.Cut(entry.Name(), "-(")
		address, err := netip.ParseAddr(text)
		if found && err == nil && address.Unmap().IsLoopback() {
			faults = append(faults, os.RemoveAll(filepath.Join(directory, entry.Name())))
		}
	}
	return errors.Join(faults...)
}
