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

// lister gives what is in a directory of a share on a data server's volume: on shared storage directories only. rel is "" for the root.
// What is not there has nothing in it.
type lister func(ctx context.Context, volume int32, rel string) ([]nfs.DirEntry, error)

// listerOf looks through a data server's NFS service. Where all have the same storage that would leave its client there with capabilities of
// all that it has seen, and then no other has its own directories to itself, and changes in them take two to three times as long: there
// the data server is asked to look past it, at once for the whole share. Each look asks anew: a list of a moment ago does not have what was made
// since, and a look that does not find it is not repeated for minutes (a lost ShareDirectory would not be back).
func (k *Keeper) listerOf(ctx context.Context, share *tree.Share, server *tree.Server) (lister, error) {
	if server.SharedStorage && k.List != nil {
		found, err := k.List(ctx, server.Address, share.Name, int32(max(share.Depth, 1)))
		if err == nil {
			return listed(found), nil
		}
		if !errors.Is(err, listing.ErrNotOffered) {
			return nil, fmt.Errorf("list share %s on data server %s: %w", share.Name, server.Name, err)
		}
	}
	return func(ctx context.Context, volume int32, rel string) ([]nfs.DirEntry, error) {
		entries, err := k.Owners.ReadDir(ctx, server.Address, tree.ExportPath(share.Name, volume, rel), root)
		if nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
			return nil, nil // The export's root is not meant: that it is hidden is another error.
		}
		if err != nil {
			return nil, fmt.Errorf("list %q of share %s on data server %s: %w", rel, share.Name, server.Name, err)
		}
		return entries, nil
	}, nil
}

func listed(found []listing.Directory) lister {
	in := map[string][]nfs.DirEntry{}
	for _, d := range found {
		parent, name := "", d.Path
		if slash := strings.LastIndexByte(d.Path, '/'); slash >= 0 {
			parent, name = d.Path[:slash], d.Path[slash+1:]
		}
		in[parent] = append(in[parent], nfs.DirEntry{Name: name, IsDir: true, Mode: d.Mode, Owner: d.UID, Group: d.GID})
	}
	return func(_ context.Context, _ int32, rel string) ([]nfs.DirEntry, error) { return in[rel], nil }
}
