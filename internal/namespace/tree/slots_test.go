package tree

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

func TestSpaceOfWhatDataServersShareCountsOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		ceph internalv1.CephFileSystem
		want Usage
	}{
		"volumes of their own": {internalv1.CephFileSystem{}, Usage{2000, 200}},
		"one Ceph file system": {internalv1.CephFileSystem{Monitors: []string{"10.0.0.1:3300"}}, Usage{1000, 100}},
	} {
		tr := New("fs")
		for _, server := range []string{"fs-0", "fs-1"} {
			o := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: server}}
			o.Spec.FileServerRef.Name, o.Spec.Volumes, o.Spec.Ceph = "fs", 1, tc.ceph
			o.Status.Volumes = []internalv1.VolumeUsage{{Index: ptr.To(int32(0)), TotalBytes: ptr.To(int64(1000)), UsedBytes: ptr.To(int64(100))}}
			tr.SetServer(o)
		}
		if got := tr.Space(); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
