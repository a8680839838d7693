package directories

import (
	"context"
	"fmt"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A data server has a copy of each directory above the depth that has directories below it there, and judges by the copy's owner, group and mode who may
// pass. Copies get those of the ShareDirectory: when they are made, when a client changes them, and when a look at the data server finds others. That is so
// where a data server was away while the directory was removed and another one of its name was made, and where a volume was restored from a backup.

// updateParallel is how many data servers are updated at a time.
const updateParallel = 8

// updateCopies sets owner, group and mode of a directory's copies on data servers. false: some do not serve the share
// now, and get them later. One that fails keeps no other from getting them: a directory that is closed must be closed where it can be.
func (s *Service) updateCopies(ctx context.Context, share *tree.Share, directory *internalv1.ShareDirectory) (all bool, err error) {
	r := tree.NewDirectory(directory)
	settings := nfs.Settings{Owner: &r.Owner, Group: &r.Group, Mode: &r.Mode}
	all = true
	var group errgroup.Group
	group.SetLimit(updateParallel)
	for _, server := range s.Tree.Servers() {
		if server.Address == "" || !server.Serves[share.Name] {
			all = false
			continue
		}
		if s.Reachable != nil && !s.Reachable(server.Name) {
			group.Go(func() error { return fmt.Errorf("data server %s does not answer", server.Name) })
			continue
		}
		for volume := range server.Volumes {
			group.Go(func() error {
				err := s.Owners.SetAttributes(ctx, server.Address, tree.ExportPath(share.Name, volume, r.Path), root, settings)
				if err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) { // there is nothing below it there
					return fmt.Errorf("set owner and mode on data server %s of %s: %w", server.Name, r.Path, err)
				}
				return nil
			})
		}
	}
	return all, group.Wait()
}

// completeCopies sets owner, group and mode of a directory above the depth on the data servers. A data server that does
// not serve the share gets them when it does.
func (k *Leader) completeCopies(ctx context.Context, share *tree.Share, directory *internalv1.ShareDirectory) error {
	all, err := k.updateCopies(ctx, share, directory)
	if err != nil || !all {
		return err
	}
	return k.patchStatus(ctx, directory, map[string]any{"observedGeneration": directory.Generation})
}

// bringCopy gives a data server's copy of a directory above the depth the owner, group and mode of the directory. Given are those that the copy has. Others
// change them at the same time: they write to the API first, and then to data servers. So it looks again after what it has set.
func (s *Service) bringCopy(ctx context.Context, address string, share *tree.Share, volume int32, rel string, mode, owner, group uint32) error {
	for {
		if _, err := s.get(ctx, share.Name, rel); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		now, ok := s.Tree.Directory(share.Name, rel)
		if !ok || now.Server != "" || now.Owner == owner && now.Group == group && now.Mode == mode {
			return nil
		}
		mode, owner, group = now.Mode, now.Owner, now.Group
		path := tree.ExportPath(share.Name, volume, rel)
		if err := s.Owners.SetAttributes(ctx, address, path, root, nfs.Settings{Owner: &owner, Group: &group, Mode: &mode}); err != nil {
			return fmt.Errorf("set owner and mode of %s above the directory: %w", rel, err)
		}
	}
}

// bringCopies does that for a directory above the depth and those above it, as far as the data server has them.
func (s *Service) bringCopies(ctx context.Context, address string, share *tree.Share, volume int32, rel string) error {
	for at := 1; at <= len(rel); at++ {
		if at < len(rel) && rel[at] != '/' {
			continue
		}
		copied, err := s.Owners.Stat(ctx, address, tree.ExportPath(share.Name, volume, rel[:at]), root)
		switch {
		case nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
			return nil
		case err == nil:
			err = s.bringCopy(ctx, address, share, volume, rel[:at], copied.Mode, copied.Owner, copied.Group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkCopy brings a copy that a look at a data server has found.
func (k *Leader) checkCopy(ctx context.Context, address string, share *tree.Share, volume int32, rel string, found nfs.DirEntry) error {
	found.Mode &= 0o7777
	r, ok := k.Tree.Directory(share.Name, rel)
	if !ok || r.Server != "" || r.State != internalv1.DirectoryReady || r.Owner == found.Owner && r.Group == found.Group && r.Mode == found.Mode {
		return nil
	}
	err := k.bringCopy(ctx, address, share, volume, rel, found.Mode, found.Owner, found.Group)
	if answered(err) {
		// It may have been removed since. What is found is reported in any case.
		k.Log.Info("a data server keeps its owner and mode of a directory above the depth", "share", share.Name, "path", rel, "error", err)
		return nil
	}
	return err
}

// checkRoot gives an export's root the attributes that clients set on the share's root: the volume may be new. It looks again, too.
func (k *Leader) checkRoot(ctx context.Context, address string, share *tree.Share, volume int32) error {
	e, ok := k.Tree.At(share.Path)
	if !ok || e.Owner == share.Owner && e.Group == share.Group && e.Mode == share.Mode {
		return nil
	}
	path := tree.ExportPath(share.Name, volume, tree.RootPath)
	for {
		if err := k.Owners.SetAttributes(ctx, address, path, root, nfs.Settings{Owner: &e.Owner, Group: &e.Group, Mode: &e.Mode}); err != nil {
			return fmt.Errorf("give the root of share %s on data server %s its owner and mode: %w", share.Name, address, err)
		}
		if _, err := k.get(ctx, share.Name, tree.RootPath); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		now, ok := k.Tree.At(share.Path)
		if !ok || e.Owner == now.Owner && e.Group == now.Group && e.Mode == now.Mode {
			return nil
		}
		e = now
	}
}
