package desired

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// BenchmarkTokenKey is the key of the Secret that has the token of a run.
const BenchmarkTokenKey = "token"

// benchmarkPlanFile is the key of the plan's ConfigMap, and the name of its file.
const benchmarkPlanFile = "plan.json"

// BenchmarkAccess lets the client pods of a job write to the job's result and to
// nothing else. The ConfigMap of the result is made here, without data: the pods' data is theirs to write.
func BenchmarkAccess(job *v1alpha1.MLPerfStorageJob) []runtime.ApplyConfiguration {
	name, marks := naming.Benchmark(job.Name), labels(naming.SelectBenchmark(job.Name))
	return []runtime.ApplyConfiguration{
		corev1ac.ConfigMap(naming.BenchmarkResult(job.Name), job.Namespace).WithLabels(marks),
		corev1ac.ServiceAccount(name, job.Namespace).WithLabels(marks),
		rbacv1ac.Role(name, job.Namespace).WithLabels(marks).
			WithRules(rule(corev1.GroupName, "configmaps", []string{naming.BenchmarkResult(job.Name)}, "get", "patch")),
		rbacv1ac.RoleBinding(name, job.Namespace).WithLabels(marks).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(job.Namespace)),
	}
}

// BenchmarkPlan is the plan of a job. It can't be changed: the dataset that is
// read must be the one that was written, whatever becomes of the share in between.
func BenchmarkPlan(job *v1alpha1.MLPerfStorageJob, text string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(naming.BenchmarkPlan(job.Name), job.Namespace).
		WithLabels(labels(naming.SelectBenchmark(job.Name))).
		WithImmutable(true).
		WithData(map[string]string{benchmarkPlanFile: text})
}

// BenchmarkPlanText is the text that BenchmarkPlan was given.
func BenchmarkPlanText(plan *corev1.ConfigMap) string { return plan.Data[benchmarkPlanFile] }

// BenchmarkToken is the Secret by which the clients of a job know one another. It is a
// whole object and is only ever created: its content is random, so applying it again would change it.
func BenchmarkToken(job *v1alpha1.MLPerfStorageJob, token string) *corev1.Secret {
	immutable := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.Benchmark(job.Name), Namespace: job.Namespace,
			Labels:          labels(naming.SelectBenchmark(job.Name)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, v1alpha1.GroupVersion.WithKind("MLPerfStorageJob"))},
		},
		Immutable: &immutable,
		Data:      map[string][]byte{BenchmarkTokenKey: []byte(token)},
	}
}
