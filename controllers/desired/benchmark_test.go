package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

func TestBenchmarkObjects(t *testing.T) {
	job := &v1alpha1.MLPerfStorageJob{}
	job.Name, job.Namespace = "unet3d-h100", "storage"
	share := builders.FileShare("storage", "unet3d", "training").Depth(2).Owner(1000, 100, "0755").Build()
	in := BenchmarkJobInput{Job: job, Share: share, Image: "howdah:test", Clients: 2}
	mount := ShareMount(share, "10.96.0.7", false)
	objects := append(BenchmarkAccess(job),
		runtime.ApplyConfiguration(BenchmarkVolume(job, mount, 4)), BenchmarkClaim(job), BenchmarkPlan(job, "{}\n"),
		BenchmarkGenerateJob(in), BenchmarkRunJob(in))
	golden(t, "benchmark", objects)
}

func TestBenchmarkPodsAreAsTheUserSetsThem(t *testing.T) {
	job := &v1alpha1.MLPerfStorageJob{}
	job.Name, job.Namespace = "unet3d", "storage"
	job.Spec.Pods = &v1alpha1.PodSettings{
		Labels: map[string]string{"team": "vision", "app.kubernetes.io/managed-by": "me"}, Annotations: map[string]string{"note": "x"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}, PriorityClassName: "low",
	}
	job.Spec.Placement = &v1alpha1.Placement{
		NodeSelector: map[string]string{"gpu": "yes"}, TopologyKey: "rack",
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
		NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 5, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "fast", Operator: corev1.NodeSelectorOpExists}}},
		}}},
	}
	job.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi")},
	}
	share := builders.FileShare("storage", "unet3d", "training").Build()
	in := BenchmarkJobInput{Job: job, Share: share, Image: "howdah:test", Clients: 2}
	golden(t, "benchmark-pods", []runtime.ApplyConfiguration{BenchmarkRunJob(in)})
	if mark := BenchmarkRunJob(in).Spec.Template.Labels[v1alpha1.ManagedByLabel]; mark != v1alpha1.ManagedBy {
		t.Errorf("the user's label hides the pods from Howdah: %q", mark)
	}
}

func TestBenchmarkTokenGoesWithItsJob(t *testing.T) {
	job := &v1alpha1.MLPerfStorageJob{}
	job.Name, job.Namespace, job.UID = "unet3d", "storage", "1234"
	token := BenchmarkToken(job, "secret")
	if string(token.Data[BenchmarkTokenKey]) != "secret" || token.Immutable == nil || !*token.Immutable {
		t.Errorf("the Secret does not keep its token: %v", token)
	}
	if len(token.OwnerReferences) != 1 || token.OwnerReferences[0].UID != "1234" || token.OwnerReferences[0].Kind != "MLPerfStorageJob" {
		t.Errorf("the Secret does not go with its job: %v", token.OwnerReferences)
	}
}
