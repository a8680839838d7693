package provisioner

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/placement"
)

// decideDirectory makes a directory of a share for a claim, as a client's mkdir would: it writes a ShareDirectory, and
// the namespace servers make the directory. The share keeps it, because the share does not declare it.
//
// The size of a directory is not enforced: quotas are for whole shares.
func decideDirectory(o *observed, p parameters) decision {
	switch share := o.share; {
	case share == nil:
		return decision{refusal: fmt.Sprintf("there is no FileShare %q in namespace %q, which StorageClass %s names; the administrator of FileServer %s makes it", p.fileShare, p.fileServerNamespace, o.class.Name, p.fileServer)}
	case share.DeletionTimestamp != nil:
		return decision{refusal: fmt.Sprintf("FileShare %s is being deleted; use a StorageClass with another", p.fileShare)}
	case share.Spec.FileServerRef.Name != p.fileServer || share.Spec.FileServerRef.Namespace != "" && share.Spec.FileServerRef.Namespace != share.Namespace:
		return decision{refusal: fmt.Sprintf("StorageClass %s: FileShare %s does not belong to FileServer %s of that namespace; ask the class's administrator to name two that belong together", o.class.Name, p.fileShare, p.fileServer)}
	case share.Spec.Layout == v1alpha1.LayoutSingle:
		return decision{refusal: fmt.Sprintf("StorageClass %s: FileShare %s has layout Single, and claims are directories of a Distributed one; use another, or leave parameter fileShare out", o.class.Name, p.fileShare)}
	}
	path, problem := placeDirectory(p.path, int(o.share.Spec.Depth), o.claim.Namespace, o.claim.Name, string(o.claim.UID))
	if problem != "" {
		return decision{refusal: fmt.Sprintf("StorageClass %s: %s", o.class.Name, problem)}
	}
	switch directory := o.directories[path]; {
	case directory == nil:
		return makeDirectory(o, p, path)
	case directory.Annotations[v1alpha1.ClaimAnnotation] != claimMark(o.claim):
		return decision{refusal: fmt.Sprintf("directory %s of FileShare %s exists already and does not belong to this claim; use a StorageClass with {id} in its path", path, p.fileShare)}
	case directory.State() != internalv1.DirectoryReady, o.share.Status.Mount.Address == "",
		!conditions.IsTrue(o.fileServer.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable):
		return decision{}
	}
	size := o.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	volume := volumeFor(o.claim, o.class, p, o.share, false)
	volume.Name, volume.Finalizers = volumeOf(o.claim), nil // Nothing needs to be done before its deletion.
	delete(volume.Annotations, v1alpha1.ProvisionedShareAnnotation)
	delete(volume.Annotations, v1alpha1.ProvisionedLayoutAnnotation)
	volume.Annotations[v1alpha1.ProvisionedDirectoryAnnotation] = o.share.Namespace + "/" + o.share.Name + "/" + path
	volume.Spec.NFS.Path = o.share.Spec.Path + "/" + path
	return decision{createVolume: volume, success: fmt.Sprintf("%s of FileServer %s is the claim's; nothing keeps pods to %s: they can fill what the FileServer's storage has",
		volume.Spec.NFS.Path, p.fileServer, size.String())}
}

// makeDirectory places a new directory, with the missing ones above it.
func makeDirectory(o *observed, p parameters, path string) decision {
	share := o.share
	if !conditions.IsTrue(share.Status.Conditions, v1alpha1.FileShareInventoried) {
		if conditions.IsStalled(share.Status.Conditions) {
			return decision{refusal: describeStalled(o)}
		}
		return decision{} // The volumes may have it already.
	}
	var d decision
	for at, c := range path {
		if c == '/' && o.directories[path[:at]] == nil {
			above := desired.ShareDirectory(share, path[:at], nil)
			above.Annotations = nil // It is not declared.
			d.createDirectories = append(d.createDirectories, above)
		}
	}
	if n := len(o.directories) + len(d.createDirectories) + 1; n > int(share.Spec.MaxDirectories) {
		return decision{refusal: fmt.Sprintf("FileShare %s has as many directories as its spec.maxDirectories allows, %d; its owner can raise that", share.Name, share.Spec.MaxDirectories)}
	}
	if refusal := findDirectoryLimit(o, len(d.createDirectories)+1); refusal != "" {
		return decision{refusal: refusal}
	}
	owner, problem := placeOf(o, path)
	if owner == nil {
		return decision{refusal: problem}
	}
	directory := desired.ShareDirectory(share, path, owner)
	directory.Annotations = map[string]string{v1alpha1.ClaimAnnotation: claimMark(o.claim)}
	directory.Spec.UID, directory.Spec.GID, directory.Spec.Mode = &p.uid, &p.gid, p.mode
	d.createDirectories = append(d.createDirectories, directory)
	return d
}

// placeOf is the owner of a new directory, by the usual placement; nil: there is none now.
func placeOf(o *observed, path string) (*placement.Owner, string) {
	var slots []placement.Slot
	for i := range o.dataServers {
		server := &o.dataServers[i]
		ready := fleet.MayTake(fleet.Now(o.fileServer, server, o.now), o.share.Spec.IgnoreDataOn) == fleet.None
		slots = append(slots, backend.Of(o.fileServer).Slots(server, ready)...)
	}
	var owned []placement.Directory
	for _, directory := range o.allDirectories {
		if directory.Spec.DataServerRef.Name != "" && directory.Spec.Volume != nil {
			owned = append(owned, placement.Directory{
				Share: directory.Spec.FileShareRef.Name, Path: directory.Spec.Path,
				Owner: placement.Owner{Server: directory.Spec.DataServerRef.Name, Volume: *directory.Spec.Volume},
			})
		}
	}
	plan, err := placement.Plan(placement.Count(slots, o.share.Name, owned), nil, []string{path})
	switch {
	case errors.Is(err, placement.ErrNoneEligible):
		return nil, "" // An event of a data server causes the next pass.
	case err != nil || len(plan) != 1:
		return nil, fmt.Sprintf("placing the directory %s failed: %v", path, err)
	}
	return &plan[0].Owner, ""
}

// claimMark identifies a claim among others of its name.
func claimMark(claim metav1.Object) string {
	return claim.GetNamespace() + "/" + claim.GetName() + "/" + string(claim.GetUID())
}

// claimOfMark parses a claimMark.
func claimOfMark(mark string) (v1alpha1.ClaimReference, string, bool) {
	parts := strings.Split(mark, "/")
	if len(parts) != 3 {
		return v1alpha1.ClaimReference{}, "", false
	}
	return v1alpha1.ClaimReference{Namespace: parts[0], Name: parts[1]}, parts[2], true
}

// isDirectory reports whether the volume is a directory of a share.
func isDirectory(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedByAnnotation] == v1alpha1.Provisioner && volume.Annotations[v1alpha1.ProvisionedDirectoryAnnotation] != ""
}
