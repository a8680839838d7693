package objectmetrics

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/test/builders"
)

// list is a collector of objects that need no reading.
type list struct {
	Collector
	objects *Objects
}

func (l *list) Collect(to chan<- prometheus.Metric) {
	for _, sample := range Samples(l.objects) {
		to <- sample.Metric.Sample(sample.Value, sample.Labels...)
	}
}

// BenchmarkScrape is a scrape with as many shares as a FileServer can have, on four data servers.
func BenchmarkScrape(b *testing.B) {
	objects := &Objects{}
	for i := range 4096 {
		share := builders.FileShare("storage", fmt.Sprintf("share-%d", i), "training").Build()
		for _, kind := range []string{"Ready", "Placed", "Exported", "Inventoried", "JunctionsResolved", "ClaimAvailable", "Reconciling"} {
			share.Status.Conditions = append(share.Status.Conditions, condition(kind, metav1.ConditionTrue))
		}
		objects.FileShares = append(objects.FileShares, *share)
		for server := range 4 {
			objects.Exports = append(objects.Exports, *builders.ShareExport("storage", "training", share.Name, fmt.Sprintf("training-%d", server)))
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&list{objects: objects})
	series := 0
	for b.Loop() {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		series = 0
		for _, family := range families {
			series += len(family.Metric)
		}
	}
	b.ReportMetric(float64(series), "series")
}
