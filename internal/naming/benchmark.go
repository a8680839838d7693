package naming

import "github.com/howdah/howdah/api/v1alpha1"

// Benchmark is the ServiceAccount, Role, RoleBinding, Secret and
// PersistentVolumeClaim of an MLPerfStorageJob's client pods.
func Benchmark(job string) string { return job + "-benchmark" }

// BenchmarkVolume is the PersistentVolume of an MLPerfStorageJob's mount. It has
// a hash because PersistentVolumes have no namespace.
func BenchmarkVolume(kubeNamespace, job string) string {
	return "howdah-" + job + "-" + shortHash("benchmark", kubeNamespace, job)
}

// BenchmarkPlan is the ConfigMap that tells the client pods what to do.
func BenchmarkPlan(job string) string { return job + "-plan" }

// BenchmarkResult is the ConfigMap that the client pods write progress and result to.
func BenchmarkResult(job string) string { return job + "-result" }

// BenchmarkGenerate is the Job whose pods write the dataset.
func BenchmarkGenerate(job string) string { return job + "-generate" }

// BenchmarkRun is the Job whose pods run the workload.
func BenchmarkRun(job string) string { return job + "-run" }

// SelectBenchmark selects what belongs to an MLPerfStorageJob.
func SelectBenchmark(job string) map[string]string {
	return map[string]string{v1alpha1.JobLabel: job, v1alpha1.ComponentLabel: ComponentBenchmark}
}
