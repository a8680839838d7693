package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
)

func list(pairs ...string) corev1.ResourceList {
	made := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		made[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return made
}

// A limit without a request would be the request, too: Kubernetes makes it so, and pods of 4 GiB find no place on small nodes.
func TestADataServersMemoryIsLimitedUnlessTheUserSaysOtherwise(t *testing.T) {
	for name, tc := range map[string]struct {
		spec *corev1.ResourceRequirements
		want corev1.ResourceRequirements
	}{
		"nothing is set": {nil, corev1.ResourceRequirements{Requests: list("memory", "256Mi"), Limits: list("memory", "4Gi")}},
		"processors only": {
			&corev1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("cpu", "4")},
			corev1.ResourceRequirements{Requests: list("cpu", "2", "memory", "256Mi"), Limits: list("cpu", "4", "memory", "4Gi")},
		},
		"a request": {
			&corev1.ResourceRequirements{Requests: list("memory", "1Gi")},
			corev1.ResourceRequirements{Requests: list("memory", "1Gi"), Limits: list("memory", "4Gi")},
		},
		"a request above the default limit": {
			&corev1.ResourceRequirements{Requests: list("memory", "64Gi")},
			corev1.ResourceRequirements{Requests: list("memory", "64Gi"), Limits: list("memory", "64Gi")},
		},
		"a limit is the request, as Kubernetes has it": {
			&corev1.ResourceRequirements{Limits: list("memory", "16Gi")},
			corev1.ResourceRequirements{Limits: list("memory", "16Gi")},
		},
		"both": {
			&corev1.ResourceRequirements{Requests: list("memory", "1Gi"), Limits: list("memory", "2Gi")},
			corev1.ResourceRequirements{Requests: list("memory", "1Gi"), Limits: list("memory", "2Gi")},
		},
		"no limit": {
			&corev1.ResourceRequirements{Limits: list("memory", "0", "cpu", "4")},
			corev1.ResourceRequirements{Requests: list("memory", "256Mi"), Limits: list("cpu", "4")},
		},
		"no limit above a request": {
			&corev1.ResourceRequirements{Requests: list("memory", "8Gi"), Limits: list("memory", "0")},
			corev1.ResourceRequirements{Requests: list("memory", "8Gi"), Limits: list()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.spec.DeepCopy()
			if diff := cmp.Diff(tc.want, DataServerResources(&v1alpha1.FileServer{Spec: v1alpha1.FileServerSpec{Resources: tc.spec}})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.spec); diff != "" {
				t.Errorf("the specification was changed: %s", diff)
			}
		})
	}
}

// Who sets the processors alone gets the usual memory: without a limit the node's memory would be all that bounds a namespace server.
func TestANamespaceServersMemoryIsLimitedUnlessTheUserSaysOtherwise(t *testing.T) {
	for name, tc := range map[string]struct {
		spec *corev1.ResourceRequirements
		want corev1.ResourceRequirements
	}{
		"nothing is set": {nil, corev1.ResourceRequirements{Requests: list("cpu", "10m", "memory", "64Mi"), Limits: list("memory", "512Mi")}},
		"processors only": {
			&corev1.ResourceRequirements{Requests: list("cpu", "1")},
			corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "64Mi"), Limits: list("memory", "512Mi")},
		},
		"a limit of processors is the request, as Kubernetes has it": {
			&corev1.ResourceRequirements{Limits: list("cpu", "1")},
			corev1.ResourceRequirements{Requests: list("memory", "64Mi"), Limits: list("cpu", "1", "memory", "512Mi")},
		},
		"a request": {
			&corev1.ResourceRequirements{Requests: list("memory", "1Gi")},
			corev1.ResourceRequirements{Requests: list("cpu", "10m", "memory", "1Gi"), Limits: list("memory", "1Gi")},
		},
		"a limit": {
			&corev1.ResourceRequirements{Limits: list("memory", "2Gi")},
			corev1.ResourceRequirements{Requests: list("cpu", "10m"), Limits: list("memory", "2Gi")},
		},
		"no limit": {
			&corev1.ResourceRequirements{Limits: list("memory", "0")},
			corev1.ResourceRequirements{Requests: list("cpu", "10m", "memory", "64Mi"), Limits: list()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.spec.DeepCopy()
			fs := &v1alpha1.FileServer{Spec: v1alpha1.FileServerSpec{NamespaceServers: &v1alpha1.NamespaceServers{Resources: tc.spec}}}
			if diff := cmp.Diff(tc.want, namespaceServerResources(fs)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.spec); diff != "" {
				t.Errorf("the specification was changed: %s", diff)
			}
		})
	}
}
