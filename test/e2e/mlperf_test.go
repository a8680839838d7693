package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
)

var _ = Describe("An MLPerfStorageJob", Label("mlperf"), func() {
	It("runs unet3d from two clients and all servers serve evenly", func(ctx SpecContext) {
		clients, accelerators, samples, epochs := int32(2), int32(2), int32(84), int32(2)
		size := resource.MustParse("500k")
		Expect(c.Create(ctx, &v1alpha1.MLPerfStorageJob{
			ObjectMeta: metav1.ObjectMeta{Name: "unet3d", Namespace: c.Namespace},
			Spec: v1alpha1.MLPerfStorageJobSpec{
				FileShareRef: v1alpha1.FileShareReference{Name: share},
				Accelerator:  v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: accelerators},
				Clients:      clients,
				Dataset:      &v1alpha1.Dataset{Samples: samples, SampleSize: &size},
				Epochs:       epochs,
			},
		})).To(Succeed())
		job := &v1alpha1.MLPerfStorageJob{}
		Expect(cluster.WaitFor(ctx, "the verdict", func(ctx context.Context) error {
			if err := c.Get(ctx, "unet3d", job); err != nil {
				return err
			}
			if condition := cluster.Condition(job.Status.Conditions, v1alpha1.JobSucceeded); condition.Status == metav1.ConditionUnknown {
				return errors.New(condition.Reason + ": " + condition.Message)
			}
			return nil
		})).To(Succeed())

		result := job.Status.Result
		Expect(result).NotTo(BeZero(), fmt.Sprint(job.Status.Conditions))
		Expect(result.PerClient).To(HaveLen(int(clients)))
		Expect(result.PerClient[0].NodeName).NotTo(Equal(result.PerClient[1].NodeName))
		Expect(result.PerServer).To(HaveLen(serverCount))
		busiest, idlest, sum := int64(0), int64(math.MaxInt64), int64(0)
		for _, server := range result.PerServer {
			busiest, idlest, sum = max(busiest, *server.BytesRead), min(idlest, *server.BytesRead), sum+*server.BytesRead
		}
		Expect(idlest).To(BeNumerically(">", 0))
		Expect(float64(busiest) / float64(idlest)).To(BeNumerically("<=", 1.3))
		Expect(float64(sum)).To(BeNumerically("~", float64(*result.BytesRead), 0.1*float64(*result.BytesRead)),
			"the servers' counters and the clients' agree: nothing came from a cache")
		Expect(result.Label).To(ContainSubstring("not an MLPerf"))
		AddReportEntry("verdict", fmt.Sprintf("%s, AU %s %%, %d MB/s, busiest/idlest server %.2f",
			result.Verdict, result.AUPercent, *result.BytesPerSecond/1e6, float64(busiest)/float64(idlest)), ReportEntryVisibilityAlways)
	}, SpecTimeout(bound(4*time.Minute)))
})
