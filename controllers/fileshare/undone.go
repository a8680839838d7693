package fileshare

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/naming"
)

// A data server may be unavailable when a share is deleted with its data, and may then be removed (scale-in, deletion
// of the FileServer) before it has removed the data. Its claims stay, with that data. The ShareExport stays as long as
// one of the claims exists, so that a data server that gets the claims again removes the data before it exports
// anything of that name.

// hasClaims reports whether a claim that may have the export's data exists. A claim that was made later has other data.
func (r *Reconciler) hasClaims(ctx context.Context, export *internalv1.ShareExport) (bool, error) {
	var claims corev1.PersistentVolumeClaimList
	fileServer := export.Spec.FileServerRef.Name
	if err := r.Client.List(ctx, &claims, client.InNamespace(export.Namespace), index.OfFileServer(fileServer), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the claims of FileServer %s: %w", fileServer, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if server, ok := naming.ServerOfClaim(fileServer, claim.Name); ok && server == export.Spec.DataServerRef.Name &&
			!claim.CreationTimestamp.After(export.DeletionTimestamp.Time) {
			return true, nil
		}
	}
	return false, nil
}

// claimGone passes deletions of data servers' claims.
var claimGone = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(e event.DeleteEvent) bool {
		return e.Object.GetLabels()[v1alpha1.ComponentLabel] == naming.ComponentDataServer
	},
}

// waitingForClaim returns the shares with exports that waited for a claim's deletion.
func (r *Reconciler) waitingForClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	server, ok := naming.ServerOfClaim(claim.GetLabels()[v1alpha1.FileServerLabel], claim.GetName())
	if !ok {
		return nil
	}
	return r.endingExports(ctx, claim.GetNamespace(), server)
}

// endingExports returns the shares, existing or not, with an export on a data server that is being deleted.
func (r *Reconciler) endingExports(ctx context.Context, namespace, server string) (requests []reconcile.Request) {
	var exports internalv1.ShareExportList
	if err := r.Client.List(ctx, &exports, client.InNamespace(namespace), index.OfDataServer(server), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing ShareExports of a data server", "dataServer", server)
		return nil
	}
	for i := range exports.Items {
		if export := &exports.Items[i]; export.DeletionTimestamp != nil {
			requests = append(requests, requestOf(export.Namespace, export.Spec.FileShareRef.Name))
		}
	}
	return requests
}
