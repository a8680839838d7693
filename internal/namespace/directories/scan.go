package directories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/sameobject"
)

// adoptParallel is how many ShareDirectories of one volume are written at a time.
const adoptParallel = 8

// mostOwn is more than the number of Howdah's own entries in a share's root.
const mostOwn = 1000

// scanResult is what a scan found.
type scanResult struct {
	// shared: all data servers have the same directories, so a directory of another owner is not misplaced here.
	shared                  bool
	found, adopted, refused atomic.Int64

	mu sync.Mutex
	// misplaced has some directories whose ShareDirectories name another owner; misplacedCount is their number.
	misplaced      []internalv1.MisplacedDirectory
	misplacedCount int32
	// skipped has some directories that can't have a ShareDirectory, with the reason; skippedCount is their number.
	skipped      []string
	skippedCount int32
	// moving is a directory that has no ShareDirectory and is on its way between two volumes, under its hidden name; "" if there is none.
	moving string
	// occupied has the volumes where the root of a Single share is not empty.
	occupied []int32
}

// scan lists a share's directories on a data server down to the share's depth, writes ShareDirectories for those that
// have none, and reports what it found. So lost ShareDirectories come back, and the operator knows that a directory
// exists nowhere before it gives it an owner.
func (k *Leader) scan(ctx context.Context, t task) error {
	share, ok := k.Tree.Share(t.share)
	if !ok {
		return nil
	}
	server, ok := k.Tree.Server(t.server)
	if !ok || server.Address == "" || !server.Serves[t.share] {
		return nil // it is scanned when it serves the share again
	}
	// Read the export first: the result belongs to this export, or is not used.
	export, ok := k.Tree.Export(server.Name, share.Name)
	if !ok {
		return nil
	}
	if share.Single && server.SharedStorage {
		if err := k.checkVolume(ctx, share, tree.Slot{Server: server.Name}, nil); err != nil {
			return err
		}
		return k.reportInventory(ctx, share, server.Name, export, &scanResult{}) // What is in the root is in its place.
	}
	list, err := k.listerOf(ctx, share, server)
	if err != nil {
		return err
	}
	defer list.release()
	result := &scanResult{shared: server.SharedStorage}
	for volume := range server.Volumes {
		if err := k.scanVolume(ctx, share, tree.Slot{Server: server.Name, Volume: volume}, server.Address, list, result); err != nil {
			return err
		}
		if list.partial {
			continue // What is not listed may be there.
		}
		if err := k.checkVolume(ctx, share, tree.Slot{Server: server.Name, Volume: volume}, list); err != nil {
			return err
		}
	}
	if n := result.refused.Load(); n > 0 {
		k.Log.Error("directories that exist on a data server are not shown, because there are as many as the limit allows: raise it",
			"share", share.Name, "server", server.Name, "notShown", n, "limit", string(k.Tree.Full(share)), "maxDirectories", share.MaxDirectories)
	}
	if n := result.skippedCount; n > 0 {
		k.Log.Error("directories that exist on a data server are not shown, because nothing can stand for them: rename them on the volume",
			"share", share.Name, "server", server.Name, "notShown", n, "some", result.skipped)
	}
	k.Log.Debug("looked for directories without ShareDirectories", "share", share.Name, "server", server.Name,
		"found", result.found.Load(), "adopted", result.adopted.Load(), "misplaced", result.misplacedCount)
	if n := result.adopted.Load(); n > 0 {
		k.Log.Info("wrote ShareDirectories for directories that had none", "share", share.Name, "server", server.Name, "directories", n)
	}
	if result.misplacedCount > 0 {
		k.lookAgain(t)
	}
	if result.moving != "" {
		// One of the two data servers gives it its name back, in a minute or two. Before that it is not known which path it has.
		return fmt.Errorf("%q on data server %s is a directory of share %s that moves and whose ShareDirectory is lost: it is not known which one until it has its name back", result.moving, server.Name, share.Name)
	}
	return k.reportInventory(ctx, share, server.Name, export, result)
}

// scanVolume looks at one volume.
func (k *Leader) scanVolume(ctx context.Context, share *tree.Share, slot tree.Slot, address string, list *lister, result *scanResult) error {
	if !share.Single {
		if err := k.checkRoot(ctx, address, share, slot.Volume); err != nil {
			return err
		}
		return k.scanBelow(ctx, share, slot, address, list, "", func() error { return nil }, result)
	}
	occupied, err := isOccupied(ctx, list, slot.Volume)
	if occupied {
		result.occupied = append(result.occupied, slot.Volume)
	}
	return err
}

// isOccupied reports whether a volume's root has entries that are not Howdah's. The root may have millions of files, so
// it reads only the first mostOwn entries.
func isOccupied(ctx context.Context, list *lister, volume int32) (occupied bool, err error) {
	own := 0
	err = list.entries(ctx, volume, "", func(e nfs.DirEntry) bool {
		own++
		occupied = !strings.HasPrefix(e.Name, naming.OwnPrefix) || own > mostOwn
		return !occupied
	})
	return occupied, err
}

// reportInventory writes the result into the export's status if it changed.
func (k *Leader) reportInventory(ctx context.Context, share *tree.Share, server string, export tree.Export, result *scanResult) error {
	found := internalv1.ShareInventory{
		FileShareUID: share.UID, Generation: share.InventoryGeneration, OccupiedVolumes: result.occupied, Misplaced: result.misplaced, Skipped: result.skipped,
	}
	if result.skippedCount > 0 {
		found.SkippedCount = &result.skippedCount
	}
	if result.misplacedCount > 0 {
		found.MisplacedCount = &result.misplacedCount
	}
	if equality.Semantic.DeepEqual(found, export.Inventory) {
		return nil
	}
	// This field only: the data server writes the rest of the status, which is there, because it serves the export.
	object := &internalv1.ShareExport{ObjectMeta: metav1.ObjectMeta{Namespace: k.KubeNamespace, Name: naming.ShareExport(share.Name, server)}}
	err := sameobject.PatchStatus(ctx, k.Client, object, export.UID, map[string]any{"inventory": found})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("tell what data server %s has of share %s: %w", server, share.Name, err)
	}
	return nil
}

// scanBelow scans a directory above the depth. above writes its ShareDirectory before those below it, so that its
// handle never changes. An empty directory above the depth needs none. Entries are processed as they arrive, so only
// one page of each directory is in memory.
func (k *Leader) scanBelow(ctx context.Context, share *tree.Share, slot tree.Slot, address string, list *lister, rel string, above func() error, result *scanResult) error {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(adoptParallel)
	var below error
	err := list.entries(ctx, slot.Volume, rel, func(e nfs.DirEntry) bool {
		if move, moves := strings.CutPrefix(e.Name, naming.MovingPrefix); moves && rel == "" && !k.Tree.HasMove(share.Name, move) {
			result.moving = e.Name
		}
		if !e.IsDir || strings.HasPrefix(e.Name, naming.OwnPrefix) {
			return true
		}
		path := strings.TrimPrefix(rel+"/"+e.Name, "/")
		if why := whyUnrecordable(path); why != "" {
			result.leaveOut(slot.Volume, path, why)
			return true
		}
		if tree.Depth(path) == share.Depth {
			result.found.Add(1)
			group.Go(func() error {
				return result.unlessUnrecordable(slot, path, k.adoptEntry(working, share, slot, path, e, above, result))
			})
			return working.Err() == nil
		}
		this := once(func() error { return k.adoptEntry(working, share, tree.Slot{}, path, e, above, nil) })
		if below = k.checkCopy(working, address, share, slot.Volume, path, e); below == nil {
			below = k.scanBelow(working, share, slot, address, list, path, this, result)
		}
		return below == nil
	})
	if adopted := group.Wait(); adopted != nil {
		return adopted // The others may have ended for this one.
	}
	// The list is not complete.
	return errors.Join(below, err, ctx.Err())
}

// once is sync.OnceValue with a channel as lock: in the fake time of testing/synctest, time stands still while a
// goroutine waits for a mutex.
func once(do func() error) func() error {
	lock := make(chan struct{}, 1)
	var done bool
	var err error
	return func() error {
		lock <- struct{}{}
		defer func() { <-lock }()
		if !done {
			done, err = true, do()
		}
		return err
	}
}

// adoptEntry writes the ShareDirectory of a directory that was found, unless there is one.
func (k *Leader) adoptEntry(ctx context.Context, share *tree.Share, slot tree.Slot, path string, e nfs.DirEntry, above func() error, result *scanResult) error {
	if r, ok := k.Tree.Directory(share.Name, path); ok {
		if result != nil && (r.Server != slot.Server || r.Volume != slot.Volume) && r.State != internalv1.DirectoryMoving {
			result.misplace(slot.Volume, path)
		}
		return above() // It may have lost its own.
	}
	if k.Tree.Full(share) != tree.FullNot {
		if result != nil {
			result.refused.Add(1)
		}
		return nil
	}
	if err := above(); err != nil {
		return err
	}
	if result != nil && result.shared {
		// Any data server can own it, so directories from before Howdah are spread too. If none can be chosen, this one
		// owns it.
		if owner, release, err := k.place(share.Name, path); err == nil {
			defer release()
			slot = tree.Slot{Server: owner.Server, Volume: owner.Volume}
		}
	}
	spec := internalv1.ShareDirectorySpec{
		UID: ptr.To(int64(e.Owner)), GID: ptr.To(int64(e.Group)), Mode: tree.FormatMode(e.Mode),
	}
	if slot.Server != "" {
		spec.DataServerRef.Name, spec.Volume = slot.Server, ptr.To(slot.Volume)
	}
	directory := k.newDirectory(share, path, newMark(), spec)
	err := k.Client.Create(ctx, directory)
	switch {
	case apierrors.IsAlreadyExists(err):
		return k.seeOther(ctx, share, slot, path, result)
	case apierrors.IsInvalid(err):
		return &errUnrecordable{fmt.Errorf("write the ShareDirectory of %s of share %s: %w", path, share.Name, err)}
	case err != nil:
		return fmt.Errorf("write the ShareDirectory of %s of share %s: %w", path, share.Name, err)
	}
	if result == nil {
		k.Tree.SetDirectory(directory)
		return nil
	}
	result.adopted.Add(1)
	// It may have been removed with its ShareDirectory since it was listed.
	there, err := k.exists(ctx, slot.Server, slot.Volume, share.Name, path)
	if err != nil {
		return err // the leader finishes it: it is Creating
	}
	if there {
		return k.setState(ctx, directory, internalv1.DirectoryReady)
	}
	result.adopted.Add(-1)
	return k.drop(ctx, directory)
}

// seeOther reads a ShareDirectory that was made after the tree was read: it may name another owner.
func (k *Leader) seeOther(ctx context.Context, share *tree.Share, slot tree.Slot, path string, result *scanResult) error {
	other, err := k.get(ctx, share.Name, path)
	if err != nil {
		return err // deleted again, or unreadable: the scan is repeated
	}
	if r := tree.NewDirectory(other); result != nil && (r.Server != slot.Server || r.Volume != slot.Volume) && r.State != internalv1.DirectoryMoving {
		result.misplace(slot.Volume, path)
	}
	return nil
}

// misplace records a directory that another data server or volume owns.
func (s *scanResult) misplace(volume int32, path string) {
	const most = 8
	if s.shared {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misplacedCount++
	// The first in order, so that another scan tells the same.
	s.misplaced = append(s.misplaced, internalv1.MisplacedDirectory{Volume: &volume, Path: path})
	slices.SortFunc(s.misplaced, func(a, b internalv1.MisplacedDirectory) int {
		return cmp.Or(cmp.Compare(*a.Volume, *b.Volume), strings.Compare(a.Path, b.Path))
	})
	s.misplaced = s.misplaced[:min(len(s.misplaced), most)]
}
