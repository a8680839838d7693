package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("What a specification leaves unset", func() {
	It("has the API server's defaults, which are those of the tests without one: no program has its own", func() {
		namespace := newNamespace()
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "least"}

		server := &v1alpha1.FileServer{ObjectMeta: meta}
		server.Spec.Storage.Volumes.Size = new(resource.MustParse("1Gi"))
		want := builders.Defaulted(server)
		create(server)
		Expect(server.Spec).To(Equal(want.Spec))
		Expect(server.Spec.NamespaceServers.Replicas).To(Equal(int32(2)))

		share := &v1alpha1.FileShare{ObjectMeta: meta}
		share.Spec.FileServerRef.Name, share.Spec.Path = "least", "/least"
		wantShare := builders.Defaulted(share)
		create(share)
		Expect(share.Spec).To(Equal(wantShare.Spec))
		Expect(*share.Spec.UID).To(BeZero())

		schedule := &v1alpha1.FileShareSnapshotSchedule{ObjectMeta: meta}
		schedule.Spec.FileShareRef.Name, schedule.Spec.Schedule, schedule.Spec.Retention.KeepLast = "least", "@daily", 7
		wantSchedule := builders.Defaulted(schedule)
		create(schedule)
		Expect(schedule.Spec).To(Equal(wantSchedule.Spec))
		Expect(schedule.Spec.TimeZone).To(Equal("Etc/UTC"))

		job := &v1alpha1.MLPerfStorageJob{ObjectMeta: meta}
		job.Spec.FileShareRef.Name, job.Spec.Accelerator = "least", v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: 1}
		wantJob := builders.Defaulted(job)
		create(job)
		Expect(job.Spec).To(Equal(wantJob.Spec))
		Expect(job.Spec.Mount.Nconnect).To(Equal(int32(16)))
	})
})
