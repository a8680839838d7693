package ceph

import (
	"context"
	"fmt"

	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/naming"
)

var _ backend.Lister = (*Backend)(nil)

// Directories lists a share as its user, with a mount that is closed afterwards. It lists only exported shares: an
// entry in the Secret that is not exported yet may name another directory, where everything would seem to be missing.
func (b *Backend) Directories(ctx context.Context, name string, depth int32) (found []listing.Directory, err error) {
	known, err := b.exportedShare(name)
	if err != nil {
		return nil, err
	}
	err = b.as(ctx, known, "listing the share's directories", func(ctx context.Context, user *client.Client, directory client.Directory) (err error) {
		found, err = user.Tree(ctx, directory, depth, naming.OwnPrefix)
		return err
	})
	return found, err
}

func (b *Backend) exportedShare(name string) (share, error) {
	exported := b.exported.Load()
	if exported == nil {
		return share{}, fmt.Errorf("share %s is not exported by this data server yet", name)
	}
	known, ok := (*exported)[name]
	if !ok {
		return share{}, fmt.Errorf("share %s is not exported by this data server", name)
	}
	return known, nil
}

// Sizes reads Ceph's recursive sizes of a share's directories, in the same way.
func (b *Backend) Sizes(ctx context.Context, name string, depth int32) (sizes map[string]int64, err error) {
	known, err := b.exportedShare(name)
	if err != nil {
		return nil, err
	}
	err = b.as(ctx, known, "asking for the sizes of the share's directories", func(ctx context.Context, user *client.Client, directory client.Directory) (err error) {
		sizes, err = user.Sizes(ctx, directory, depth, naming.OwnPrefix)
		return err
	})
	return sizes, err
}
