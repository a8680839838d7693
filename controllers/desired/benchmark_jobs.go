package desired

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

const (
	benchmarkData   = "/data"
	benchmarkConfig = "/etc/howdah"
	// benchmarkPort is the TCP port of the client that coordinates.
	benchmarkPort = 9589
	// generateRetries is how many pods may fail before the dataset is given up. A
	// file that is complete is not written again, so a retry goes on where the last one stopped.
	generateRetries = 3
)

// BenchmarkJobInput is all that the Jobs of an MLPerfStorageJob are made from.
type BenchmarkJobInput struct {
	Job   *v1alpha1.MLPerfStorageJob
	Share *v1alpha1.FileShare
	// Image has howdah.
	Image string
	// PullSecrets are those of Images.
	PullSecrets []string
	// Clients is the number of pods.
	Clients int32
}

// BenchmarkGenerateJob writes the dataset.
func BenchmarkGenerateJob(in BenchmarkJobInput) *batchv1ac.JobApplyConfiguration {
	return benchmarkJob(in, naming.BenchmarkGenerate(in.Job.Name), generateRetries, "generate")
}

// BenchmarkRunJob runs the workload. A pod that fails ends the run: the others
// can't go on without it, and a figure with a hole in it is none.
func BenchmarkRunJob(in BenchmarkJobInput) *batchv1ac.JobApplyConfiguration {
	return benchmarkJob(in, naming.BenchmarkRun(in.Job.Name), 0, "run",
		"--run=$(RUN)", "--name=$(POD_NAME)", "--node=$(NODE_NAME)", "--address=$(POD_IP)", "--port="+strconv.Itoa(benchmarkPort))
}

func benchmarkJob(in BenchmarkJobInput, name string, retries int32, command string, arguments ...string) *batchv1ac.JobApplyConfiguration {
	marks := labels(naming.SelectBenchmark(in.Job.Name))
	arguments = append([]string{
		"benchmark", command,
		"--plan=" + benchmarkConfig + "/" + benchmarkPlanFile,
		"--data=" + benchmarkData,
		"--client=$(JOB_COMPLETION_INDEX)",
		"--journal=" + naming.BenchmarkResult(in.Job.Name),
		"--journal-namespace=" + in.Job.Namespace,
	}, arguments...)
	return batchv1ac.Job(name, in.Job.Namespace).WithLabels(marks).
		WithSpec(batchv1ac.JobSpec().
			WithCompletionMode(batchv1.IndexedCompletion).
			WithCompletions(in.Clients).
			WithParallelism(in.Clients).
			WithBackoffLimit(retries).
			WithTemplate(podTemplate(naming.SelectBenchmark(in.Job.Name), in.Job.Spec.Pods, in.PullSecrets, benchmarkPod(in, name, arguments))))
}

func benchmarkPod(in BenchmarkJobInput, jobName string, arguments []string) *corev1ac.PodSpecApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsUser(*in.Share.Spec.UID).WithRunAsGroup(*in.Share.Spec.GID).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if *in.Share.Spec.UID != 0 {
		// Pod Security level restricted requires it.
		security.WithRunAsNonRoot(true)
	}
	pod := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever). // a failed pod stays, with its log
		WithServiceAccountName(naming.Benchmark(in.Job.Name)).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(5).
		// The share's root and its declared directories belong to its owner, who may write there. Uid 0 here is
		// root without any capability: a name for the server, not a power on the node.
		WithSecurityContext(security).
		WithContainers(benchmarkClient(in, arguments)).
		WithVolumes(
			corev1ac.Volume().WithName("data").WithPersistentVolumeClaim(
				corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(naming.Benchmark(in.Job.Name))),
			corev1ac.Volume().WithName("plan").WithConfigMap(
				corev1ac.ConfigMapVolumeSource().WithName(naming.BenchmarkPlan(in.Job.Name))),
		)
	placement := in.Job.Spec.Placement
	pod.WithAffinity(apartAlways(map[string]string{batchv1.JobNameLabel: jobName}, placement))
	onNodes(pod, placement)
	return pod
}

func benchmarkClient(in BenchmarkJobInput, arguments []string) *corev1ac.ContainerApplyConfiguration {
	field := func(name, path string) *corev1ac.EnvVarApplyConfiguration {
		return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
			WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
	}
	return corev1ac.Container().
		WithName(naming.BenchmarkContainer).
		WithImage(in.Image).
		WithArgs(arguments...).
		WithEnv(
			field("RUN", "metadata.labels['"+batchv1.ControllerUidLabel+"']"),
			field("POD_NAME", "metadata.name"), field("POD_IP", "status.podIP"), field("NODE_NAME", "spec.nodeName"),
			corev1ac.EnvVar().WithName("HOWDAH_BENCHMARK_TOKEN").WithValueFrom(corev1ac.EnvVarSource().
				WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(naming.Benchmark(in.Job.Name)).WithKey(BenchmarkTokenKey))),
		).
		WithPorts(containerPort("coordinator", benchmarkPort)).
		WithResources(benchmarkResources(in.Job)).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithVolumeMounts(
			// Each directory of the share is a mount of its own, which the kernel makes below this one when a process enters
			// it. Mounts caused by this container's processes are made in the container. Those caused by processes on the node
			// (kubelet, for example) are made there, and reach the container only with propagation.
			corev1ac.VolumeMount().WithName("data").WithMountPath(benchmarkData).
				WithMountPropagation(corev1.MountPropagationHostToContainer),
			corev1ac.VolumeMount().WithName("plan").WithMountPath(benchmarkConfig).WithReadOnly(true),
		).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
}

// benchmarkResources are the resources of a client pod. By default there are no limits: a memory limit bounds the page
// cache of the reads, a CPU limit their rate.
func benchmarkResources(job *v1alpha1.MLPerfStorageJob) *corev1ac.ResourceRequirementsApplyConfiguration {
	if job.Spec.Resources != nil {
		return applied[corev1ac.ResourceRequirementsApplyConfiguration](job.Spec.Resources)
	}
	return corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	})
}

// apartAlways keeps pods off nodes with another one of the selector: two clients on a
// node would share its page cache and its connections, and be one client.
func apartAlways(selector map[string]string, placement *v1alpha1.Placement) *corev1ac.AffinityApplyConfiguration {
	affinity := corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().
		WithRequiredDuringSchedulingIgnoredDuringExecution(corev1ac.PodAffinityTerm().
			WithTopologyKey(topologyKey(placement)).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(selector))))
	return towardsNodes(affinity, placement)
}
