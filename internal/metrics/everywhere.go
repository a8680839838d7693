package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// BuildInfo is of every process.
var BuildInfo = gauge(Everywhere, "howdah_build_info", "1; its labels tell what runs.", "version", "go_version")

// Version is what BuildInfo says; the program sets it at its start.
var Version = "unknown"

// RegisterProcess registers what every process of Howdah tells of itself; runtimeToo with what Go's runtime and the kernel
// tell, which the operator's library has already.
func RegisterProcess(registry prometheus.Registerer, runtimeToo bool) {
	info := BuildInfo.GaugeVec()
	info.WithLabelValues(Version, runtime.Version()).Set(1)
	registry.MustRegister(info)
	if runtimeToo {
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
}

// Foreign are the metrics that libraries make, as far as rules and dashboards use them, and where they come from.
var Foreign = map[string]string{
	"up":                                        "Prometheus: 1 if the last scrape worked",
	"process_resident_memory_bytes":             "every process",
	"process_cpu_seconds_total":                 "every process",
	"process_start_time_seconds":                "every process",
	"go_goroutines":                             "every process",
	"ganesha_process_resident_memory_bytes":     "data server: of ganesha",
	"ganesha_process_cpu_seconds_total":         "data server: of ganesha",
	"controller_runtime_reconcile_total":        "operator: controller-runtime",
	"controller_runtime_reconcile_errors_total": "operator: controller-runtime",
	"controller_runtime_reconcile_time_seconds": "operator: controller-runtime",
	"workqueue_depth":                           "operator: controller-runtime",
	"workqueue_queue_duration_seconds":          "operator: controller-runtime",
	"rest_client_requests_total":                "operator: client-go",
}
