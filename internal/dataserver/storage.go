package dataserver

import (
	"cmp"
	"context"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/ceph"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// storageOf is the back end of a data server. Nothing else here knows which ones there are.
func storageOf(server *internalv1.DataServer, options Options, fence func(context.Context, []string) error) backend.Backend {
	in := server.Spec.Ceph
	if len(in.Monitors) == 0 {
		return volumes.New(options.VolumesRoot, options.Log)
	}
	ordinal, _ := naming.DataServerOrdinal(server.Spec.FileServerRef.Name, server.Name) // A wrong name is refused elsewhere.
	if in.StewardName == "" {
		fence = nil
	}
	return ceph.New(ceph.Options{
		Monitors: in.Monitors, FSID: in.FSID, FileSystem: in.FileSystem, RecoveryPool: in.RecoveryPool, RecoveryUser: in.RecoveryUser,
		Node:       naming.DataServerOwner(cmp.Or(server.Spec.Ceph.Identity, server.Spec.ServerScope), ordinal),
		ConfigFile: serverpod.CephConfig, Secrets: serverpod.CephSecrets, SecretName: in.SecretName, Steward: in.StewardName,
		Fence: fence, Log: options.Log,
	})
}

// takeStorage waits until no other process serves from the volumes. There are none with Ceph.
func takeStorage(ctx context.Context, options Options) (release func(), alone bool) {
	return volumes.Take(ctx, options.VolumesRoot, options.Log)
}
