package directories

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

const (
	// checkEvery is how often the Keeper compares ShareDirectories with what is on the data servers.
	checkEvery = 10 * time.Minute
	// checkPause is between two data servers: nobody waits for a check.
	checkPause = 100 * time.Millisecond
)

// checkSteadily compares ShareDirectories with the data servers' directories, one volume after the other, until the context
// ends. Volumes are the truth: what is on them and has no ShareDirectory gets one, and a ShareDirectory of something that
// is not there any more (a power failure, an older snapshot of the volume, somebody at the data server) goes.
func (k *Keeper) checkSteadily(ctx context.Context) {
	ticker := k.Clock.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			k.checkAll(ctx)
		}
	}
}

func (k *Keeper) checkAll(ctx context.Context) {
	for _, share := range k.Tree.Shares() {
		for _, server := range k.Tree.Servers() {
			if share.Single || server.Address == "" || !server.Serves[share.Name] || k.Reachable != nil && !k.Reachable(server.Name) {
				continue // it is looked at when it serves the share
			}
			if err := k.check(ctx, share, server); err != nil && ctx.Err() == nil {
				k.Log.Warn("a data server could not be compared with its ShareDirectories, and is at the next check",
					"share", share.Name, "server", server.Name, "error", err)
			}
			if !k.pause(ctx, checkPause) {
				return
			}
		}
	}
}

// check compares one share's ShareDirectories with one data server.
func (k *Keeper) check(ctx context.Context, share *tree.Share, server *tree.Server) error {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	if err := k.checkVolumes(ctx, share, server); err != nil {
		return err
	}
	return k.scan(ctx, task{share: share.Name, server: server.Name})
}

func (k *Keeper) checkVolumes(ctx context.Context, share *tree.Share, server *tree.Server) error {
	list, err := k.listerOf(ctx, share, server)
	if err != nil {
		return err
	}
	defer list.release()
	if list.partial {
		return nil // What is not listed may be there.
	}
	for volume := range server.Volumes {
		if err := k.checkVolume(ctx, share, tree.Slot{Server: server.Name, Volume: volume}, list); err != nil {
			return err
		}
	}
	return nil
}

// checkVolume looks for ShareDirectories of what is not on the volume.
func (k *Keeper) checkVolume(ctx context.Context, share *tree.Share, slot tree.Slot, list *lister) error {
	missing, expected, err := k.missing(ctx, share, slot, list)
	if err != nil {
		return err
	}
	if len(missing) > 1 && len(missing) == expected {
		k.Log.Error("a volume has none of the directories that a share should have there: is it another volume, or an empty one? Nothing is changed",
			"share", share.Name, "server", slot.Server, "volume", slot.Volume, "directories", expected)
		return nil
	}
	for _, r := range missing {
		if err := k.settleMissing(ctx, share, r); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// missing are the directories that should be on a volume and are not listed there, by path. In memory are those that should be, not
// what is listed.
func (k *Keeper) missing(ctx context.Context, share *tree.Share, slot tree.Slot, list *lister) (missing []*tree.Directory, expected int, err error) {
	wanted := map[string]map[string]*tree.Directory{}
	for _, r := range k.Tree.DirectoriesOn(share.Name, slot) {
		if r.State != internalv1.DirectoryReady || r.Path == tree.RootPath {
			continue // somebody is at it
		}
		expected++
		dir, name := "", r.Path
		if slash := strings.LastIndexByte(r.Path, '/'); slash >= 0 {
			dir, name = r.Path[:slash], r.Path[slash+1:]
		}
		if wanted[dir] == nil {
			wanted[dir] = map[string]*tree.Directory{}
		}
		wanted[dir][name] = r
	}
	for dir, names := range wanted {
		err := list.entries(ctx, slot.Volume, dir, func(e nfs.DirEntry) bool {
			delete(names, e.Name)
			return len(names) > 0
		})
		if err != nil {
			return nil, 0, err
		}
		missing = slices.AppendSeq(missing, maps.Values(names))
	}
	slices.SortFunc(missing, func(a, b *tree.Directory) int { return strings.Compare(a.Path, b.Path) })
	return missing, expected, nil
}

// settleMissing takes the ShareDirectory of a directory away that is not there, if nobody is at it and it still is not there.
// One that the share declares is made again.
func (k *Keeper) settleMissing(ctx context.Context, share *tree.Share, r *tree.Directory) error {
	o, err := k.get(ctx, r.Share, r.Path)
	if err != nil {
		return err
	}
	if now := tree.NewDirectory(o); now.UID != r.UID || now.Version != r.Version {
		return nil
	}
	exists, err := k.exists(ctx, r.Server, r.Volume, share.Name, r.Path)
	if err != nil || exists {
		return err
	}
	if o.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue {
		k.Log.Warn("a declared directory is not on its data server any more, and is made again",
			"share", share.Name, "path", r.Path, "server", r.Server, "volume", r.Volume)
		return k.setState(ctx, o, internalv1.DirectoryCreating)
	}
	k.Log.Warn("a directory is not on its data server any more: its ShareDirectory goes",
		"share", share.Name, "path", r.Path, "server", r.Server, "volume", r.Volume)
	return k.undo(ctx, o)
}
