package view

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/text"
)

// fillingWorld is wellWorld with claims: training-1 fills up, training-2 is on the disk of training-0, and its claim grows.
func fillingWorld() *World {
	w := wellWorld()
	for i := range w.DataServers {
		usage := &w.DataServers[i].Status.Volumes[0]
		usage.FreeBytes = ptr.To(*usage.TotalBytes - *usage.UsedBytes)
		usage.TotalFiles, usage.UsedFiles, usage.FileSystemID = ptr.To[int64](64_000_000), ptr.To[int64](2_000_000), fmt.Sprint("disk", i%2)
		list := func(size string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("data-0-training-", i)}}
		claim.Spec.Resources.Requests, claim.Status.Capacity = list("1Ti"), list("1Ti")
		if i == 2 {
			claim.Spec.Resources.Requests, claim.Status.Capacity = list("800Gi"), list("500Gi")
			usage.SharedFileSystem = "is the directory /b of a larger file system"
		}
		w.Claims = append(w.Claims, claim)
	}
	fills := &w.DataServers[1].Status.Volumes[0]
	fills.UsedBytes, fills.FreeBytes, fills.Fill = ptr.To[int64](945<<30), ptr.To[int64](79<<30), v1alpha1.FillAbove90
	fills.FullTime = &metav1.Time{Time: now.Add(3 * time.Hour)}
	sum := &w.FileServers[0].Status.Capacity
	sum.TotalBytes, sum.UsedBytes, sum.FreeBytes, sum.ProvisionedBytes = ptr.To[int64](2<<40), ptr.To[int64](956<<30), ptr.To[int64](1092<<30), ptr.To[int64](2548<<30)
	return w
}

func TestCapacity(t *testing.T) {
	w := fillingWorld()
	golden(t, "capacity.txt", NewCapacity(w).Text(text.Page{Width: 160}))
	golden(t, "capacity-narrow-colours.txt", NewCapacity(w).Text(text.Page{Width: 60, Colour: true}))
	w.Claims, w.Hidden = nil, []Hidden{{Resource: ResourceClaims, Namespace: "default"}}
	golden(t, "capacity-viewer.txt", NewCapacity(w).Text(text.Page{Width: 160}))
	young := wellWorld()
	young.FileServers[0].Status.Capacity, young.DataServers = v1alpha1.FileServerCapacity{}, nil
	golden(t, "capacity-young.txt", NewCapacity(young).Text(text.Page{Width: 100}))
}

func TestCapacityOfCeph(t *testing.T) {
	w := wellWorld()
	w.FileServers[0].Spec.Storage.Ceph.External.Monitors = []string{"10.0.0.1:6789"}
	w.FileShares[0].Status.Quota = v1alpha1.ShareQuotaStatus{Size: ptr.To(resource.MustParse("100Gi")), Used: ptr.To(resource.MustParse("40Gi"))}
	golden(t, "capacity-ceph.txt", NewCapacity(w).Text(text.Page{Width: 100}))
}
