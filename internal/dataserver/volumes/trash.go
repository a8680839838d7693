package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/howdah/howdah/internal/dataserver/durable"
)

// discard moves the data of a share on a volume to the trash. After that clients can't reach it, and a new share of the
// same name starts empty. emptyTrash frees the space.
func discard(where layout, share string, index int32, now time.Time) error {
	path := where.share(share, index)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	target := where.meta(index, TrashDir, share+"."+strconv.FormatInt(now.UnixNano(), 10))
	where.about("discard " + path)
	if err := os.Rename(path, target); err != nil {
		return fmt.Errorf("moving the data of share %s to the trash: %w", share, err)
	}
	// Sync the directory that gets the name before the one that loses it, so that a crash can't lose both.
	if err := durable.SyncDirectory(filepath.Dir(target)); err != nil {
		return fmt.Errorf("making the removal of share %s durable: %w", share, err)
	}
	if err := durable.SyncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("making the removal of share %s durable: %w", share, err)
	}
	return nil
}

// emptyTrash deletes what is in the trash of the volumes, and reports whether something is left. It continues the work
// of an earlier process that was stopped or crashed.
func emptyTrash(ctx context.Context, where layout, volumes int32, log *slog.Logger) (left bool) {
	for index := range volumes {
		trash := where.meta(index, TrashDir)
		entries, err := os.ReadDir(trash)
		if err != nil {
			log.Error("reading the trash", "volume", index, "err", err)
			left = true
			continue
		}
		for _, entry := range entries {
			if ctx.Err() != nil {
				return true
			}
			where.about("delete " + filepath.Join(trash, entry.Name()))
			if err := os.RemoveAll(filepath.Join(trash, entry.Name())); err != nil {
				log.Error("deleting removed data; trying again later", "volume", index, "entry", entry.Name(), "err", err)
				left = true
				continue
			}
			log.Info("deleted removed data", "volume", index, "entry", entry.Name())
		}
	}
	return left
}
