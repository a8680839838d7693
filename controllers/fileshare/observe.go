package fileshare

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// observed is everything that a pass looks at. Shares, exports and directories are shared with the
// cache: nothing may change them.
type observed struct {
	now   time.Time
	share *v1alpha1.FileShare
	// fileServer is nil if there is none.
	fileServer *v1alpha1.FileServer
	// refused: the share names a FileServer of another Kubernetes namespace, which does not allow it or does not exist.
	refused bool
	// unwatched: the operator does not watch the FileServer's Kubernetes namespace, so nothing is known of it.
	unwatched bool
	// attachment is that of a share of another namespace than its FileServer's, nil if there is none.
	attachment *internalv1.ShareAttachment
	// namespaceUID is the UID of the share's Kubernetes namespace; "" where that is the FileServer's.
	namespaceUID string
	// conflicts are the shares of the FileServer, attached ones included, whose paths conflict with this one's and that are not being deleted, the
	// oldest first.
	conflicts []fleet.Share
	// dataServers are those of the FileServer.
	dataServers []internalv1.DataServer
	// directories are those of the share, by path.
	directories map[string]*internalv1.ShareDirectory
	// others are the ShareDirectories of the FileServer's other shares, if the pass is to place directories.
	others []*internalv1.ShareDirectory
	// exports are those of the share, by data server.
	exports map[string]*internalv1.ShareExport
	// storage is the ShareStorage of the share, nil if there is none.
	storage *internalv1.ShareStorage
	// grant is what the limits of the FileServer give to the share.
	grant limits.Grant
	// source is what the share is to be made from.
	source sourceState
	// retainedElsewhere are ShareDirectories that a deleted share of this name left on another FileServer.
	retainedElsewhere []*internalv1.ShareDirectory
	// volume and claim are the ready-made ones, nil if there are none.
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
}

// key is the share's name among the shares of its FileServer, and namespace where all of that is.
func (o *observed) key() string       { return naming.KeyOf(o.share) }
func (o *observed) namespace() string { return naming.ServerNamespace(o.share) }

// observe reads all there is to know about a share.
func (r *Reconciler) observe(ctx context.Context, share *v1alpha1.FileShare, exports []*internalv1.ShareExport, storages []*internalv1.ShareStorage) (*observed, error) {
	o := &observed{now: r.Clock.Now(), share: share, exports: map[string]*internalv1.ShareExport{}}
	o.refused = naming.IsForeign(share) // until a FileServer allows it
	for _, export := range exports {
		if export.Namespace == o.namespace() && export.Spec.FileServerRef.Name == o.share.Spec.FileServerRef.Name {
			o.exports[export.Spec.DataServerRef.Name] = export
		}
	}
	for _, storage := range storages {
		if storage.Namespace == o.namespace() && storage.Spec.FileServerRef.Name == o.share.Spec.FileServerRef.Name {
			o.storage = storage
		}
	}
	if o.unwatched = !r.WatchNamespaces.Include(o.namespace()); !o.unwatched {
		for _, read := range []func(context.Context, *observed) error{
			r.observeNamespace, r.observeFileServer, r.observeConflicts, r.observeDataServers, r.observeDirectories, r.observeSource, r.observeLimits,
		} {
			if err := read(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	return o, r.observeVolume(ctx, o)
}

// observeFileServer reads the FileServer and whether it allows the share.
func (r *Reconciler) observeFileServer(ctx context.Context, o *observed) error {
	fileServer := &v1alpha1.FileServer{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: o.namespace(), Name: o.share.Spec.FileServerRef.Name}, fileServer)
	if err != nil || !found {
		return err
	}
	o.fileServer = fileServer
	if !naming.IsForeign(o.share) {
		return nil
	}
	attachment := &internalv1.ShareAttachment{}
	if found, err = lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: o.namespace(), Name: o.key()}, attachment); err != nil {
		return err
	} else if found {
		o.attachment = attachment
	}
	allowed, err := r.allows(ctx, fileServer, o.share.Namespace)
	o.refused = !allowed
	return err
}

// allows tells whether a FileServer allows shares of another Kubernetes namespace. The namespace's labels are read only where they count.
func (r *Reconciler) allows(ctx context.Context, fileServer *v1alpha1.FileServer, kubeNamespace string) (bool, error) {
	namespace := &corev1.Namespace{}
	if allowed := fileServer.Spec.AllowedNamespaces; allowed != nil && allowed.From == v1alpha1.NamespacesFromSelector {
		found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: kubeNamespace}, namespace)
		if err == nil && !found {
			// A new one that the cache lacks yet. It must be certain: shares of a namespace that is not allowed are not served.
			_, err = lookup.Object(ctx, r.Live, types.NamespacedName{Name: kubeNamespace}, namespace)
		}
		if err != nil {
			return false, err
		}
	}
	return desired.AllowsNamespace(fileServer, kubeNamespace, namespace.Labels), nil
}

// observeConflicts reads the shares whose paths conflict with this one's. The cache has shares by path, so a pass does not look at the thousands of others
// that a FileServer can have.
func (r *Reconciler) observeConflicts(ctx context.Context, o *observed) error {
	var found []fleet.Share
	for _, place := range fleet.ConflictPlaces(o.share.Spec.Path) {
		at := []client.ListOption{client.InNamespace(o.namespace()), index.SharesAt(o.namespace(), o.share.Spec.FileServerRef.Name, place), client.UnsafeDisableDeepCopy}
		var shares v1alpha1.FileShareList
		if err := r.Client.List(ctx, &shares, at...); err != nil {
			return fmt.Errorf("listing FileShares at %s: %w", place, err)
		}
		for i := range shares.Items {
			found = append(found, fleet.ShareOf(&shares.Items[i]))
		}
		var attachments internalv1.ShareAttachmentList
		if err := r.Client.List(ctx, &attachments, at...); err != nil {
			return fmt.Errorf("listing ShareAttachments at %s: %w", place, err)
		}
		for i := range attachments.Items {
			found = append(found, fleet.ShareOfAttachment(&attachments.Items[i]))
		}
	}
	o.conflicts = fleet.Conflicts(fleet.Share{Key: o.key(), Path: o.share.Spec.Path}, found)
	return nil
}

// observeDataServers reads the data servers. Whoever asks which shares they have, for a share whose data is yet to be found or is to be
// removed, asks past the cache: to one that lags behind, data of an earlier share of the name would be none.
func (r *Reconciler) observeDataServers(ctx context.Context, o *observed) error {
	var servers internalv1.DataServerList
	reader, selected := client.Reader(r.Client), client.ListOption(index.OfFileServer(o.share.Spec.FileServerRef.Name))
	if o.share.DeletionTimestamp != nil && removesData(o) || !conditions.IsTrue(o.share.Status.Conditions, v1alpha1.FileShareInventoried) {
		reader, selected = r.Live, client.MatchingLabels{v1alpha1.FileServerLabel: o.share.Spec.FileServerRef.Name}
	}
	if err := reader.List(ctx, &servers, client.InNamespace(o.namespace()), selected); err != nil {
		return fmt.Errorf("listing DataServers: %w", err)
	}
	o.dataServers = servers.Items
	return nil
}

// observeDirectories reads the share's directories. A pass that is about to place directories reads
// them past the cache: a cache that lags behind the last pass would count what that pass placed a second time, and put
// the rest on the wrong servers. Only such a pass needs those of the FileServer's other shares.
func (r *Reconciler) observeDirectories(ctx context.Context, o *observed) error {
	in := client.InNamespace(o.namespace())
	var directories internalv1.ShareDirectoryList
	if err := r.Client.List(ctx, &directories, in, index.OfFileShare(o.key()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ShareDirectories: %w", err)
	}
	o.directories = map[string]*internalv1.ShareDirectory{}
	for i := range directories.Items {
		switch directory := &directories.Items[i]; {
		case directory.Spec.FileServerRef.Name == o.share.Spec.FileServerRef.Name:
			o.directories[directory.Spec.Path] = directory
		case isRetained(directory):
			o.retainedElsewhere = append(o.retainedElsewhere, directory)
		}
	}
	if !needsPlacement(o) {
		return nil
	}
	var all internalv1.ShareDirectoryList
	if err := r.Client.List(ctx, &all, in, index.OfFileServer(o.share.Spec.FileServerRef.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the ShareDirectories of FileServer %s: %w", o.share.Spec.FileServerRef.Name, err)
	}
	for i := range all.Items {
		if directory := &all.Items[i]; directory.Spec.FileShareRef.Name != o.key() {
			o.others = append(o.others, directory)
		}
	}
	var live internalv1.ShareDirectoryList
	if err := r.Live.List(ctx, &live, in, client.MatchingLabelsSelector{Selector: desired.SelectShare(o.share)}); err != nil {
		return fmt.Errorf("listing the ShareDirectories of %s: %w", o.share.Name, err)
	}
	clear(o.directories)
	for i := range live.Items {
		o.directories[live.Items[i].Spec.Path] = &live.Items[i]
	}
	return nil
}

func (r *Reconciler) observeVolume(ctx context.Context, o *observed) error {
	if naming.IsProvisioned(o.share) {
		return nil // A volume or a claim of that name does not belong to the share.
	}
	volume := &corev1.PersistentVolume{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: naming.ShareVolume(o.share.Namespace, o.share.Name)}, volume)
	if err != nil {
		return err
	}
	if found {
		o.volume = volume
	}
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: o.share.Namespace, Name: naming.ShareClaim(o.share.Name)}
	found, err = lookup.Object(ctx, r.Client, key, claim)
	if err != nil {
		return err
	}
	if !found {
		// The cache has only what is ours, and lags: that there is no claim must be certain.
		found, err = lookup.Object(ctx, r.Live, key, claim)
		if err != nil {
			return err
		}
	}
	if found {
		o.claim = claim
	}
	return nil
}
