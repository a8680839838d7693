package directories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// ownPrefix starts the names of what Howdah keeps beside the data.
const ownPrefix = ".howdah"

// adoptParallel is how many ShareDirectories of one volume are written at a time.
const adoptParallel = 8

// scanCount is what a scan found.
type scanCount struct{ found, adopted, elsewhere, refused atomic.Int64 }

// scan lists a share's directories on a volume down to the share's depth, and writes ShareDirectories
// for those that have none: this is how lost ShareDirectories come back.
func (k *Keeper) scan(ctx context.Context, t task) error {
	share, ok := k.Tree.Share(t.share)
	if !ok || share.Single {
		return nil
	}
	server, ok := k.Tree.Server(t.slot.Server)
	if !ok || server.Address == "" || !server.Serves[t.share] {
		return nil // it is scanned when it serves the share again
	}
	var count scanCount
	if err := k.tellRoot(ctx, share, t.slot, server.Address); err != nil {
		return err
	}
	if err := k.scanBelow(ctx, share, t.slot, server.Address, "", func() error { return nil }, &count); err != nil {
		return err
	}
	if n := count.refused.Load(); n > 0 {
		k.Log.Error("directories that exist on a data server are not shown, because the share has as many as its spec.maxDirectories allows: raise it",
			"share", share.Name, "server", t.slot.Server, "volume", t.slot.Volume, "notShown", n, "maxDirectories", share.MaxDirectories)
	}
	k.Log.Info("looked for directories without ShareDirectories", "share", share.Name, "server", t.slot.Server, "volume", t.slot.Volume,
		"found", count.found.Load(), "adopted", count.adopted.Load(), "elsewhere", count.elsewhere.Load())
	return nil
}

// tellRoot gives an export's root what clients gave the share's: the volume may be new.
func (k *Keeper) tellRoot(ctx context.Context, share *tree.Share, slot tree.Slot, address string) error {
	e, ok := k.Tree.At(share.Path)
	if !ok || e.Owner == share.Owner && e.Group == share.Group && e.Mode == share.Mode {
		return nil
	}
	path := tree.ExportPath(share.Name, slot.Volume, tree.RootPath)
	if err := k.Owners.SetAttributes(ctx, address, path, root, nfs.Settings{Owner: &e.Owner, Group: &e.Group, Mode: &e.Mode}); err != nil {
		return fmt.Errorf("give the root of share %s on data server %s its owner and mode: %w", share.Name, slot.Server, err)
	}
	return nil
}

// scanBelow scans a directory above the depth. above writes its ShareDirectory: it exists for those below, and is there before them, so that
// its handle is the same from the beginning. An empty one on an owner says nothing.
func (k *Keeper) scanBelow(ctx context.Context, share *tree.Share, slot tree.Slot, address, rel string, above func() error, count *scanCount) error {
	entries, err := k.Owners.ReadDir(ctx, address, tree.ExportPath(share.Name, slot.Volume, rel), root)
	if err != nil {
		return fmt.Errorf("list %q of share %s on data server %s: %w", rel, share.Name, slot.Server, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(adoptParallel)
	for _, e := range entries {
		if !e.IsDir || strings.HasPrefix(e.Name, ownPrefix) || !utf8.ValidString(e.Name) {
			continue
		}
		path := strings.TrimPrefix(rel+"/"+e.Name, "/")
		if tree.Depth(path) == share.Depth {
			count.found.Add(1)
			group.Go(func() error { return k.adoptEntry(ctx, share, slot, path, e, above, count) })
			continue
		}
		this := sync.OnceValue(func() error { return k.adoptEntry(ctx, share, tree.Slot{}, path, e, above, nil) })
		if err := k.scanBelow(ctx, share, slot, address, path, this, count); err != nil {
			return errors.Join(err, group.Wait())
		}
	}
	return group.Wait()
}

// adoptEntry writes the ShareDirectory of a directory that was found, unless there is one.
func (k *Keeper) adoptEntry(ctx context.Context, share *tree.Share, slot tree.Slot, path string, e nfs.DirEntry, above func() error, count *scanCount) error {
	if r, ok := k.Tree.Directory(share.Name, path); ok {
		if count != nil && (r.Server != slot.Server || r.Volume != slot.Volume) {
			count.elsewhere.Add(1)
			k.Log.Warn("a directory exists on a second data server: what is in it is not visible in the namespace; move its content by hand",
				"share", share.Name, "path", path, "owner", r.Server, "also", slot.Server, "volume", slot.Volume)
		}
		return nil
	}
	if k.full(share) {
		if count != nil {
			count.refused.Add(1)
		}
		return nil
	}
	if err := above(); err != nil {
		return err
	}
	spec := internalv1.ShareDirectorySpec{
		UID: ptr.To(int64(e.Owner)), GID: ptr.To(int64(e.Group)), Mode: tree.FormatMode(e.Mode),
	}
	if slot.Server != "" {
		spec.DataServerRef.Name, spec.Volume = slot.Server, ptr.To(slot.Volume)
	}
	directory := k.newDirectory(share, path, spec)
	err := k.Client.Create(ctx, directory)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // made meanwhile; its event comes
	case err != nil:
		return fmt.Errorf("write the ShareDirectory of %s of share %s: %w", path, share.Name, err)
	}
	if count == nil {
		k.Tree.SetDirectory(directory)
		return nil
	}
	count.adopted.Add(1)
	// It may have been removed, ShareDirectory and all, since it was listed.
	there, err := k.exists(ctx, slot.Server, slot.Volume, share.Name, path)
	if err != nil {
		return err // the keeper finishes it: it is Creating
	}
	if there {
		return k.setState(ctx, directory, internalv1.DirectoryReady)
	}
	count.adopted.Add(-1)
	return k.drop(ctx, directory)
}
