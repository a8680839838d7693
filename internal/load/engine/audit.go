package engine

import (
	"context"
	"time"

	"github.com/howdah/howdah/internal/load"
)

// maxRetries bounds how often an audit tries operations again that fail.
const maxRetries = 40

// AuditOptions are those of an audit.
type AuditOptions struct {
	// Directories are those of the runs, in their order, at the paths where they are mounted now.
	Directories []string
	// Ledgers are files, or "-" for standard input. None: those that runs have left in the first directory.
	Ledgers []string
	// NothingElse makes names in the directories that are in no ledger a finding.
	NothingElse bool
}

// Audit compares the directories with the ledgers, and returns what it found.
func Audit(ctx context.Context, options AuditOptions) (load.Result, error) {
	if err := checkDirectories(options.Directories); err != nil {
		return load.Result{}, err
	}
	ledgers, err := readLedgers(options.Ledgers, options.Directories)
	if err != nil {
		return load.Result{}, err
	}
	if err := load.CheckLedgers(ledgers, len(options.Directories)); err != nil {
		return load.Result{}, err
	}
	began, tries := time.Now(), 0
	result := load.Result{Run: "audit", Began: began.UTC()}
	for i, path := range options.Directories {
		meter := load.NewMeter(path, time.Now)
		place := load.Place{Number: i, FS: directory{path, Flock}, Meter: meter, Again: func() bool {
			tries++
			return tries < maxRetries && pause(ctx, retryEvery)
		}}
		for _, ledger := range ledgers {
			own := place
			own.Ledger = ledger
			own.Audit()
		}
		load.AuditTogether(ledgers, &place, options.NothingElse)
		result.Directories = append(result.Directories, meter.Found())
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
	}
	result.Seconds = time.Since(began).Seconds()
	return result, nil
}
