package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	handleKeyBytes = 16
	// mostDataServers is the most data servers that a FileServer can have (the schema's limit of spec.replicas). All
	// get their keys at once, because a Secret that is only ever created can't get more of them.
	mostDataServers = 64
	// HandleKeysBytes is how much randomness HandleKeys needs.
	HandleKeysBytes = handleKeyBytes * mostDataServers

	// rootOnly is the mode of a key's file.
	rootOnly = int32(0o400)
	// groupOnly is that of a file for a container whose user is not root.
	groupOnly = int32(0o440)
)

// KeyGenerations are those whose keys and certificates servers have: that which signs and is shown, and after it
// the one before, whose handles and certificates are still taken.
func KeyGenerations(fs *v1alpha1.FileServer) []int32 {
	if current := fs.Spec.KeyGeneration; current > 1 {
		return []int32{current, current - 1}
	}
	return []int32{1}
}

// HandleKeys is the Secret with the keys of one generation, one for each data server under its name. It is a whole object
// and is only ever created: the operator may make Secrets and never read one.
func HandleKeys(fs *v1alpha1.FileServer, generation int32, random [HandleKeysBytes]byte) *corev1.Secret {
	keys := map[string][]byte{}
	for i, name := range AllDataServers(fs) {
		keys[name] = random[handleKeyBytes*i:][:handleKeyBytes]
	}
	return secret(fs, naming.HandleKeys(fs.Name, string(fs.UID), generation), keys)
}

// AllDataServers are the names of all data servers that the FileServer can ever have.
func AllDataServers(fs *v1alpha1.FileServer) []string {
	names := make([]string, 0, mostDataServers)
	for ordinal := range int32(mostDataServers) {
		names = append(names, naming.DataServer(fs.Name, ordinal))
	}
	return names
}

func secret(fs *v1alpha1.FileServer, name string, data map[string][]byte) *corev1.Secret {
	immutable := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: fs.Namespace,
			Labels:          labels(naming.SelectDataServers(fs.Name)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fs, v1alpha1.GroupVersion.WithKind("FileServer"))},
		},
		Immutable: &immutable,
		Data:      data,
	}
}

// withHandleKeys gives a data server's pod its own keys: subPathExpr keeps those of the others out of the container.
func withHandleKeys(in FileServerInput, pod *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration) {
	volumes, paths := []string{"handle-key", "previous-handle-key"}, []string{serverpod.HandleKey, serverpod.PreviousHandleKey}
	for i, generation := range KeyGenerations(in.FileServer) {
		pod.WithVolumes(corev1ac.Volume().WithName(volumes[i]).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(naming.HandleKeys(in.name(), string(in.FileServer.UID), generation)).
			WithDefaultMode(keyMode(in))))
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(volumes[i]).WithMountPath(paths[i]).
			WithSubPathExpr("$(" + serverpod.EnvDataServer + ")").WithReadOnly(true))
	}
}
