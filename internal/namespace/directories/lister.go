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

// listsAtATime is how many lists of a whole share are in memory at a time: each has some ten MiB at the most.
const listsAtATime = 2

// lister looks at a data server's directories.
type lister struct {
	// entries gives what is in a directory of a share on the data server's volume one by one until yield returns false: on shared
	// storage directories only. rel is "" for the root. What is not there has nothing in it.
	entries func(ctx context.Context, volume int32, rel string, yield func(nfs.DirEntry) bool) error
	// partial: there are more directories than it knows.
	partial bool
	// release is to be called when it is not needed any more.
	release func()
}

// listerOf looks through a data server's NFS service. Where all have the same storage that would leave its client there with capabilities of
// all that it has seen, and then no other has its own directories to itself, and changes in them take two to three times as long: there
// the data server is asked to look past it, at once for the whole share. Each look asks again: a list of a moment ago does not have what was made
// since, and a look that does not find it is not repeated for minutes (a lost ShareDirectory would not be back).
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
			return nil // The export's root is not meant: that it is hidden is another error.
		}
		if err != nil {
			return fmt.Errorf("list %q of share %s on data server %s: %w", rel, share.Name, server.Name, err)
		}
		return nil
	}
	return &lister{entries: entries, release: func() {}}, nil
}

// listWhole has all directories of a share in memory, of which there are a bounded number.
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
