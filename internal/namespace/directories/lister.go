package directories

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// listsAtATime is how many lists of whole shares are in memory at a time. Each has at most some ten MiB.
const listsAtATime = 2

// lister lists a data server's directories.
type lister struct {
	// entries calls yield for each entry of a directory on the data server's volume until yield returns false; on
	// shared storage, for directories only. rel is "" for the root. A missing directory has no entries.
	entries func(ctx context.Context, volume int32, rel string, yield func(nfs.DirEntry) bool) error
	// partial: the list does not have all directories.
	partial bool
	// release must be called at the end.
	release func()
}

// listerOf lists through a data server's NFS service. On shared storage that would leave the data server's Ceph client
// with capabilities for everything it has listed. Then no other data server has its directories exclusively, and
// changes in them take two to three times as long. So there the data server lists the whole share without its NFS
// service (package listing). Each check requests a new list: an old one lacks new directories, and a lost
// ShareDirectory would not come back for minutes.
func (k *Leader) listerOf(ctx context.Context, share *tree.Share, server *tree.Server) (*lister, error) {
	if server.SharedStorage && k.List != nil {
		list, err := k.listWhole(ctx, share, server)
		if !errors.Is(err, listing.ErrNotOffered) {
			return list, err
		}
	}
	entries := func(ctx context.Context, volume int32, rel string, yield func(nfs.DirEntry) bool) error {
		err := k.Owners.Entries(ctx, server.Address, tree.ExportPath(share.Name, volume, rel), root, yield)
		if nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
			return nil // Not the export's root: a hidden root is another error.
		}
		if err != nil {
			return fmt.Errorf("list %q of share %s on data server %s: %w", rel, share.Name, server.Name, err)
		}
		return nil
	}
	return &lister{entries: entries, release: func() {}}, nil
}

// listWhole reads all directories of a share into memory. Their number is bounded.
func (k *Leader) listWhole(ctx context.Context, share *tree.Share, server *tree.Server) (*lister, error) {
	select {
	case k.lists <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to list share %s on data server %s: %w", share.Name, server.Name, ctx.Err())
	}
	release := func() { <-k.lists }
	found, err := k.List(ctx, server.Address, share.Name, int32(max(share.Depth, 1)))
	partial := errors.Is(err, listing.ErrTooMany)
	if err != nil && !partial {
		release()
		return nil, fmt.Errorf("list share %s on data server %s: %w", share.Name, server.Name, err)
	}
	if partial {
		k.Log.Error("a share has more directories than are looked at: those beyond are not shown, and it is not checked whether any is missing; keep fewer at its depth and above",
			"share", share.Name, "server", server.Name, "lookedAt", len(found))
	}
	return &lister{entries: listed(found), partial: partial, release: release}, nil
}

func listed(found []listing.Directory) func(context.Context, int32, string, func(nfs.DirEntry) bool) error {
	in := map[string][]nfs.DirEntry{}
	for _, d := range found {
		parent, name := "", d.Path
		if slash := strings.LastIndexByte(d.Path, '/'); slash >= 0 {
			parent, name = d.Path[:slash], d.Path[slash+1:]
		}
		in[parent] = append(in[parent], nfs.DirEntry{Name: name, IsDir: true, Mode: d.Mode, Owner: d.UID, Group: d.GID})
	}
	return func(_ context.Context, _ int32, rel string, yield func(nfs.DirEntry) bool) error {
		for _, entry := range in[rel] {
			if !yield(entry) {
				break
			}
		}
		return nil
	}
}
