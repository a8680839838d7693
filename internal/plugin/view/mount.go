package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Mount is how to mount a share.
type Mount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Condition
	Address string   `json:"address"`
	Path    string   `json:"path"`
	Options []string `json:"options"`
	Command string   `json:"command"`
	// OutsideCommands are those for machines outside the cluster, one for each outside address of the FileServer.
	OutsideCommands []string `json:"outsideCommands,omitempty"`
	// Fstab is a line for /etc/fstab.
	Fstab string `json:"fstab"`
	// Claim is the ready-made claim in the share's Kubernetes namespace; "" if there is none.
	Claim string `json:"claim,omitempty"`
	// Access are the share's rules, in words.
	Access []string `json:"access,omitempty"`
}

// defaultMountPoint is the mount point in status.mount.command.
const defaultMountPoint = "/mnt"

// NewMount is how to mount a share at a directory. The FileServer is nil if it may not be read.
func NewMount(share *v1alpha1.FileShare, fs *v1alpha1.FileServer, at string) (Mount, error) {
	is := summary(share.Status.Conditions, v1alpha1.ConditionReady)
	mount := share.Status.Mount
	if mount.Address == "" {
		return Mount{}, fmt.Errorf("FileShare %s/%s can't be mounted yet (%s: %s); for the reason: kubectl howdah explain fileshare/%s -n %s",
			share.Namespace, share.Name, cmp.Or(is.Reason, "no status"), is.Message, share.Name, share.Namespace)
	}
	host := inBrackets(mount.Address)
	m := Mount{
		Namespace: share.Namespace, Name: share.Name, Condition: is, Address: mount.Address, Path: mount.Path, Options: mount.Options, Claim: mount.ClaimName,
		Command: strings.TrimSuffix(mount.Command, " "+defaultMountPoint) + " " + at,
		Fstab:   fmt.Sprintf("%s:%s %s nfs4 %s,_netdev 0 0", host, mount.Path, at, strings.Join(mount.Options, ",")),
	}
	if fs != nil {
		for _, outside := range fs.Status.OutsideAddresses {
			m.OutsideCommands = append(m.OutsideCommands, strings.Replace(m.Command, host+":", inBrackets(outside)+":", 1))
		}
	}
	rules := share.Spec.Access
	if len(rules) == 0 {
		rules = []v1alpha1.AccessRule{{Clients: []string{v1alpha1.ClientNodes}}}
	}
	for _, rule := range rules {
		m.Access = append(m.Access, strings.Join(rule.Clients, ", ")+": "+cmp.Or(string(rule.AccessType), string(v1alpha1.AccessReadWrite)))
	}
	return m, nil
}

// inBrackets is an address as mount takes it before a colon.
func inBrackets(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// Text is the model as text.
func (m Mount) Text(page text.Page) string {
	var b strings.Builder
	heading := func(title string) { b.WriteString("\n" + page.Paragraph("", "", text.S(text.Strong, title))) }
	if m.Health != Well {
		b.WriteString(page.Paragraph("", "  ", append([]text.Span{text.S(text.Strong, "FileShare "+m.Namespace+"/"+m.Name)}, m.words()...)...))
	}
	heading("On a machine, as root (mount.nfs4 is in the package nfs-common or nfs-utils)")
	// Lines to be copied are not wrapped.
	fmt.Fprintf(&b, "  %s\n", text.Clean(m.Command))
	if len(m.OutsideCommands) > 0 {
		heading("On a machine outside the cluster, if a rule below has its address")
		for _, command := range m.OutsideCommands {
			fmt.Fprintf(&b, "  %s\n", text.Clean(command))
		}
	}
	heading("For /etc/fstab")
	fmt.Fprintf(&b, "  %s\n", text.Clean(m.Fstab))
	if m.Claim != "" {
		heading("In a pod of namespace " + m.Namespace)
		fmt.Fprintf(&b, "  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: %s}\n", text.Clean(m.Claim))
	}
	heading("In a pod of another namespace")
	fmt.Fprintf(&b, "  kubectl howdah mount %s -n %s --manifest-for NAMESPACE | kubectl apply -f -\n", m.Name, m.Namespace)
	heading("Access (the first rule that matches the client's address applies; Nodes are the cluster's nodes, which includes pods that use a claim)")
	for _, rule := range m.Access {
		b.WriteString(page.Paragraph("  ", "    ", text.S(text.Plain, rule)))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// unknownSize is the size of a volume while the size of the FileServer is not known.
var unknownSize = resource.MustParse("1Ti")

// Manifest is a PersistentVolume with its claim for pods of another Kubernetes namespace, or of another cluster.
// capacity is the FileServer's in bytes; 0 if it is not known.
func (m Mount) Manifest(namespace string, capacity int64) (string, error) {
	size := unknownSize
	if capacity > 0 {
		size = *resource.NewQuantity(capacity, resource.BinarySI)
	}
	claim := m.Name
	if namespace == m.Namespace {
		claim += "-by-hand" // The operator's own claim has the share's name.
	}
	volumeName := naming.ShareVolume(m.Namespace+"/"+namespace, m.Name)
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	labels := map[string]string{v1alpha1.FileShareLabel: m.Name, v1alpha1.FileShareNamespaceLabel: m.Namespace}
	volume := corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: volumeName, Labels: labels},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, MountOptions: slices.Clone(m.Options),
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: m.Address, Path: m.Path}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim},
		},
	}
	pvc := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: namespace, Labels: labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: ptr.To(""), VolumeName: volumeName,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	var b strings.Builder
	for _, object := range []any{volume, pvc} {
		document, err := withoutStatus(object)
		if err != nil {
			return "", err
		}
		b.WriteString("---\n" + document)
	}
	return b.String(), nil
}

// withoutStatus is an object in YAML without the empty fields that its type always has.
func withoutStatus(object any) (string, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	var content map[string]any
	if err := json.Unmarshal(encoded, &content); err != nil {
		return "", err
	}
	delete(content, "status")
	if meta, ok := content["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return Encode(content, "yaml")
}
