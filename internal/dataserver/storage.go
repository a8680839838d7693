package dataserver

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/ceph"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
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

// takeStorage waits until no other process serves from the volumes, and reports that it waits. There are no volumes with Ceph.
func takeStorage(ctx context.Context, options Options, report func(context.Context, func(internalv1.DataServerStatus) internalv1.DataServerStatus) error) (release func(), alone bool) {
	return volumes.Take(ctx, options.VolumesRoot, options.Log, func() {
		message := fmt.Sprintf("another process of node %s serves from the volumes of this data server: this pod waits until that has ended. After a pod was deleted by force it takes seconds; "+
			"if it takes longer, look on the node for the container of an earlier pod, or for another pod with the same volume", options.NodeName)
		options.Log.Warn(message)
		err := report(ctx, func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
			return kubeapi.StatusFrom(status, kubeapi.Observation{
				NodeName: options.NodeName, PodIP: options.PodIP, PodUID: options.PodUID, FirstPort: options.FirstPort,
				Reason: internalv1.ReasonVolumeRefused, Message: message,
			}, metav1.Now())
		})
		if err != nil {
			options.Log.Warn("can't report it", "err", err)
		}
	})
}
