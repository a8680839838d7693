package naming

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"strings"

	"github.com/howdah/howdah/api/v1alpha1"
)

// OwnPrefix starts the names of what Howdah keeps beside the data, in a share's directories and on volumes.
const OwnPrefix = ".howdah"

// MovingPrefix starts the name that a directory has in the root of its export while it moves between volumes; the move's ID follows.
const MovingPrefix = OwnPrefix + "-moving-"

// Values of v1alpha1.ComponentLabel.
const (
	ComponentDataServer      = "data-server"
	ComponentNamespaceServer = "namespace-server"
	ComponentBenchmark       = "benchmark"
	ComponentOperator        = "operator"
	ComponentSteward         = "steward"
	ComponentLostNode        = "lost-node"
	ComponentImage           = "image"
)

// ServerContainer is the one container of each pod that a FileServer makes from spec.pods, BenchmarkContainer that of client pods. Annotations of users
// may name it.
const (
	ServerContainer    = "server"
	BenchmarkContainer = "benchmark"
)

// tlsDomain ends the names in certificates. They are compared and not looked up.
const tlsDomain = "internal.howdah.io"

// VolumesRoot is where a data server's pod has its volumes: VolumesRoot/0, VolumesRoot/1, and so on.
const VolumesRoot = "/volumes"

// NamespaceService is the Service of the namespace servers of a FileServer: the address that clients mount.
func NamespaceService(fileServer string) string { return fileServer }

// NamespaceServers is the Deployment, the PodDisruptionBudget, the ServiceAccount,
// the Role, the RoleBinding and the Lease of a FileServer's namespace servers.
func NamespaceServers(fileServer string) string { return fileServer + "-namespace" }

// DataServers is the StatefulSet of a FileServer's data servers. Its pods are the data servers.
func DataServers(fileServer string) string { return fileServer }

// DataServerAccount is the ServiceAccount, Role, RoleBinding and PodDisruptionBudget of the data servers.
func DataServerAccount(fileServer string) string { return fileServer + "-data" }

// DataServer is one data server: its pod, its Service, its DataServer object and its host name.
func DataServer(fileServer string, ordinal int32) string {
	return fileServer + "-" + strconv.Itoa(int(ordinal))
}

// OutsideService is the Service for clients outside the cluster that goes with one for clients inside.
func OutsideService(inside string) string { return inside + "-outside" }

// WaitingRoom is the EndpointSlice that leads clients of a data server's Service to the waiting room while there is no pod. A slice can't
// change the family of its addresses, so that is in the name.
func WaitingRoom(service string, ipv6 bool) string {
	if ipv6 {
		return service + "-waiting-room-ipv6"
	}
	return service + "-waiting-room-ipv4"
}

// NodeAddress is the EndpointSlice that leads clients of a data server's Service to an address of its node.
func NodeAddress(service string, ipv6 bool) string {
	if ipv6 {
		return service + "-node-ipv6"
	}
	return service + "-node-ipv4"
}

// DataServerOrdinal reads a data server's name backwards; false if it does not belong to the FileServer.
func DataServerOrdinal(fileServer, server string) (int32, bool) {
	digits, ok := strings.CutPrefix(server, fileServer+"-")
	if !ok {
		return 0, false
	}
	ordinal, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || ordinal < 0 || DataServer(fileServer, int32(ordinal)) != server {
		return 0, false
	}
	return int32(ordinal), true
}

// HandleKeys is the Secret with the keys of a generation by which a FileServer's data servers sign file handles. It has a
// hash of the UID, so that none can be made beforehand, and none of an earlier FileServer of the name is used.
func HandleKeys(fileServer, fileServerUID string, generation int32) string {
	return fileServer + "-handle-keys-" + strconv.Itoa(int(generation)) + "-" + shortHash(fileServerUID)[:8]
}

// Certificates is the Secret with the certificates of a generation by which a FileServer's servers know each other; see HandleKeys. After
// each loss of them (lost counts these) it has another name: kubelets keep what an immutable Secret had as long as a pod of the node uses the name.
func Certificates(fileServer, fileServerUID string, generation, lost int32) string {
	name := fileServer + "-certificates-" + strconv.Itoa(int(generation)) + "-" + shortHash(fileServerUID)[:8]
	if lost > 0 {
		name += "-" + strconv.Itoa(int(lost))
	}
	return name
}

// AreCertificatesOfAnother tells whether a Secret has certificates for another FileServer of the name. It reads Certificates backwards.
func AreCertificatesOfAnother(fileServer, fileServerUID, secret string) bool {
	rest, are := strings.CutPrefix(secret, fileServer+"-certificates-")
	parts := strings.Split(rest, "-")
	return are && len(parts) > 1 && parts[1] != shortHash(fileServerUID)[:8]
}

// DataServerTLSName is the name in a data server's certificate. It has the FileServer's UID, so that it is no other's of its name.
func DataServerTLSName(fileServerUID, dataServer string) string {
	return dataServer + "." + fileServerUID + "." + ComponentDataServer + "." + tlsDomain
}

// DataServerOfTLSName reads DataServerTLSName backwards; "" if it is no name of a data server of this FileServer.
func DataServerOfTLSName(fileServerUID, name string) string {
	dataServer, _, _ := strings.Cut(name, ".")
	if dataServer == "" || DataServerTLSName(fileServerUID, dataServer) != name {
		return ""
	}
	return dataServer
}

// NamespaceServerTLSName is the name in the certificate of a FileServer's namespace servers.
func NamespaceServerTLSName(fileServerUID string) string {
	return fileServerUID + "." + ComponentNamespaceServer + "." + tlsDomain
}

// IsNamespaceServerTLSName tells whether a name is that of a FileServer's namespace servers.
func IsNamespaceServerTLSName(name string) bool {
	uid, _, _ := strings.Cut(name, ".")
	return name == NamespaceServerTLSName(uid)
}

// VolumeClaimTemplate is the claim template of a data server's volume.
func VolumeClaimTemplate(volume int32) string { return "data-" + strconv.Itoa(int(volume)) }

// VolumeClaim is the claim of a data server's volume, as the StatefulSet controller names it.
func VolumeClaim(fileServer string, ordinal, volume int32) string {
	return VolumeClaimTemplate(volume) + "-" + DataServer(fileServer, ordinal)
}

// ServerOfClaim reads the name of a volume's claim backwards; false if it is not that of one of the FileServer's data servers.
func ServerOfClaim(fileServer, claim string) (string, bool) {
	rest, ok := strings.CutPrefix(claim, "data-")
	if !ok {
		return "", false
	}
	volume, server, ok := strings.Cut(rest, "-")
	if _, err := strconv.ParseUint(volume, 10, 31); err != nil || !ok {
		return "", false
	}
	_, ok = DataServerOrdinal(fileServer, server)
	return server, ok
}

// ShareClaim is the ready-made claim of a share, in the share's Kubernetes namespace.
func ShareClaim(share string) string { return share }

// ShareVolume is the ready-made PersistentVolume of a share. PersistentVolumes have
// no namespace, so the name has a hash of both names: "a-b"/"c" and "a"/"b-c" must differ.
func ShareVolume(kubeNamespace, share string) string {
	return "howdah-" + share + "-" + shortHash(kubeNamespace, share)
}

// ShareKey is the name that a FileShare has among the shares of a FileServer: of its directory on the volumes, of its exports and in
// Howdah's own objects. It is the share's own name, as long as it is in the FileServer's Kubernetes namespace, and else
// NAMESPACE.NAME. Neither name can have a dot (both are DNS labels, RFC 1123), so no two shares have one key.
func ShareKey(serverNamespace, shareNamespace, share string) string {
	if serverNamespace == shareNamespace {
		return share
	}
	return shareNamespace + "." + share
}

// ShareOfKey reads ShareKey backwards: the namespace and the name of the FileShare.
func ShareOfKey(serverNamespace, key string) (shareNamespace, share string) {
	if namespace, name, found := strings.Cut(key, "."); found {
		return namespace, name
	}
	return serverNamespace, key
}

// ServerNamespace is the Kubernetes namespace of a share's FileServer, and of everything of Howdah's own that belongs to the share.
func ServerNamespace(share *v1alpha1.FileShare) string {
	return cmp.Or(share.Spec.FileServerRef.Namespace, share.Namespace)
}

// KeyOf is the ShareKey of a FileShare.
func KeyOf(share *v1alpha1.FileShare) string {
	return ShareKey(ServerNamespace(share), share.Namespace, share.Name)
}

// IsForeign tells that a share is not in its FileServer's Kubernetes namespace.
func IsForeign(share *v1alpha1.FileShare) bool { return ServerNamespace(share) != share.Namespace }

// IsProvisioned tells that a share was made for a claim of a StorageClass, and so has no ready-made one.
func IsProvisioned(share *v1alpha1.FileShare) bool { return share.Spec.ClaimRef.Name != "" }

// TenantOf is the Kubernetes namespace that a share counts for: that of the claim of a StorageClass that it was made for, else its own. What a
// share of another namespace than its FileServer's says of a claim is not trusted.
func TenantOf(share *v1alpha1.FileShare) string {
	if IsProvisioned(share) && !IsForeign(share) {
		return share.Spec.ClaimRef.Namespace
	}
	return share.Namespace
}

// ProvisionedVolume is the PersistentVolume of a claim of a StorageClass, and its FileShare: what Kubernetes' own provisioners name theirs.
func ProvisionedVolume(claimUID string) string { return "pvc-" + claimUID }

// ShareLabels are on every object that belongs to a share and is in its FileServer's namespace. A label's value has at most 63 characters, so
// a key would not fit.
func ShareLabels(serverNamespace, fileServer, key string) map[string]string {
	namespace, name := ShareOfKey(serverNamespace, key)
	labels := map[string]string{v1alpha1.FileServerLabel: fileServer, v1alpha1.FileShareLabel: name}
	if namespace != serverNamespace {
		labels[v1alpha1.FileShareNamespaceLabel] = namespace
	}
	return labels
}

// Directory is the ShareDirectory of a path of a share, by its ShareKey. Equal paths give equal
// names, so that creating it is the lock that makes a directory unique. The FileServer comes first and has no dot
// in it: its namespace servers may make names that begin so and no others, and can't take a lock of another FileServer's
// (config/admission). path is relative to the share's root; "." is the root itself.
func Directory(fileServer, key, path string) string {
	return fileServer + "." + key + "-" + shortHash(key, path)
}

// ShareExport is a share on a data server. A data server's name has no dot in it, so no two shares' exports have one name.
func ShareExport(key, dataServer string) string { return key + "." + dataServer }

// ShareStorage is the place of a share in its FileServer's storage. A FileServer's name has no dot in it, so no two shares' places have one
// name, and a share that is made again for another FileServer has another.
func ShareStorage(key, fileServer string) string { return key + "." + fileServer }

// Steward is the Deployment, the ServiceAccount and the Role of a FileServer's steward. Its Steward object has the FileServer's name.
func Steward(fileServer string) string { return fileServer + "-steward" }

// StewardSecret is the Secret that a FileServer's steward writes and its data servers mount. It has a hash of the UID as HandleKeys has: what
// another program made can't have this name by accident, and is not overwritten.
func StewardSecret(fileServer, fileServerUID string) string {
	return fileServer + "-ceph-shares-" + shortHash(fileServerUID)[:8]
}

// ShareSnapshot is a snapshot of a share, by the FileShareSnapshot's name. Keys have a dot or none, and names of snapshots none, so no two have one name.
func ShareSnapshot(key, snapshot string) string { return key + "." + snapshot }

// FileServerOf is the name of the FileServer of a data server.
func FileServerOf(dataServer string) string {
	return dataServer[:max(strings.LastIndex(dataServer, "-"), 0)]
}

// ExportPseudo is the pseudo path of a share's export on a data server: what
// referrals point below and what a direct mount of a data server names.
func ExportPseudo(share string, volume int32) string {
	return "/" + share + "/" + strconv.Itoa(int(volume))
}

// ShareOfExport reads ExportPseudo backwards.
func ShareOfExport(pseudo string) string {
	share, _, _ := strings.Cut(strings.TrimPrefix(pseudo, "/"), "/")
	return share
}

// ExportDirectory is where a data server has a share's data on a volume.
func ExportDirectory(volumesRoot, share string, volume int32) string {
	return path.Join(volumesRoot, strconv.Itoa(int(volume)), share)
}

// NamespaceServerIdentity is the server scope (RFC 8881 section 2.10.4) of a FileServer's namespace
// servers, and the first part of each one's server owner. It must differ from every data server's, or clients
// would take them for one server and trunk.
func NamespaceServerIdentity(fileServerUID string) string { return fileServerUID + "-namespace" }

// DataServerOwner is ganesha's Server_Owner: unique for each data server, and never used again.
func DataServerOwner(fileServerUID string, ordinal int32) string {
	return fileServerUID + "-" + strconv.Itoa(int(ordinal))
}

// Owner is the value of v1alpha1.OwnerAnnotation on the objects made for an object of ours.
func Owner(kind, kubeNamespace, name string) string { return kind + "/" + kubeNamespace + "/" + name }

// SelectDataServers selects the pods and the DataServers of a FileServer's data servers.
func SelectDataServers(fileServer string) map[string]string {
	return map[string]string{v1alpha1.FileServerLabel: fileServer, v1alpha1.ComponentLabel: ComponentDataServer}
}

// SelectNamespaceServers selects the pods of a FileServer's namespace servers.
func SelectNamespaceServers(fileServer string) map[string]string {
	return map[string]string{v1alpha1.FileServerLabel: fileServer, v1alpha1.ComponentLabel: ComponentNamespaceServer}
}

// SelectLostNodes selects the pods that keep a FileServer's other pods off lost nodes.
func SelectLostNodes(fileServer string) map[string]string {
	return map[string]string{v1alpha1.FileServerLabel: fileServer, v1alpha1.ComponentLabel: ComponentLostNode}
}

// LostNode is the pod that keeps a FileServer's other pods off a lost node. A node's name can be longer than a pod's host name.
func LostNode(fileServer, node string) string {
	return fileServer + "-lost-node-" + shortHash(node)[:8]
}

// SelectImages selects the pods that have nodes pull the image of a FileServer's data servers.
func SelectImages(fileServer string) map[string]string {
	return map[string]string{v1alpha1.FileServerLabel: fileServer, v1alpha1.ComponentLabel: ComponentImage}
}

// Image is the Deployment whose pod has a node pull an image for a FileServer's data servers.
func Image(fileServer, node, image string) string {
	return fileServer + "-image-" + shortHash(node, image)[:8]
}

// SelectSteward selects the pod of a FileServer's steward.
func SelectSteward(fileServer string) map[string]string {
	return map[string]string{v1alpha1.FileServerLabel: fileServer, v1alpha1.ComponentLabel: ComponentSteward}
}

// shortHash is 80 bits of SHA-256 over the parts, in hexadecimal.
func shortHash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}
