package fileshare

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// dropOrphans deletes what a deleted share left: objects in the namespace of its FileServer, which no owner reference
// covers, if its finalizer was removed by hand; and the ShareDirectory of a mkdir that came after the last check. Its
// data stays.
func (r *Reconciler) dropOrphans(ctx context.Context, share types.NamespacedName, exports []*internalv1.ShareExport, storages []*internalv1.ShareStorage) error {
	unmade, left, err := r.leftDirectories(ctx, share)
	if err != nil {
		return err
	}
	var attachments internalv1.ShareAttachmentList
	if err := r.Client.List(ctx, &attachments, index.OfFileShare(naming.ShareKey("", share.Namespace, share.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ShareAttachments: %w", err)
	}
	var orphans []client.Object
	for _, export := range exports {
		if export.Namespace != share.Namespace {
			orphans = append(orphans, export)
		}
	}
	for _, storage := range storages {
		if storage.Namespace != share.Namespace {
			orphans = append(orphans, storage)
		}
	}
	for i := range attachments.Items {
		orphans = append(orphans, &attachments.Items[i])
	}
	if len(orphans)+len(unmade)+len(left) == 0 {
		return nil
	}
	if found, err := lookup.Object(ctx, r.Live, share, &v1alpha1.FileShare{}); err != nil || found {
		return err
	}
	if err := r.retainOrphans(ctx, share.Namespace, attachments.Items, left); err != nil {
		return err
	}
	var remove, release []apply.Change
	for _, orphan := range orphans {
		if orphan.GetDeletionTimestamp() == nil {
			remove = append(remove, apply.Change{Delete: orphan})
		}
	}
	for _, directory := range unmade {
		remove = append(remove, apply.Change{Delete: directory, AsRead: true}) // A changed one may have a share again.
	}
	for i := range attachments.Items {
		release = append(release, apply.Change{Release: &attachments.Items[i], Finalizer: v1alpha1.AttachmentFinalizer})
	}
	_, err = apply.Execute(ctx, r.Client, remove, release)
	return err
}

// leftDirectories returns the ShareDirectories whose directories no data server has reported, and the others of a share
// in another namespace than its FileServer's that don't say yet whose data they have. If an unmade one exists on a
// volume anyway, the next share of this name finds it.
func (r *Reconciler) leftDirectories(ctx context.Context, share types.NamespacedName) (unmade, left []*internalv1.ShareDirectory, err error) {
	for key, namespace := range map[string]string{share.Name: share.Namespace, naming.ShareKey("", share.Namespace, share.Name): ""} {
		var list internalv1.ShareDirectoryList
		if err := r.Client.List(ctx, &list, client.InNamespace(namespace), index.OfFileShare(key), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("listing ShareDirectories: %w", err)
		}
		for i := range list.Items {
			switch directory := &list.Items[i]; {
			case isRetained(directory):
			case directory.State() == internalv1.DirectoryCreating:
				unmade = append(unmade, directory)
			case namespace == "":
				left = append(left, directory)
			}
		}
	}
	return unmade, left, nil
}
