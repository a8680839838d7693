package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
)

func TestMaxConnections(t *testing.T) {
	memory := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}
	for name, test := range map[string]struct {
		spec v1alpha1.FileServerSpec
		want int32
	}{
		"nothing is set": {v1alpha1.FileServerSpec{}, 16384},
		"the user says": {v1alpha1.FileServerSpec{
			NFS: &v1alpha1.NFSOptions{MaxConnections: 100}, Resources: &corev1.ResourceRequirements{Limits: memory("8Gi")},
		}, 100},
		"1 GiB":                        {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Limits: memory("1Gi")}}, 4096},
		"2 GiB":                        {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Limits: memory("2Gi")}}, 8192},
		"a request alone":              {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Requests: memory("512Mi")}}, 16384},
		"a request and no limit":       {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Requests: memory("512Mi"), Limits: memory("0")}}, 2048},
		"no limit":                     {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Limits: memory("0")}}, 4096},
		"the limit before the request": {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Requests: memory("512Mi"), Limits: memory("1Gi")}}, 4096},
		"very little":                  {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Limits: memory("64Mi")}}, 1024},
		"very much":                    {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{Limits: memory("1Ti")}}, 16384},
		"processors only": {v1alpha1.FileServerSpec{Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		}}, 16384},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MaxConnections(&v1alpha1.FileServer{Spec: test.spec}); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
