package volumes

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
)

// classField is the field that the messages name.
const classField = "spec.storage.volumes.storageClassName"

// defaultClassAnnotation marks the cluster's default StorageClass.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// maxNamed bounds how many things a message names.
const maxNamed = 5

// Storage is what was observed of the volumes of a FileServer. The maps and slices hold what is in the cache; nothing in them is changed.
type Storage struct {
	backendapi.Observation
	Classes []storagev1.StorageClass
	// All are the claims of the data servers, by name.
	All map[string]corev1.PersistentVolumeClaim
	// Unmarked are claims with the names of the data servers' that some other program made. Without labels they are not watched.
	Unmarked map[string]bool
	// Pinned are the data servers that do not answer and whose volumes one node alone can use.
	Pinned map[string]bool
	// Attached are the volumes of the data servers that were asked for (Observation.Lost).
	Attached map[string][]failover.Volume
}

var _ backendapi.Storage = (*Storage)(nil)

// choice is what is decided about the claims.
type choice struct {
	className    string
	templateSize resource.Quantity
	// grow are the claims to raise to the size in the specification, sorted.
	grow  []string
	fault *metav1.Condition
}

// choose chooses the class and the size of the claim templates, and the
// claims to grow. Templates can't be changed (the API server refuses it), so an existing StatefulSet keeps
// its own; the class that was the default when it was made stays the class of later servers.
func (s *Storage) choose() choice {
	size := volumeSize(s.FileServer)
	c := choice{templateSize: size}
	if existing, class, ok := existingTemplate(s.StatefulSet); ok {
		c.templateSize, c.className = existing, class
	} else if c.className, c.fault = chooseClass(s.FileServer.Spec.Storage.Volumes.StorageClassName, s.Classes); c.fault != nil {
		return c
	}
	small := s.claimsBelow(size)
	if len(small) == 0 {
		return c
	}
	if s.canExpand(c.className) {
		c.grow = small
		return c
	}
	fault := conditions.False(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonExpansionRefused,
		fmt.Sprintf("spec.storage.volumes.size is %s, but StorageClass %q does not allow volumes to grow (allowVolumeExpansion); "+
			"if its driver can expand volumes, set that to true at the class, else set the size back to %s; the claims keep their size: %s",
			size.String(), c.className, s.VolumeSize(), conditions.List(small, maxNamed)))
	c.fault = &fault
	return c
}

func existingTemplate(set *appsv1.StatefulSet) (resource.Quantity, string, bool) {
	if set == nil || len(set.Spec.VolumeClaimTemplates) == 0 {
		return resource.Quantity{}, "", false
	}
	spec := set.Spec.VolumeClaimTemplates[0].Spec
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
	remedy := "make one of this name, or delete this FileServer and make it again with another (the field can't be changed)"
	if name == "" {
		message = classField + " is unset and the cluster has no default StorageClass"
		remedy = "make one the default (kubectl annotate storageclass NAME " + defaultClassAnnotation +
			"=true), or delete this FileServer and make it again with the field set (it can't be set later)"
	}
	if len(names) == 0 {
		message += "; the cluster has no StorageClass at all"
	} else {
		message += "; there are: " + conditions.List(names, maxNamed)
	}
	message += "; " + remedy
	fault := conditions.False(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonStorageClassNotFound, message)
	return "", &fault
}

// claimsBelow are the claims that ask for less than size, sorted by name. A
// claim that a user has made larger stays as it is.
func (s *Storage) claimsBelow(size resource.Quantity) []string {
	var names []string
	for name, claim := range s.All {
		request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if claim.DeletionTimestamp == nil && request.Cmp(size) < 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// markCommand is what makes claims this FileServer's.
func (s *Storage) markCommand(names []string) string {
	marks := s.marks()
	pairs := make([]string, 0, len(marks))
	for label, value := range marks {
		pairs = append(pairs, label+"="+value)
	}
	slices.Sort(pairs)
	claims := strings.Join(names, " ")
	return fmt.Sprintf("kubectl -n %[1]s label pvc %[2]s %[3]s && kubectl -n %[1]s annotate pvc %[2]s %[4]s=%[5]s", s.FileServer.Namespace, claims,
		strings.Join(pairs, " "), v1alpha1.OwnerAnnotation, s.owner())
}

// marks are the labels of this FileServer's claims, and owner is the value of their annotation.
func (s *Storage) marks() map[string]string {
	marks := naming.SelectDataServers(s.FileServer.Name)
	marks[v1alpha1.ManagedByLabel] = v1alpha1.ManagedBy
	return marks
}

func (s *Storage) owner() string {
	return naming.Owner("FileServer", s.FileServer.Namespace, s.FileServer.Name)
}

// Condition tells whether every claim of every data server is bound, used and large enough.
func (s *Storage) Condition(replicas int32, decided backendapi.Decision) metav1.Condition {
	const conditionType = v1alpha1.FileServerStorageAvailable
	if decided.Fault != nil {
		return *decided.Fault
	}
	size := volumeSize(s.FileServer)
	var pending, unmarked, growing []string
	total, failing := 0, false
	for ordinal := range replicas {
		for volume := range perServer(s.FileServer) {
			total++
			name := naming.VolumeClaim(s.FileServer.Name, ordinal, volume)
			claim, ok := s.All[name]
			capacity := claim.Status.Capacity[corev1.ResourceStorage]
			switch {
			case !ok && s.Unmarked[name]:
				unmarked = append(unmarked, name)
			case !ok:
				pending = append(pending, name+" (not made yet)")
			case claim.Status.Phase != corev1.ClaimBound:
				pending = append(pending, name)
			case capacity.Cmp(size) < 0:
				progress, failed := growthOf(&claim)
				failing = failing || failed
				growing = append(growing, fmt.Sprintf("%s from %s%s", name, capacity.String(), progress))
			}
		}
	}
	if len(unmarked) > 0 {
		return conditions.False(conditionType, v1alpha1.ReasonClaimsPending, fmt.Sprintf("%d of %d claims are not marked as this FileServer's, so they are "+
			"not watched and can't grow: %s; if they are the ones that it is to have: %s", len(unmarked), total, conditions.List(unmarked, maxNamed), s.markCommand(unmarked)))
	}
	if len(pending) > 0 {
		return conditions.False(conditionType, v1alpha1.ReasonClaimsPending,
			fmt.Sprintf("%d of %d claims are not bound: %s", len(pending), total, conditions.List(pending, maxNamed)))
	}
	if refused := s.refused(replicas); refused != nil {
		return *refused
	}
	if len(growing) > 0 {
		reason := v1alpha1.ReasonProgressing
		if failing {
			reason = v1alpha1.ReasonExpansionFailing
		}
		return conditions.False(conditionType, reason,
			fmt.Sprintf("%d of %d claims are growing to %s: %s", len(growing), total, size.String(), conditions.List(growing, maxNamed)))
	}
	bound := fmt.Sprintf("%d of %d claims are bound", total, total)
	if filling := s.filling(replicas, bound); filling != nil {
		return *filling
	}
	if shared := s.sharedFileSystems(replicas); len(shared) > 0 {
		return conditions.True(conditionType, v1alpha1.ReasonSharedFileSystems, fmt.Sprintf("%s, and spec.storage.volumes.sharedFileSystemPolicy is Allow: "+
			"nothing but the signatures of file handles keeps clients from the rest of these file systems, and size and free space are those of all of "+
			"them; claim %s", bound, conditions.List(shared, maxSharedNamed)))
	}
	return conditions.True(conditionType, v1alpha1.ReasonReady, bound)
}
