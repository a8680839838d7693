package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/rollout"
	"github.com/howdah/howdah/internal/serverpod"
)

// DataServerStatefulSet is the StatefulSet of the data servers. They start at once, not one
// after the other, because none needs another. Claims outlive them in every case: Howdah never deletes data by deleting a server.
func DataServerStatefulSet(in FileServerInput) *appsv1ac.StatefulSetApplyConfiguration {
	selector := naming.SelectDataServers(in.name())
	spec := appsv1ac.StatefulSetSpec().
		WithReplicas(in.Replicas).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(updateStrategy(in.Rollout)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType).
			WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
		WithTemplate(dataServerTemplate(in))
	spec.WithVolumeClaimTemplates(in.Storage.ClaimTemplates...)
	set := appsv1ac.StatefulSet(naming.DataServers(in.name()), in.namespace()).
		WithLabels(labels(selector)).
		WithSpec(spec)
	if in.Rollout.Record != (rollout.Record{}) {
		set.WithAnnotations(map[string]string{v1alpha1.RolloutAnnotation: in.Rollout.Record.String()})
	}
	return set
}

// Rollout is how pods of data servers are replaced (internal/rollout).
type Rollout struct {
	// Replacing means that pods that are made now are of the newest template.
	Replacing bool
	// Record is kept at the StatefulSet.
	Record rollout.Record
}

// heldBack is above the ordinal of every data server. A StatefulSet makes and leaves pods below its partition as they were.
const heldBack = 1 << 16

// updateStrategy has the StatefulSet's controller replace no pod by itself: it knows neither whether a data server with a lower ordinal
// serves, nor whether clients still reclaim their state.
func updateStrategy(r Rollout) *appsv1ac.StatefulSetUpdateStrategyApplyConfiguration {
	strategy := appsv1ac.StatefulSetUpdateStrategy()
	if r.Replacing {
		return strategy.WithType(appsv1.OnDeleteStatefulSetStrategyType)
	}
	// maxUnavailable is what API servers that know it add. Fields of ours go with the strategy, others would make OnDelete invalid.
	return strategy.WithType(appsv1.RollingUpdateStatefulSetStrategyType).WithRollingUpdate(appsv1ac.RollingUpdateStatefulSetStrategy().
		WithPartition(heldBack).WithMaxUnavailable(intstr.FromInt32(1)))
}

func dataServerTemplate(in FileServerInput) *corev1ac.PodTemplateSpecApplyConfiguration {
	selector := naming.SelectDataServers(in.name())
	return withCertificatesLost(in, podTemplate(selector, in.FileServer.Spec.Pods, in.Images.PullSecrets, dataServerPod(in, selector)))
}

// TemplateDigest identifies the pod template of the data servers.
func TemplateDigest(in FileServerInput) (string, error) {
	// encoding/json sorts the keys of maps, so equal templates have equal text.
	text, err := json.Marshal(dataServerTemplate(in))
	if err != nil {
		return "", fmt.Errorf("the pod template of data servers: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

func dataServerPod(in FileServerInput, selector map[string]string) *corev1ac.PodSpecApplyConfiguration {
	container := dataServerContainer(in)
	pod := corev1ac.PodSpec().
		WithServiceAccountName(naming.DataServerAccount(in.name())).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(int64((serverpod.StopAllowance + serverpod.LeaveAllowance + 10*time.Second) / time.Second)).
		WithSecurityContext(dataServerUser(in))
	place(pod, selector, in.FileServer.Spec.Placement)
	offLostNodes(in, pod.Affinity)
	for i := range serverpod.WritableDirs {
		pod.WithVolumes(corev1ac.Volume().WithName(writableName(i)).WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse(serverpod.WritableSizes[i]))))
	}
	if in.Storage.GaneshaRoot {
		withGaneshaRoot(pod, container)
	}
	pod.WithVolumes(in.Storage.Volumes...)
	container.WithVolumeMounts(in.Storage.Mounts...)
	withHandleKeys(in, pod, container)
	withDataServerCertificates(in, pod, container)
	if network := in.FileServer.Spec.Network.HostNetwork; network != nil {
		// The names of Services, for which a pod on the node's network would ask the node's DNS.
		pod.WithHostNetwork(true).WithDNSPolicy(corev1.DNSClusterFirstWithHostNet)
		container.WithArgs(fmt.Sprintf("--%s=%d", serverpod.FlagFirstPort, network.FirstPort))
		if len(in.AddressesIn) > 0 {
			container.WithArgs("--" + serverpod.FlagAddressesIn + "=" + joinNetworks(in.AddressesIn))
		}
	}
	return pod.WithContainers(container)
}

func joinNetworks(networks []netip.Prefix) string {
	texts := make([]string, 0, len(networks))
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return strings.Join(texts, ",")
}

// dataServerUser is root only where the storage needs it.
func dataServerUser(in FileServerInput) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if in.Storage.Root {
		return security.WithRunAsUser(0)
	}
	return security.WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot)
}

// keyMode is the mode of the files of keys: root's alone, or readable by the group of a pod that is not root (fsGroup).
func keyMode(in FileServerInput) int32 {
	if in.Storage.Root {
		return rootOnly
	}
	return groupOnly
}

func dataServerContainer(in FileServerInput) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(naming.ServerContainer).
		WithImage(in.Images.Server).
		WithArgs(serverpod.Args...).
		WithEnv(downwardEnv()...).
		WithEnv(fieldEnv(serverpod.EnvPodUID, "metadata.uid")).
		WithPorts(dataServerPorts(in.FileServer.Spec.Network.HostNetwork, len(in.AddressesIn) > 0)...).
		// A server under full load answers late, and killing it then makes things worse: be slow to.
		WithLivenessProbe(probe(serverpod.HealthPath, 10, 5, 6)).
		// One failure counts, for the Service leads to the pod while it is ready, and a pod that ends must be left at once.
		WithReadinessProbe(probe(serverpod.ReadyPath, 1, 5, 1)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL").WithAdd(in.Storage.Capabilities...)))
	resources := DataServerResources(in.FileServer)
	container.WithResources(applied[corev1ac.ResourceRequirementsApplyConfiguration](&resources))
	for i, dir := range serverpod.WritableDirs {
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(writableName(i)).WithMountPath(dir))
	}
	return container
}

func writableName(i int) string { return "writable-" + strconv.Itoa(i) }
