package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// adoptRecovery gives the records of the last start the name of this host, by which ganesha looks for them. On its node's network a
// pod has the node's name, so the name changes when such a data server starts on another node, and when it leaves the nodes'
// networks; ganesha would forget its clients. A volume has the records of one data server, and each start leaves one link. Call it
// while ganesha is not running.
func adoptRecovery(records *os.Root, hostname string) error {
	const directory = "v4recov"
	entries, err := fs.ReadDir(records.FS(), directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading recovery records: %w", err)
	}
	newest, at := "", time.Time{}
	for _, entry := range entries {
		if entry.Type() != fs.ModeSymlink {
			continue
		}
		if info, err := entry.Info(); err == nil && (newest == "" || info.ModTime().After(at)) {
			newest, at = entry.Name(), info.ModTime()
		}
	}
	if newest == "" || newest == hostname {
		return nil
	}
	if err := records.Rename(filepath.Join(directory, newest), filepath.Join(directory, hostname)); err != nil {
		return fmt.Errorf("giving the recovery records of %s this host's name: %w", newest, err)
	}
	return nil
}

// pruneRecovery removes the directories that remain when ganesha does not stop cleanly (measured: ten after ten kills).
// The recovery back end fs_ng makes v4recov/<hostname>.XXXXXX at each start, and points the symlink v4recov/<hostname>
// to it when the grace period ends. Only the link's target is ever read; directories of other host names are of earlier nodes
// (adoptRecovery). Call it while ganesha is not running.
func pruneRecovery(records *os.Root, hostname string) error {
	const directory = "v4recov"
	entries, err := fs.ReadDir(records.FS(), directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pruning recovery records: %w", err)
	}
	kept, err := currentRecords(records, hostname)
	if err != nil {
		// No grace period has ended yet, or the link is a directory of the older back end fs: keep all.
		return nil
	}
	var faults []error
	for _, entry := range entries {
		at := strings.LastIndexByte(entry.Name(), '.') // Host names have dots, mkdtemp's letters have none.
		if at < 0 || len(entry.Name())-at-1 != len("XXXXXX") || !entry.IsDir() || entry.Name() == kept {
			continue
		}
		faults = append(faults, records.RemoveAll(filepath.Join(directory, entry.Name())))
	}
	return errors.Join(faults...)
}

// currentRecords is the directory beside the symlink v4recov/<hostname> that it points to.
func currentRecords(records *os.Root, hostname string) (string, error) {
	target, err := records.Readlink(filepath.Join("v4recov", hostname))
	return filepath.Base(target), err
}

// forgetOwnClients removes the recovery records of clients with loopback addresses: the prober, and namespace servers
// that connect through the proxy. They open and lock nothing, so they have nothing to reclaim, and ganesha would wait
// for them in vain: a record has the client's address (measured: "::ffff:127.42.92.217-(...)"), and our own address
// changes with each start of the process. Call it while ganesha is not running.
func forgetOwnClients(records *os.Root, hostname string) error {
	current, err := currentRecords(records, hostname)
	if err != nil {
		current = hostname
	}
	directory := filepath.Join("v4recov", current)
	entries, err := fs.ReadDir(records.FS(), directory)
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
			faults = append(faults, records.RemoveAll(filepath.Join(directory, entry.Name())))
		}
	}
	return errors.Join(faults...)
}
