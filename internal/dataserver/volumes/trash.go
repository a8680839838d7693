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
	"github.com/howdah/howdah/internal/dataserver/removal"
)

// discard moves the data of a share on a volume to the trash. After that clients can't reach it, and a new share of the
// same name starts empty. emptyTrash frees the space.
func discard(where layout, share string, index int32, now time.Time) error {
	volume, err := where.open(index)
	if err != nil {
		return fmt.Errorf("moving the data of share %s to the trash: %w", share, err)
	}
	defer func() { _ = volume.Close() }()
	if _, err := volume.Lstat(share); !errors.Is(err, fs.ErrNotExist) {
		where.about("discard " + where.share(share, index))
		if err := volume.Rename(share, metaName(TrashDir, share+"."+strconv.FormatInt(now.UnixNano(), 10))); err != nil {
			return fmt.Errorf("moving the data of share %s to the trash: %w", share, err)
		}
	}
	// Also if it is gone: the last try may have failed here, and a crash would bring the data back for a new share of the name. Sync the
	// directory that gets the name before the one that loses it, so that a crash can't lose both.
	for _, directory := range []string{metaName(TrashDir), "."} {
		where.about("make durable " + directory)
		if err := durable.SyncIn(volume, directory); err != nil {
			return fmt.Errorf("making the removal of share %s durable: %w", share, err)
		}
	}
	return nil
}

// emptyTrash deletes what is in the trash of the volumes, and reports whether something is left. It continues the work
// of an earlier process that was stopped or crashed.
func emptyTrash(ctx context.Context, where layout, volumes int32, log *slog.Logger) (left bool) {
	for index := range volumes {
		volume, err := where.open(index)
		if err != nil {
			log.Error("reading the trash", "volume", index, "err", err)
			left = true
			continue
		}
		left = emptyTrashOf(ctx, where, index, volume, log) || left
		_ = volume.Close()
	}
	return left
}

func emptyTrashOf(ctx context.Context, where layout, index int32, volume *os.Root, log *slog.Logger) (left bool) {
	entries, err := fs.ReadDir(volume.FS(), metaName(TrashDir))
	if err != nil {
		log.Error("reading the trash", "volume", index, "err", err)
		return true
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return true
		}
		name := metaName(TrashDir, entry.Name())
		where.about("delete " + filepath.Join(where.volume(index), name))
		err := removal.Tree(ctx, volume, name)
		if ctx.Err() != nil {
			return true
		}
		if err != nil {
			log.Error("deleting removed data; trying again later", "volume", index, "entry", entry.Name(), "err", err)
			left = true
			continue
		}
		log.Info("deleted removed data", "volume", index, "entry", entry.Name())
	}
	return left
}
