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

// A directory that was on its owner and is not is Missing: it stays in the namespace, clients that enter it wait, its share is not Ready, and it
// is neither made again nor forgotten before the user says so. An empty directory in its place would look as if the data had never been.

// loss is one look at a volume that missed directories. All of them have its ID, by which the user gives them up.
type loss struct {
	id    string
	since metav1.Time
}

func (k *Leader) newLoss() loss {
	var random [8]byte
	_, _ = rand.Read(random[:]) // Never fails: it ends the program instead.
	return loss{hex.EncodeToString(random[:]), metav1.NewTime(k.Clock.Now())}
}

// checkVolume looks for directories that should be on a volume and are not, and for missing ones that are there again.
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

// count counts what was written. It is no error that another change was faster: its event follows, or the next look.
func (k *Leader) count(done *atomic.Int64, err error) error {
	if err == nil {
		done.Add(1)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// absent are those of the expected directories that their volume does not list. In memory are those that should be there, and not what is
// listed.
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

// isRoot tells whether the owner's root of a Single share is the share's.
func (k *Leader) isRoot(ctx context.Context, share *tree.Share, r *tree.Directory) (bool, error) {
	if now := k.rootNow(r); now != "" && r.RootID != "" && now != r.RootID {
		return false, nil
	}
	return k.exists(ctx, r.Server, r.Volume, share.Name, r.Path)
}

// rootNow is the identity that the owner's root of a Single share has; "" if it is not known.
func (k *Leader) rootNow(r *tree.Directory) string {
	if r.Path != tree.RootPath {
		return ""
	}
	export, _ := k.Tree.Export(r.Server, r.Share)
	return export.RootID(r.Volume)
}

// markMissing calls a directory Missing, if it is not being changed and is still not there.
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

// markFound calls a directory Ready that is there.
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

// errChanged: what was to be written is not so any more.
var errChanged = apierrors.NewConflict(internalv1.GroupVersion.WithResource("sharedirectories").GroupResource(), "", nil)

// unchanged reads a ShareDirectory, and gives errChanged if it is another than it was.
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

// completeMissing has a directory looked for that was not yet, and does what the user says of one that is given up.
func (k *Leader) completeMissing(ctx context.Context, share *tree.Share, o *internalv1.ShareDirectory) error {
	switch r := tree.NewDirectory(o); {
	case r.LossID == "":
		// All of the volume at once, so that what is missing has one loss.
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

// scanSoon has a server scanned.
func (k *Leader) scanSoon(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue != nil {
		k.queue.Add(t)
	}
}
