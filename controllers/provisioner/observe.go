package provisioner

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/controllers/lookup"
)

// observe reads everything about the claim whose volume has this name.
func (r *Reconciler) observe(ctx context.Context, name string) (*observed, error) {
	o := &observed{now: r.Clock.Now()}
	if err := r.observeVolume(ctx, o, name); err != nil {
		return nil, err
	}
	if err := r.observeClaim(ctx, o, name); err != nil {
		return nil, err
	}
	if err := r.observeShare(ctx, o, name); err != nil {
		return nil, err
	}
	return o, nil
}

func (r *Reconciler) observeVolume(ctx context.Context, o *observed, name string) error {
	volume := &corev1.PersistentVolume{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: name}, volume)
	if err != nil || !found {
		return err
	}
	if _, _, ours := shareOf(volume); ours || isDirectory(volume) {
		o.volume = volume
	}
	return nil
}

// observeClaim reads the claim and its class. If an administrator gave the volume to another claim, it reads that
// claim.
func (r *Reconciler) observeClaim(ctx context.Context, o *observed, name string) error {
	if o.volume != nil {
		ref := o.volume.Spec.ClaimRef
		if ref == nil || !r.WatchNamespaces.Include(ref.Namespace) {
			return nil // Nothing is known of such a claim, and nothing is done for it.
		}
		claim := &corev1.PersistentVolumeClaim{}
		found, err := lookup.Object(ctx, r.Claims, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
		if err != nil {
			return err
		}
		if !found || claim.UID != ref.UID {
			return nil
		}
		o.claim = claim
		return r.observeClass(ctx, o)
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.Claims.List(ctx, &claims, byVolume(name)); err != nil {
		return fmt.Errorf("looking for the claim of %s: %w", name, err)
	}
	if len(claims.Items) == 0 {
		return nil
	}
	o.claim = &claims.Items[0]
	return r.observeClass(ctx, o)
}

func (r *Reconciler) observeClass(ctx context.Context, o *observed) error {
	class := &storagev1.StorageClass{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: classOf(o.claim)}, class)
	if err != nil || !found {
		return err
	}
	o.class = class
	return nil
}

// observeShare reads the share that the volume or else the class names. With neither, it may be left over.
func (r *Reconciler) observeShare(ctx context.Context, o *observed, name string) error {
	var namespace string
	switch {
	case o.volume != nil && isDirectory(o.volume):
		return nil
	case o.volume != nil:
		namespace, _, _ = shareOf(o.volume)
		o.unwatched = !r.WatchNamespaces.Include(namespace)
	case o.claim == nil:
		var shares v1alpha1.FileShareList
		if err := r.Client.List(ctx, &shares, index.OfVolume(name)); err != nil {
			return fmt.Errorf("looking for the FileShare of %s: %w", name, err)
		}
		// Tenants can give a share of theirs the same name and a claimRef.
		if at := slices.IndexFunc(shares.Items, func(s v1alpha1.FileShare) bool { return isLeftOver(&s) }); at >= 0 {
			o.share = &shares.Items[at]
		}
		return r.observeLeftOver(ctx, o, name)
	case o.class != nil:
		namespace = o.class.Parameters["fileServerNamespace"]
		if err := r.observeFileServer(ctx, o, namespace); err != nil {
			return err
		}
	}
	if namespace == "" || !r.WatchNamespaces.Include(namespace) {
		return nil
	}
	inShare := o.volume == nil && o.class != nil && o.class.Parameters["fileShare"] != ""
	if inShare {
		name = o.class.Parameters["fileShare"]
	}
	share := &v1alpha1.FileShare{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: namespace, Name: name}, share)
	if err == nil && !found && !inShare {
		return r.observeSiblings(ctx, o)
	}
	if err != nil || !found {
		return err
	}
	o.share = share
	if inShare {
		return r.observeDirectories(ctx, o)
	}
	return nil
}

// observeSiblings reads what other shares use of the limits.
func (r *Reconciler) observeSiblings(ctx context.Context, o *observed) error {
	if o.fileServer == nil {
		return nil
	}
	var shares v1alpha1.FileShareList
	if err := r.Client.List(ctx, &shares, index.SharesOf(o.fileServer.Namespace, o.fileServer.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing FileShares of FileServer %s: %w", o.fileServer.Name, err)
	}
	o.siblings = limits.Count(shares.Items)
	return nil
}

// observeDirectories reads what the placement of a new directory needs.
func (r *Reconciler) observeDirectories(ctx context.Context, o *observed) error {
	in, fileServer := client.InNamespace(o.share.Namespace), o.share.Spec.FileServerRef.Name
	var directories internalv1.ShareDirectoryList
	if err := r.Client.List(ctx, &directories, in, index.OfFileServer(fileServer), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ShareDirectories: %w", err)
	}
	var servers internalv1.DataServerList
	if err := r.Client.List(ctx, &servers, in, index.OfFileServer(fileServer), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing DataServers: %w", err)
	}
	all := r.assumed.with(directories.Items, o.share.Namespace, fileServer, o.now)
	o.allDirectories, o.dataServers, o.directories = all, servers.Items, map[string]*internalv1.ShareDirectory{}
	for i := range directories.Items {
		if directory := &directories.Items[i]; directory.Spec.FileShareRef.Name == o.share.Name {
			o.directories[directory.Spec.Path] = directory
		}
	}
	return nil
}

// observeLeftOver reads the directory of a claim without a volume.
func (r *Reconciler) observeLeftOver(ctx context.Context, o *observed, name string) error {
	var directories internalv1.ShareDirectoryList
	if err := r.Client.List(ctx, &directories, index.OfVolume(name)); err != nil {
		return fmt.Errorf("looking for the ShareDirectory of %s: %w", name, err)
	}
	if len(directories.Items) > 0 {
		o.leftOver = &directories.Items[0]
	}
	return nil
}

// observeFileServer reads the class's FileServer, and what decides whether it allows the claim.
func (r *Reconciler) observeFileServer(ctx context.Context, o *observed, kubeNamespace string) error {
	if o.unwatched = !r.WatchNamespaces.Include(kubeNamespace); o.unwatched || kubeNamespace == "" {
		return nil
	}
	fileServer := &v1alpha1.FileServer{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: kubeNamespace, Name: o.class.Parameters["fileServer"]}, fileServer)
	if err != nil || !found {
		return err
	}
	o.fileServer = fileServer
	if allowed := fileServer.Spec.AllowedNamespaces; allowed == nil || allowed.From != v1alpha1.NamespacesFromSelector {
		return nil
	}
	namespace := &corev1.Namespace{}
	found, err = lookup.Object(ctx, r.Client, types.NamespacedName{Name: o.claim.Namespace}, namespace)
	if err == nil && !found {
		_, err = lookup.Object(ctx, r.Live, types.NamespacedName{Name: o.claim.Namespace}, namespace)
	}
	o.namespaceLabels = namespace.Labels
	return err
}

// readLive reads past the caches what a decision doubts.
func (r *Reconciler) readLive(ctx context.Context, o *observed, name string, about doubt) error {
	switch about {
	case aboutVolume:
		volume := &corev1.PersistentVolume{}
		found, err := lookup.Object(ctx, r.Live, types.NamespacedName{Name: name}, volume)
		if err != nil {
			return err
		}
		if !found || volume.UID != o.volume.UID {
			*o = observed{now: o.now} // Nothing to do: the cache's next event causes another pass.
			return nil
		}
		o.volume = volume
	case aboutNoVolume:
		volume := &corev1.PersistentVolume{}
		found, err := lookup.Object(ctx, r.Live, types.NamespacedName{Name: name}, volume)
		if err != nil {
			return err
		}
		if found {
			o.volume = volume
			return nil
		}
		claim := &corev1.PersistentVolumeClaim{}
		ref := madeFor(o)
		found, err = lookup.Object(ctx, r.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
		if err != nil {
			return err
		}
		if found && volumeOf(claim) == name {
			o.claim = claim
		}
	case aboutQuota:
		claim, share := &corev1.PersistentVolumeClaim{}, &v1alpha1.FileShare{}
		for object, before := range map[client.Object]client.Object{claim: o.claim, share: o.share} {
			found, err := lookup.Object(ctx, r.Live, client.ObjectKeyFromObject(before), object)
			if err != nil {
				return err
			}
			if !found || object.GetUID() != before.GetUID() {
				*o = observed{now: o.now} // The cache's next event causes another pass.
				return nil
			}
		}
		o.claim, o.share = claim, share
	case aboutNoShare:
		namespace, _, _ := shareOf(o.volume)
		share := &v1alpha1.FileShare{}
		found, err := lookup.Object(ctx, r.Live, types.NamespacedName{Namespace: namespace, Name: name}, share)
		if err != nil {
			return err
		}
		if found {
			o.share = share
		}
	}
	return nil
}

// madeFor is the claim for which a leftover object was made.
func madeFor(o *observed) v1alpha1.ClaimReference {
	if o.leftOver != nil {
		ref, _, _ := claimOfMark(o.leftOver.Annotations[v1alpha1.ClaimAnnotation])
		return ref
	}
	return o.share.Spec.ClaimRef
}
