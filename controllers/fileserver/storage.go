package fileserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/naming"
)

// classField is the field that the messages name.
const classField = "spec.storage.volumes.storageClassName"

// defaultClassAnnotation marks the cluster's default StorageClass.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

type storageDecision struct {
	className    string
	templateSize resource.Quantity
	grow         []string
	fault        *metav1.Condition
}

// decideStorage chooses the class and the size of the claim templates, and the
// claims to grow. Templates can't be changed (the API server refuses it), so an existing StatefulSet keeps
// its own; the class that was the default when it was made stays the class of later servers.
func decideStorage(o *observed) storageDecision {
	size := desired.VolumeSize(o.fileServer)
	s := storageDecision{templateSize: size}
	if existing, class, ok := existingTemplate(o); ok {
		s.templateSize, s.className = existing, class
	} else if s.className, s.fault = chooseClass(o.fileServer.Spec.Storage.Volumes.StorageClassName, o.classes); s.fault != nil {
		return s
	}
	small := o.claimsBelow(size)
	if len(small) == 0 {
		return s
	}
	at := slices.IndexFunc(o.classes, func(c storagev1.StorageClass) bool { return c.Name == s.className })
	if at >= 0 && o.classes[at].AllowVolumeExpansion != nil && *o.classes[at].AllowVolumeExpansion {
		s.grow = small
		return s
	}
	fault := conditions.False(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonExpansionRefused,
		fmt.Sprintf("spec.storage.volumes.size is %s, but StorageClass %q does not allow volumes to grow (allowVolumeExpansion); "+
			"the claims keep their size: %s", size.String(), s.className, conditions.List(small, maxPaths)))
	s.fault = &fault
	return s
}

func existingTemplate(o *observed) (resource.Quantity, string, bool) {
	if o.statefulSet == nil || len(o.statefulSet.Spec.VolumeClaimTemplates) == 0 {
		return resource.Quantity{}, "", false
	}
	spec := o.statefulSet.Spec.VolumeClaimTemplates[0].Spec
	if spec.StorageClassName == nil {
		return resource.Quantity{}, "", false
	}
	return spec.Resources.Requests[corev1.ResourceStorage], *spec.StorageClassName, true
}

// chooseClass finds the named class, or the default one; of several defaults the
// newest, as Kubernetes does.
func chooseClass(name string, classes []storagev1.StorageClass) (string, *metav1.Condition) {
	var names []string
	var standard *storagev1.StorageClass
	for i := range classes {
		class := &classes[i]
		if name != "" && class.Name == name {
			return name, nil
		}
		names = append(names, class.Name)
		if class.Annotations[defaultClassAnnotation] == "true" &&
			(standard == nil || standard.CreationTimestamp.Before(&class.CreationTimestamp)) {
			standard = class
		}
	}
	if name == "" && standard != nil {
		return standard.Name, nil
	}
	message := fmt.Sprintf("%s: there is no StorageClass %q", classField, name)
	if name == "" {
		message = classField + " is unset and the cluster has no default StorageClass"
	}
	if len(names) == 0 {
		message += "; the cluster has no StorageClass at all"
	} else {
		message += "; there are: " + conditions.List(names, maxPaths)
	}
	fault := conditions.False(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonStorageClassNotFound, message)
	return "", &fault
}

// claimsBelow are the claims that ask for less than size, sorted by name. A
// claim that a user has made larger stays as it is.
func (o *observed) claimsBelow(size resource.Quantity) []string {
	var names []string
	for name, claim := range o.claims {
		request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if claim.DeletionTimestamp == nil && request.Cmp(size) < 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// storageCondition tells whether every claim of every data server is bound, used and large enough.
func storageCondition(o *observed, d decision) metav1.Condition {
	const conditionType = v1alpha1.FileServerStorageAvailable
	if d.storage != nil {
		return *d.storage
	}
	size := desired.VolumeSize(o.fileServer)
	var pending, growing []string
	total := 0
	for ordinal := range d.input.Replicas {
		for volume := range desired.PerServer(o.fileServer) {
			total++
			name := naming.VolumeClaim(o.fileServer.Name, ordinal, volume)
			claim, ok := o.claims[name]
			capacity := claim.Status.Capacity[corev1.ResourceStorage]
			switch {
			case !ok:
				pending = append(pending, name+" (not made yet)")
			case claim.Status.Phase != corev1.ClaimBound:
				pending = append(pending, name)
			case capacity.Cmp(size) < 0:
				growing = append(growing, fmt.Sprintf("%s from %s", name, capacity.String()))
			}
		}
	}
	if len(pending) > 0 {
		return conditions.False(conditionType, v1alpha1.ReasonClaimsPending,
			fmt.Sprintf("%d of %d claims are not bound: %s", len(pending), total, conditions.List(pending, maxPaths)))
	}
	if refused := refusedVolumes(o, d); refused != nil {
		return *refused
	}
	if len(growing) > 0 {
		return conditions.False(conditionType, v1alpha1.ReasonProgressing,
			fmt.Sprintf("%d of %d claims are growing to %s: %s", len(growing), total, size.String(), conditions.List(growing, maxPaths)))
	}
	bound := fmt.Sprintf("%d of %d claims are bound", total, total)
	if shared := o.sharedVolumes(d); len(shared) > 0 {
		return conditions.True(conditionType, v1alpha1.ReasonSharedFileSystems, fmt.Sprintf("%s, and spec.storage.volumes.sharedFileSystemPolicy is Allow: "+
			"nothing but the signatures of file handles keeps clients from the rest of these file systems, and size and free space are those of all of "+
			"them; claim %s", bound, conditions.List(shared, maxSharedNamed)))
	}
	return conditions.True(conditionType, v1alpha1.ReasonReady, bound)
}
