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

// discard moves the data of a share on a volume out of the way. From then on
// no client can reach it and a new share of the same name begins empty;
// the space comes back as emptyTrash deletes it.
func discard(where layout, share string, index int32, now time.Time) error {
	path := where.share(share, index)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	grave := where.meta(index, TrashDir, share+"."+strconv.FormatInt(now.UnixNano(), 10))
	where.about("discard " + path)
	if err := os.Rename(path, grave); err != nil {
		return fmt.Errorf("moving the data of share %s to the trash: %w", share, err)
	}
	// Both directories changed; the one that loses the name must not be ahead of the one that gets it.
	if err := durable.SyncDirectory(filepath.Dir(grave)); err != nil {
		return fmt.Errorf("making the removal of share %s durable: %w", share, err)
	}
	if err := durable.SyncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("making the removal of share %s durable: %w", share, err)
	}
	return nil
}

// emptyTrash deletes what is in the trash of the volumes. It goes on where a
// stopped or crashed instance manager left off, and tells if something is left.
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
