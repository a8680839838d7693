package objectmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
)

// collectTimeout bounds the reading of the cache, which waits until the cache is filled.
const collectTimeout = 5 * time.Second

// Collector makes metrics of the objects at each scrape.
type Collector struct {
	// Reader is the operator's cache.
	Reader client.Reader
	// Elected is closed when this operator is the leader. Only the leader has these metrics; otherwise sums would be
	// wrong.
	Elected <-chan struct{}
}

// Describe names all metrics of the operator.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range metrics.All() {
		if metric.Process == metrics.Operator {
			to <- metric.Desc()
		}
	}
}

// Collect makes the samples. If objects can't be read, the rest of the scrape is complete.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	objects, err := c.read(ctx)
	if err != nil {
		ctrl.Log.WithName("metrics").Error(err, "The objects were not read, so their metrics are missing from a scrape")
		to <- metrics.ObjectsCollected.Sample(0)
		return
	}
	to <- metrics.ObjectsCollected.Sample(1)
	for _, sample := range Samples(objects) {
		to <- sample.Metric.Sample(sample.Value, sample.Labels...)
	}
}

func (c *Collector) read(ctx context.Context) (*Objects, error) {
	var (
		servers     v1alpha1.FileServerList
		shares      v1alpha1.FileShareList
		snapshots   v1alpha1.FileShareSnapshotList
		schedules   v1alpha1.FileShareSnapshotScheduleList
		jobs        v1alpha1.MLPerfStorageJobList
		dataServers internalv1.DataServerList
		exports     internalv1.ShareExportList
	)
	for _, list := range []client.ObjectList{&servers, &shares, &snapshots, &schedules, &jobs, &dataServers, &exports} {
		// They are only read, and there can be many.
		if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	return &Objects{servers.Items, shares.Items, snapshots.Items, schedules.Items, jobs.Items, dataServers.Items, exports.Items}, nil
}
