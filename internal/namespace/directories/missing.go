package directories

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A directory that was on its owner and is gone becomes Missing. It stays in the namespace, clients that enter it wait,
// and its share is not Ready. It is neither made again nor forgotten until the user decides: an empty directory in its
// place would hide the loss.

// loss is one check of a volume that missed directories. All of them get its ID, which the user needs to give them up.
type loss struct {
	id    string
	since metav1.Time
}

func (k *Leader) newLoss() loss {
	var random [8]byte
	_, _ = rand.Read(random[:]) // Never fails: it ends the program instead.
	return loss{hex.EncodeToString(random[:]), metav1.NewTime(k.Clock.Now())}
}

// checkVolume finds directories that are missing on a volume, and missing ones that are there again.
func (k *Leader) checkVolume(ctx context.Context, share *tree.Share, slot tree.Slot, list *lister) error {
	expected := slices.DeleteFunc(k.Tree.DirectoriesOn(share.Name, slot), func(r *tree.Directory) bool {
		// It is being changed, or it is not shown.
		return r.State != internalv1.DirectoryReady && r.State != internalv1.DirectoryMissing || r.RemoveWhenEmpty || share.Single != (r.Path == tree.RootPath)
	})
	absent, err := k.absent(ctx, share, expected, list)
	if err != nil {
		return err
	}
	lost := k.newLoss()
	var missed, found atomic.Int64
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(adoptParallel)
	for _, r := range expected {
		switch there := !absent[r]; {
		case !there && (r.State == internalv1.DirectoryReady || r.LossID == ""):
			group.Go(func() error { return k.count(&missed, k.markMissing(writing, share, r, lost)) })
		case there && (r.State == internalv1.DirectoryMissing || k.rootNow(r) != "" && r.RootID != k.rootNow(r)):
			group.Go(func() error { return k.count(&found, k.markFound(writing, share, r)) })
		}
	}
	err = group.Wait()
	if missed.Load() > 0 {
		k.Log.Error("directories are not on their data server: they stay in the namespace, and the share is not Ready, until they are back or given up",
			"share", share.Name, "server", slot.Server, "volume", slot.Volume, "directories", missed.Load(), "loss", lost.id)
	}
	if found.Load() > 0 {
		k.Log.Info("found directories on their data server", "share", share.Name, "server", slot.Server, "volume", slot.Volume, "directories", found.Load())
	}
	return err
}

// count counts writes. A conflict is no error: an event or the next check follows.
func (k *Leader) count(done *atomic.Int64, err error) error {
	if err == nil {
		done.Add(1)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// absent returns the expected directories that their volume does not list. Only the expected ones are in memory, not
// the list.
func (k *Leader) absent(ctx context.Context, share *tree.Share, expected []*tree.Directory, list *lister) (map[*tree.Directory]bool, error) {
	absent, wanted := map[*tree.Directory]bool{}, map[string]map[string]*tree.Directory{}
	for _, r := range expected {
		if r.Path == tree.RootPath {
			there, err := k.isRoot(ctx, share, r)
			if err != nil {
				return nil, err
			}
			absent[r] = !there
			continue
		}
		dir, name := "", r.Path
		if slash := strings.LastIndexByte(r.Path, '/'); slash >= 0 {
			dir, name = r.Path[:slash], r.Path[slash+1:]
		}
		if wanted[dir] == nil {
			wanted[dir] = map[string]*tree.Directory{}
		}
		wanted[dir][name], absent[r] = r, true
	}
	for dir, names := range wanted {
		err := list.entries(ctx, expected[0].Volume, dir, func(e nfs.DirEntry) bool {
			if r := names[e.Name]; r != nil {
				absent[r] = false
				delete(names, e.Name)
			}
			return len(names) > 0
		})
		if err != nil {
			return nil, err
		}
	}
	return absent, nil
}

// isRoot reports whether the root on the owner is the root of this Single share.
func (k *Leader) isRoot(ctx context.Context, share *tree.Share, r *tree.Directory) (bool, error) {
	if now := k.rootNow(r); now != "" && r.RootID != "" && now != r.RootID {
		return false, nil
	}
	return k.exists(ctx, r.Server, r.Volume, share.Name, r.Path)
}

// rootNow is the identity of a Single share's root on its owner; "" if it is not known.
func (k *Leader) rootNow(r *tree.Directory) string {
	if r.Path != tree.RootPath {
		return ""
	}
	export, _ := k.Tree.Export(r.Server, r.Share)
	return export.RootID(r.Volume)
}

// markMissing sets a directory to Missing if it is not being changed and is still missing.
func (k *Leader) markMissing(ctx context.Context, share *tree.Share, r *tree.Directory, lost loss) error {
	o, err := k.unchanged(ctx, r)
	if err != nil {
		return err
	}
	if r.Path != tree.RootPath {
		if exists, err := k.exists(ctx, r.Server, r.Volume, share.Name, r.Path); err != nil {
			return err
		} else if exists {
			return errChanged // The list is older.
		}
	}
	o.Status.MissingTime, o.Status.LossID = &lost.since, lost.id
	return k.setState(ctx, o, internalv1.DirectoryMissing)
}

// markFound sets a directory that exists to Ready.
func (k *Leader) markFound(ctx context.Context, share *tree.Share, r *tree.Directory) error {
	o, err := k.unchanged(ctx, r)
	if err != nil {
		return err
	}
	if exists, err := k.exists(ctx, r.Server, r.Volume, share.Name, r.Path); err != nil || !exists {
		return err
	}
	if now := k.rootNow(r); now != "" {
		o.Status.RootID = now
	}
	return k.setState(ctx, o, internalv1.DirectoryReady)
}

// errChanged means that the object has changed since the decision.
var errChanged = apierrors.NewConflict(internalv1.GroupVersion.WithResource("sharedirectories").GroupResource(), "", nil)

// unchanged reads a ShareDirectory, and returns errChanged if it has changed.
func (k *Leader) unchanged(ctx context.Context, r *tree.Directory) (*internalv1.ShareDirectory, error) {
	o, err := k.get(ctx, r.Share, r.Path)
	if err != nil {
		return nil, err
	}
	if now := tree.NewDirectory(o); now.UID != r.UID || now.Version != r.Version {
		return nil, errChanged
	}
	return o, nil
}

// completeMissing schedules the check of a directory that was not checked yet, and makes or removes one that is given
// up.
func (k *Leader) completeMissing(ctx context.Context, share *tree.Share, o *internalv1.ShareDirectory) error {
	switch r := tree.NewDirectory(o); {
	case r.LossID == "":
		// Check the whole volume at once, so that all missing directories have one loss.
		k.scanSoon(task{share: r.Share, server: r.Server})
		return nil
	case !slices.Contains(share.AcceptedLosses, r.LossID):
		return nil
	case o.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue || r.Path == tree.RootPath:
		k.Log.Warn("a missing directory is given up, and made again", "share", r.Share, "path", r.Path, "server", r.Server, "loss", r.LossID)
		return k.setState(ctx, o, internalv1.DirectoryCreating)
	default:
		k.Log.Warn("a missing directory is given up", "share", r.Share, "path", r.Path, "server", r.Server, "loss", r.LossID)
		return k.undo(ctx, o)
	}
}

// scanSoon schedules the scan of a server.
func (k *Leader) scanSoon(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.Add(t)
	}
}
