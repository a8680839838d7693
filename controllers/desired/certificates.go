package desired

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// namespaceServersKey is the key of the Secret that has the certificate of the namespace servers. It is no data server's
// name: those end with a number.
const namespaceServersKey = "namespace-servers"

// Certificates is the Secret with the certificates of one generation: one for each data server under its name, and one for all
// namespace servers. One Secret, because two that are made one after the other could have two authorities.
func Certificates(fs *v1alpha1.FileServer, generation, lost int32, dataServers map[string][]byte, namespaceServers []byte) *corev1.Secret {
	data := map[string][]byte{namespaceServersKey: namespaceServers}
	for name, bundle := range dataServers {
		data[name] = bundle
	}
	return secret(fs, naming.Certificates(fs.Name, string(fs.UID), generation, lost), data)
}

// certificateVolumes and certificatePaths are in the order of KeyGenerations.
var (
	certificateVolumes = []string{"certificate", "previous-certificate"}
	certificatePaths   = []string{serverpod.Certificate, serverpod.PreviousCertificate}
)

// withDataServerCertificates gives a data server's pod its own, as withHandleKeys does.
func withDataServerCertificates(in FileServerInput, pod *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration) {
	for i, generation := range KeyGenerations(in.FileServer) {
		pod.WithVolumes(corev1ac.Volume().WithName(certificateVolumes[i]).
			WithSecret(certificateSource(in, generation).WithDefaultMode(keyMode(in))))
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(certificateVolumes[i]).WithMountPath(certificatePaths[i]).
			WithSubPathExpr("$(" + serverpod.EnvDataServer + ")").WithReadOnly(true))
	}
}

// withNamespaceServerCertificates gives a namespace server's pod that of all namespace servers: nothing else of the Secret is
// in the pod's volume. The pod's group may read it (fsGroup), as its user is not root.
func withNamespaceServerCertificates(in FileServerInput, pod *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration) {
	for i, generation := range KeyGenerations(in.FileServer) {
		pod.WithVolumes(corev1ac.Volume().WithName(certificateVolumes[i]).
			WithSecret(certificateSource(in, generation).WithDefaultMode(groupOnly).
				WithItems(corev1ac.KeyToPath().WithKey(namespaceServersKey).WithPath(namespaceServersKey))))
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(certificateVolumes[i]).WithMountPath(certificatePaths[i]).
			WithSubPath(namespaceServersKey).WithReadOnly(true))
	}
}

// withCertificatesLost keeps with the pods how often certificates were lost: the Secret that they mount is named by it.
func withCertificatesLost(in FileServerInput, template *corev1ac.PodTemplateSpecApplyConfiguration) *corev1ac.PodTemplateSpecApplyConfiguration {
	if in.CertificatesLost == 0 {
		return template
	}
	return template.WithAnnotations(map[string]string{v1alpha1.CertificatesLostAnnotation: strconv.Itoa(int(in.CertificatesLost))})
}

func certificateSource(in FileServerInput, generation int32) *corev1ac.SecretVolumeSourceApplyConfiguration {
	return corev1ac.SecretVolumeSource().WithSecretName(naming.Certificates(in.name(), string(in.FileServer.UID), generation, in.CertificatesLost))
}

// IsOfAnother tells whether a pod of a data server or a namespace server was made for another FileServer of the name: it mounts that one's certificates.
func IsOfAnother(pod *corev1.Pod, fs *v1alpha1.FileServer) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.Secret != nil && naming.AreCertificatesOfAnother(fs.Name, string(fs.UID), volume.Secret.SecretName)
	})
}
