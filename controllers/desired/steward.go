package desired

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// stewardChildren are the child objects for a FileServer's steward; none if the storage has no steward.
func stewardChildren(in FileServerInput) []runtime.ApplyConfiguration {
	if in.Storage.Steward == nil {
		return nil
	}
	return append(stewardAccess(in), stewardObject(in))
}

// stewardObject is the Steward of a FileServer. It has the FileServer's name.
func stewardObject(in FileServerInput) *internalv1ac.StewardApplyConfiguration {
	spec := internalv1ac.StewardSpec().
		WithFileServerRef(internalv1ac.FileServerReference().WithName(in.name())).
		WithFileServerUID(v1alpha1.StorageIdentity(in.FileServer))
	in.Storage.Steward.Describe(spec)
	for i := range in.Fences {
		spec.WithFences(applied[internalv1ac.PodFenceApplyConfiguration](&in.Fences[i]))
	}
	return internalv1ac.Steward(in.name(), in.namespace()).WithLabels(labels(naming.SelectSteward(in.name()))).WithSpec(spec)
}

// stewardAccess lets the steward read what it has to make, report, and write one Secret, which it can't read. It has no
// other rights. The operator, which must have every right that it gives, can't read Secrets either.
func stewardAccess(in FileServerInput) []runtime.ApplyConfiguration {
	rules := []*rbacv1ac.PolicyRuleApplyConfiguration{
		rule(internalv1.GroupVersion.Group, "stewards", []string{in.name()}, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "stewards/status", []string{in.name()}, "patch"),
		// Their names are made from those of shares, so they can't be listed here; the policies have the rest.
		rule(internalv1.GroupVersion.Group, "sharestorages", nil, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "sharestorages/status", nil, "patch"),
		rule(internalv1.GroupVersion.Group, "sharesnapshots", nil, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "sharesnapshots/status", nil, "patch"),
		rule(internalv1.GroupVersion.Group, "dataservers", nil, "get", "list", "watch"),
		rule(corev1.GroupName, "secrets", []string{in.Storage.Steward.Secret}, "update"),
	}
	if names := in.dataServerNames(); len(names) > 0 {
		// Answers to those who ask for a fence.
		rules = append(rules, rule(internalv1.GroupVersion.Group, "dataservers/status", names, "patch"))
	}
	return account(in, naming.Steward(in.name()), naming.SelectSteward(in.name()), rules...)
}

// StewardDeployment is the Deployment of the steward: one pod, with the account that makes directories in Ceph, and no
// ports for other components.
func StewardDeployment(in FileServerInput) *appsv1ac.DeploymentApplyConfiguration {
	selector := naming.SelectSteward(in.name())
	return appsv1ac.Deployment(naming.Steward(in.name()), in.namespace()).
		WithLabels(labels(selector)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithTemplate(podTemplate(selector, in.FileServer.Spec.Pods, in.Images.PullSecrets, stewardPod(in))))
}

func stewardPod(in FileServerInput) *corev1ac.PodSpecApplyConfiguration {
	lost := func(key string) *corev1ac.TolerationApplyConfiguration {
		return corev1ac.Toleration().WithKey(key).WithOperator(corev1.TolerationOpExists).
			WithEffect(corev1.TaintEffectNoExecute).WithTolerationSeconds(nodeLostSeconds)
	}
	container := corev1ac.Container().
		WithName(naming.ServerContainer).
		WithImage(in.Images.Server).
		WithArgs("steward", "--file-server="+in.name()).
		WithEnv(downwardEnv()...).
		WithPorts(containerPort(portManager, v1alpha1.ManagerPort)).
		WithLivenessProbe(probe(serverpod.HealthPath, 10, 5, 6)).
		WithReadinessProbe(probe(serverpod.ReadyPath, 5, 5, 3)).
		// Two processes that speak to Ceph take some 40 MiB each, a third while there are snapshots to make or remove, and a fourth
		// while a client is fenced or a snapshot is searched.
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("128Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")})).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("credential").WithMountPath(serverpod.StewardCredential).WithReadOnly(true))
	pod := corev1ac.PodSpec().
		WithServiceAccountName(naming.Steward(in.name())).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(10).
		WithTolerations(lost(corev1.TaintNodeNotReady), lost(corev1.TaintNodeUnreachable)).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		// It may come later: the steward says that it is missing, which a pod that waits for it could not.
		WithVolumes(corev1ac.Volume().WithName("credential").WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(in.Storage.Steward.Credential).WithDefaultMode(groupOnly).WithOptional(true)))
	for i, dir := range []string{serverpod.RunDir, serverpod.TempDir} {
		pod.WithVolumes(corev1ac.Volume().WithName(writableName(i)).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(writableName(i)).WithMountPath(dir))
	}
	onNodes(pod, in.FileServer.Spec.Placement)
	pod.WithAffinity(offLostNodes(in, towardsNodes(corev1ac.Affinity(), in.FileServer.Spec.Placement)))
	return pod.WithContainers(container)
}

// StewardSecret is the Secret that the steward writes, empty. The operator creates it once, and may neither read nor
// change it.
func StewardSecret(fs *v1alpha1.FileServer, name string) *corev1.Secret {
	made := secret(fs, name, nil)
	made.Immutable = nil
	return made
}
