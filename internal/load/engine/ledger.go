package engine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/howdah/howdah/internal/load"
)

// rewriteAt is the size at which the file of a ledger is written again, as short as possible.
const rewriteAt = 32 << 20

// ledgerName is where a run that ends leaves its ledger, in the directory it has for itself.
const ledgerName = "ledger"

// ledgerFile keeps a ledger in a file, entry by entry.
type ledgerFile struct {
	path string
	file *os.File
	size int64
	// limit is the size at which it is rewritten next.
	limit int64
}

// newLedgerFile makes an empty file.
func newLedgerFile(path string) (*ledgerFile, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("making the ledger: %w", err)
	}
	return &ledgerFile{path: path, file: file, limit: rewriteAt}, nil
}

// Write implements load.Keeper.
func (f *ledgerFile) Write(e load.Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	n, err := f.file.Write(append(line, '\n'))
	f.size += int64(n)
	return err
}

// Large implements load.Keeper.
func (f *ledgerFile) Large() bool { return f.size >= f.limit }

// Rewrite implements load.Keeper.
func (f *ledgerFile) Rewrite(entries []load.Entry) error {
	next, size, err := writeEntries(f.path+".next", entries)
	if err != nil {
		return err
	}
	if err := os.Rename(next.Name(), f.path); err != nil {
		_ = next.Close()
		return err
	}
	_ = f.file.Close() // Its content is in the next one.
	f.file, f.size, f.limit = next, size, max(rewriteAt, 2*size)
	return nil
}

// writeEntries writes a file and leaves it open.
func writeEntries(path string, entries []load.Entry) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, 0, err
	}
	buffered := bufio.NewWriter(file)
	encoder := json.NewEncoder(buffered)
	for _, e := range entries {
		if err = encoder.Encode(e); err != nil {
			break
		}
	}
	if err == nil {
		err = buffered.Flush()
	}
	info, statErr := file.Stat()
	if err == nil {
		err = statErr
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// leave writes the ledger into the directory of the run, on stable storage.
func leave(directory, run string, entries []load.Entry) error {
	file, _, err := writeEntries(filepath.Join(directory, run, ledgerName), entries)
	if err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// readLedgers reads the given ledgers, or without any those that runs have left in the first directory.
func readLedgers(paths []string, directories []string) ([]*load.Ledger, error) {
	if len(paths) == 0 {
		found, err := filepath.Glob(filepath.Join(directories[0], "*", ledgerName))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no ledger of a run that has ended; give its file with --ledger", directories[0])
		}
		paths = found
	}
	ledgers := make([]*load.Ledger, 0, len(paths))
	for _, path := range paths {
		var file *os.File
		if path == "-" {
			file = os.Stdin
		} else {
			opened, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			file = opened
		}
		ledger, err := load.ReadLedger(bufio.NewReader(file))
		_ = file.Close() // It was only read.
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		ledgers = append(ledgers, ledger)
	}
	return ledgers, nil
}
