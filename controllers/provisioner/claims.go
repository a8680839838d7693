package provisioner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/internal/naming"
)

const volumeField = "volume"

// byVolume is an index of claims by the volume that they have or would get.
func byVolume(name string) client.MatchingFields { return client.MatchingFields{volumeField: name} }

// volumeOf is the name of what is made for a claim.
func volumeOf(claim client.Object) string { return naming.ProvisionedVolume(string(claim.GetUID())) }

// newClaims is a cache of all claims; the manager's cache has only those that Howdah made. Of claims of other
// provisioners it keeps little more than the name, so that a large cluster's claims need little memory.
func newClaims(ctx context.Context, mgr ctrl.Manager, watchNamespaces []string) (cache.Cache, error) {
	options := cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.PersistentVolumeClaim{}: {Transform: slimClaim}},
	}
	if len(watchNamespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range watchNamespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	claims, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("cache of claims: %w", err)
	}
	if err := claims.IndexField(ctx, &corev1.PersistentVolumeClaim{}, volumeField, func(object client.Object) []string { return []string{volumeOf(object)} }); err != nil {
		return nil, fmt.Errorf("index of claims: %w", err)
	}
	// The manager starts it with the controllers, so an operator that is not the leader has no claims in memory.
	return claims, mgr.Add(claims)
}

func slimClaim(object any) (any, error) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return object, nil
	}
	claim.ManagedFields = nil
	if isOurs(claim) {
		return claim, nil
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta: claim.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			DeletionTimestamp: claim.DeletionTimestamp,
		},
		// Enough to know that there is nothing to do.
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: claim.Spec.VolumeName},
	}, nil
}
