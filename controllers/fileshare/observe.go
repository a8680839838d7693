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

// observed has everything that a pass reads. Shares, exports and directories belong to the cache and must not be
// changed.
type observed struct {
	now   time.Time
	share *v1alpha1.FileShare
	// fileServer is nil if there is none.
	fileServer *v1alpha1.FileServer
	// refused: the share names a FileServer in another Kubernetes namespace that does not allow it or does not exist.
	refused bool
	// unwatched: the operator does not watch the FileServer's Kubernetes namespace, so it knows nothing about it.
	unwatched bool
	// attachment is the ShareAttachment, if share and FileServer are in different namespaces; nil if there is none.
	attachment *internalv1.ShareAttachment
	// namespaceUID is the UID of the share's Kubernetes namespace; "" if it is the FileServer's namespace.
	namespaceUID string
	// conflicts has the shares of the FileServer whose paths conflict with this one's, oldest first. Attached shares
	// are included; shares that are being deleted are not.
	conflicts []fleet.Share
	// reservedPorts: a share of the FileServer wants clients to come from reserved ports.
	reservedPorts bool
	// dataServers are those of the FileServer.
	dataServers []internalv1.DataServer
	// directories are those of the share, by path.
	directories map[string]*internalv1.ShareDirectory
	// removed are the declared paths without a ShareDirectory because clients have removed or renamed the directory. false: the end of that is not known yet.
	removed map[string]bool
	// others has the ShareDirectories of the FileServer's other shares, if the pass places directories.
	others []*internalv1.ShareDirectory
	// exports are those of the share, by data server.
	exports map[string]*internalv1.ShareExport
	// accessDigest is what the cache has in the place of the access rules of the share's exports.
	accessDigest []v1alpha1.AccessRule
	// storage is the ShareStorage of the share, nil if there is none.
	storage *internalv1.ShareStorage
	// grant is what the FileServer's limits allow the share.
	grant limits.Grant
	// source is what the share is made from.
	source sourceState
	// retainedElsewhere has ShareDirectories that a deleted share of this name left on another FileServer.
	retainedElsewhere []*internalv1.ShareDirectory
	// volume and claim are the ready-made ones, nil if there are none.
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
	// provisioned is the volume of a claim of a StorageClass whose share this is, nil if there is none.
	provisioned *corev1.PersistentVolume
}

// key is the share's name among the shares of its FileServer; namespace is the FileServer's.
func (o *observed) key() string       { return naming.KeyOf(o.share) }
func (o *observed) namespace() string { return naming.ServerNamespace(o.share) }

// observe reads all there is to know about a share.
func (r *Reconciler) observe(ctx context.Context, share *v1alpha1.FileShare, exports []*internalv1.ShareExport, storages []*internalv1.ShareStorage) (*observed, error) {
	o := &observed{now: r.Clock.Now(), share: share, exports: map[string]*internalv1.ShareExport{}, accessDigest: r.digests.of(share)}
	o.refused = naming.IsForeign(share) // a FileServer must allow it first
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
			r.observeFileServer, r.observeNamespace, r.observeConflicts, r.observePorts, r.observeDataServers, r.observeDirectories, r.observeSource, r.observeLimits,
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

// allows reports whether a FileServer allows shares of another Kubernetes namespace. The namespace is read only if its
// labels matter.
func (r *Reconciler) allows(ctx context.Context, fileServer *v1alpha1.FileServer, kubeNamespace string) (bool, error) {
	namespace := &corev1.Namespace{}
	if allowed := fileServer.Spec.AllowedNamespaces; allowed != nil && allowed.From == v1alpha1.NamespacesFromSelector {
		found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: kubeNamespace}, namespace)
		if err == nil && !found {
			// It may be new and not in the cache yet. Read it directly, because shares of a namespace that is not
			// allowed are not served.
			_, err = lookup.Object(ctx, r.Live, types.NamespacedName{Name: kubeNamespace}, namespace)
		}
		if err != nil {
			return false, err
		}
	}
	return desired.AllowsNamespace(fileServer, kubeNamespace, namespace.Labels), nil
}

// observeConflicts reads the shares whose paths conflict with this one's. The cache has an index by path, so a pass
// does not read the FileServer's thousands of other shares.
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

// observeDataServers reads the data servers. If their lists of shares matter, because data must be found or removed, it
// reads past the cache: a stale list would miss data of an earlier share with this name.
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

// observeDirectories reads the share's directories. A pass that places directories reads them past the cache, because a
// stale cache would lack what the last pass placed, and the rest would go to the wrong servers. Only such a pass needs
// those of the FileServer's other shares.
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
	// What an earlier share left is marked before its ShareAttachment goes, but another cache shows the marks.
	joins := naming.IsForeign(o.share) && !isOfShare(o) && len(o.directories) > 0
	if !needsPlacement(o) {
		if joins {
			return r.readDirectories(ctx, o)
		}
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
	if err := r.readDirectories(ctx, o); err != nil {
		return err
	}
	o.removed = r.removals.among(o)
	return nil
}

// readDirectories reads the share's directories past the cache.
func (r *Reconciler) readDirectories(ctx context.Context, o *observed) error {
	var live internalv1.ShareDirectoryList
	if err := r.Live.List(ctx, &live, client.InNamespace(o.namespace()), client.MatchingLabelsSelector{Selector: desired.SelectShare(o.share)}); err != nil {
		return fmt.Errorf("listing the ShareDirectories of %s: %w", o.share.Name, err)
	}
	clear(o.directories)
	for i := range live.Items {
		o.directories[live.Items[i].Spec.Path] = &live.Items[i]
	}
	return nil
}

func (r *Reconciler) observeVolume(ctx context.Context, o *observed) error {
	volume := &corev1.PersistentVolume{}
	if naming.IsProvisioned(o.share) { // The ready-made volume's and claim's names do not belong to the share.
		found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: o.share.Name}, volume)
		if found && volume.Annotations[v1alpha1.ProvisionedShareAnnotation] == o.share.Namespace+"/"+o.share.Name {
			o.provisioned = volume
		}
		return err
	}
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
	if !found && o.volume == nil {
		// The cache has only objects of Howdah and can be stale, so check past the cache that there is no claim. A share
		// that has its volume was checked; later the applier checks the name.
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
