package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileServer is a set of NFS data servers on several nodes, which keep data on their own volumes or in one Ceph file
// system, and namespace servers that combine them into one directory tree at one address.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=fsrv,categories=nfs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Outside",type=string,priority=1,JSONPath=`.status.outsideAddresses[0]`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name must be at most 40 characters: pod, Service and label names are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label that starts with a letter (no dots): Service names are made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage.volumes) || !has(oldSelf.spec.storage.volumes) || !isQuantity(string(self.spec.storage.volumes.size)) || !isQuantity(string(oldSelf.spec.storage.volumes.size)) || quantity(string(self.spec.storage.volumes.size)).compareTo(quantity(string(oldSelf.spec.storage.volumes.size))) >= 0 || has(self.status) && has(self.status.volumeSize) && quantity(string(self.spec.storage.volumes.size)).compareTo(quantity(string(self.status.volumeSize))) >= 0",message="size can't shrink: volumes can only grow. A size that they did not get can be set back to status.volumeSize",fieldPath=".spec.storage.volumes.size"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.drain) || !has(self.spec.drain.servers) || self.spec.drain.servers.all(s, s.substring(0, s.lastIndexOf('-')) == self.metadata.name)",message="drain.servers are data servers of this FileServer, as status.servers has them: NAME-0, NAME-1",fieldPath=".spec.drain.servers"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage.volumes) || !has(self.spec.storage.volumes.lostVolumes) || self.spec.storage.volumes.lostVolumes.all(v, v.claimName.substring(v.claimName.indexOf('-', 5) + 1, v.claimName.lastIndexOf('-')) == self.metadata.name)",message="lostVolumes are claims of this FileServer: data-0-NAME-0",fieldPath=".spec.storage.volumes.lostVolumes"
type FileServer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state.
	// +required
	Spec FileServerSpec `json:"spec,omitzero"`
	// Reason for the default: kstatus, which Flux and others use to wait, considers an object without any status Current.

	// status is the observed state.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileServerStatus `json:"status,omitempty,omitzero"`
}

// FileServerSpec is the desired state of a FileServer.
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || !has(self.failover.fencing) || self.failover.fencing != 'Power' || has(self.storage.volumes)",message="failover.fencing: Power needs storage.volumes; with storage.ceph use Storage: Ceph itself then refuses the lost data server, whether its machine is off or not"
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || !has(self.failover.fencing) || self.failover.fencing != 'Storage' || has(self.storage.ceph) && (has(self.storage.ceph.rook) || has(self.storage.ceph.external) && has(self.storage.ceph.external.provisioningSecretRef))",message="failover.fencing: Storage needs storage.ceph with accounts that Howdah makes (rook, or external.provisioningSecretRef): only then can Howdah fence a lost data server"
// +kubebuilder:validation:XValidation:rule="!has(self.network) || !has(self.network.hostNetwork) || !has(self.network.hostNetwork.addressesIn) || self.network.hostNetwork.addressesIn.all(n, !isCIDR(n) || has(self.additionalNodeNetworks) && self.additionalNodeNetworks.exists(a, isIP(a) && cidr(n).containsIP(a) || isCIDR(a) && (cidr(n).containsCIDR(a) || cidr(a).containsCIDR(n))))",message="network.hostNetwork.addressesIn needs the nodes' addresses in these networks in additionalNodeNetworks, because clients on nodes come from there: list the networks if only nodes are in them, otherwise the addresses of the nodes"
type FileServerSpec struct {
	// replicas is the number of data servers. Unset: one for each eligible node, and nodes that are added later get one
	// too. A data server that owns directories is never removed. With storage.volumes, reducing replicas is refused
	// while a server to be removed owns directories, because their data is on its volumes, unless moves.copying is
	// Allow. Then, and with storage.ceph, its directories first move to other servers, and the server waits until clients
	// unmount (drain).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// storage says where the data lives.
	// +required
	Storage FileServerStorage `json:"storage,omitzero"`

	// placement selects the nodes for data servers.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// dataHandovers gives data that FileShares of a deleted Kubernetes namespace left on this FileServer to a new
	// namespace of the same name. Without an entry the new namespace can't access this data.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +optional
	DataHandovers []DataHandover `json:"dataHandovers,omitempty"`

	// drain lists the data servers in maintenance, and sets how long a drained server waits for clients to unmount.
	// +optional
	Drain *Drain `json:"drain,omitempty"`

	// moves sets how directories of storage.volumes are copied to other data servers.
	// +optional
	Moves Moves `json:"moves,omitempty,omitzero"`

	// failover sets what the operator may do when the node of a data server is lost.
	// +optional
	Failover Failover `json:"failover,omitempty,omitzero"`

	// pods has settings for the pods of data servers and namespace servers.
	// +optional
	Pods *PodSettings `json:"pods,omitempty"`

	// namespaceServers configures the namespace servers, which answer at the address that clients mount.
	// +kubebuilder:default={}
	// +optional
	NamespaceServers *NamespaceServers `json:"namespaceServers,omitempty"`

	// network gives the servers addresses for clients outside the cluster.
	// +optional
	Network Network `json:"network,omitempty,omitzero"`

	// nfs tunes the NFS protocol.
	// +kubebuilder:default={}
	// +optional
	NFS *NFSOptions `json:"nfs,omitempty"`

	// keyGeneration is the generation of the servers' secrets: the keys with which data servers sign file handles, and
	// the certificates with which data servers and namespace servers authenticate each other. Increase it by one to
	// replace them. The pods restart one by one; the keys and certificates of the previous generation remain valid, so
	// clients are not affected. Those of earlier generations are refused; clients with file handles from them must
	// mount again.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="keyGeneration can't be reduced: replaced keys are not used again"
	// +optional
	KeyGeneration int32 `json:"keyGeneration,omitempty"`

	// resources are the compute resources of each data server's container. If memory is unset, the request is 256Mi and
	// the limit 4Gi. The limit "0" means no limit.
	// +kubebuilder:validation:XValidation:rule="!has(self.claims) || size(self.claims) == 0",message="resources.claims can't be used: pods of data servers have no resource claims"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('cpu' in self.requests) || !('cpu' in self.limits) || quantity(string(self.requests['cpu'])).compareTo(quantity(string(self.limits['cpu']))) <= 0",message="resources.requests of cpu must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('memory' in self.requests) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('0')) == 0 || quantity(string(self.requests['memory'])).compareTo(quantity(string(self.limits['memory']))) <= 0",message="resources.requests of memory must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('ephemeral-storage' in self.requests) || !('ephemeral-storage' in self.limits) || quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity(string(self.limits['ephemeral-storage']))) <= 0",message="resources.requests of ephemeral-storage must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('0')) == 0 || quantity(string(self.limits['memory'])).compareTo(quantity('64Mi')) >= 0",message="resources.limits of memory must be at least 64Mi, or \"0\" for no limit"
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// allowedNamespaces selects the Kubernetes namespaces whose FileShares this FileServer serves; unset means its own
	// namespace only. Shares of a namespace that is no longer allowed are no longer served; their data stays on the
	// volumes.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// limits bounds the shares of the FileServer: their number, directories and access rules. When a limit is reached
	// or reduced, what exists stays. Additions are refused, the newest first, with the reason LimitReached; mkdir fails
	// with "Disk quota exceeded".
	// +optional
	Limits FileServerLimits `json:"limits,omitempty,omitzero"`

	// additionalNodeNetworks are addresses and networks that count as Nodes in access rules of shares, in addition to
	// the node addresses that Kubernetes has. Set it for network plugins that give nodes addresses that Kubernetes does
	// not know. Do not list pod networks: every client in these networks can use every share that allows Nodes.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c) || isIP(c))",message="additionalNodeNetworks must be addresses (10.0.0.7) or networks (10.0.0.0/8); host names can't be used"
	// +listType=set
	// +optional
	AdditionalNodeNetworks []string `json:"additionalNodeNetworks,omitempty"`
}

// FileServerLimits bounds the shares of a FileServer.
// +kubebuilder:validation:MinProperties=1
type FileServerLimits struct {
	// total applies to all shares together. Unset means 4096 shares (4095 if storage.volumes.perServer is 16), 100000
	// directories, and 131072 access networks divided by storage.volumes.perServer.
	// +optional
	Total ShareLimits `json:"total,omitempty,omitzero"`

	// perNamespace applies to all shares of one Kubernetes namespace together, including shares made for its claims of
	// StorageClasses. It does not apply to the FileServer's own namespace. Unset means 512 shares, 20000
	// directories, and 16384 access networks divided by storage.volumes.perServer.
	// +optional
	PerNamespace ShareLimits `json:"perNamespace,omitempty,omitzero"`
}

// ShareLimits bounds a group of shares.
// +kubebuilder:validation:MinProperties=1
type ShareLimits struct {
	// shares is the maximum number of shares.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Shares int32 `json:"shares,omitempty"`

	// directories is the maximum number of directories at the shares' depths and above, declared or made by clients.
	// Each is an API object, and takes memory of the operator and of every namespace server.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Directories int32 `json:"directories,omitempty"`

	// accessNetworks is the maximum number of clients entries in the access rules: addresses, networks and the word
	// Nodes. A share without rules counts as one. Each entry makes reload and start of every data server longer.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	// +optional
	AccessNetworks int32 `json:"accessNetworks,omitempty"`
}

// DataHandover gives the data of a deleted Kubernetes namespace to a new one of the same name.
type DataHandover struct {
	// namespace is the name of both namespaces.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a Kubernetes namespace: lower-case letters, digits and '-'"
	// +required
	Namespace string `json:"namespace,omitempty"`

	// namespaceUID is the UID of the new namespace (kubectl get namespace NAME -o jsonpath={.metadata.uid}). The entry
	// does not apply to any later namespace of the same name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="namespaceUID is what kubectl get namespace NAME -o jsonpath={.metadata.uid} prints: 7d1f6c1e-0f3a-4b8e-9f0c-2a4f1f1f7a10"
	// +required
	NamespaceUID string `json:"namespaceUID,omitempty"`
}

// Drain configures data servers that are to be idle: those in maintenance, and those to be removed because
// spec.replicas was reduced.
type Drain struct {
	// servers are the names of data servers in maintenance. They keep running and get no new directories. Their
	// directories move to other servers; with storage.volumes only if moves.copying is Allow, and never the roots of
	// Single shares. status.servers shows when a server is idle.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[a-z][-a-z0-9]*-[0-9]+$'))",message="drain.servers are names of data servers as status.servers has them: training-1"
	// +listType=set
	// +optional
	Servers []string `json:"servers,omitempty"`

	// timeoutSeconds is how long a drained data server waits for clients to unmount after its last directory has moved,
	// in seconds; unset means 3600. After that time a server to be removed is removed, and clients that still have a
	// file open on it block.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// Moves sets how directories of storage.volumes are copied to other data servers. With storage.ceph nothing is copied.
// +kubebuilder:validation:MinProperties=1
type Moves struct {
	// copying allows moves of directories between volumes. Forbid, the default: a directory stays on its volume, and a
	// data server that has one is not removed. Allow: the directory is copied while clients use it, then they wait for
	// some seconds. API clients must tolerate new values.
	// +kubebuilder:default=Forbid
	// +optional
	Copying MoveCopying `json:"copying,omitempty"`

	// openFiles says what happens to files that clients have open in a directory when its copy is done. Wait, the
	// default: the directory moves when none is open. Interrupt: it moves, and what is open fails with ESTALE; locks on
	// it are lost. API clients must tolerate new values.
	// +kubebuilder:default=Wait
	// +optional
	OpenFiles MoveOpenFiles `json:"openFiles,omitempty"`

	// megabytesPerSecond bounds what one move copies, in 10^6 bytes a second; unset: no bound.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MegabytesPerSecond int32 `json:"megabytesPerSecond,omitempty"`

	// execution is Active or Suspended; unset means Active. While it is Suspended nothing is copied; a directory whose
	// clients wait is moved to the end.
	// +optional
	Execution Execution `json:"execution,omitempty"`

	// trashSeconds is how long a moved directory stays in the trash of the data server that had it; unset means 86400.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TrashSeconds *int64 `json:"trashSeconds,omitempty"`
}

// MoveCopying says whether directories are copied between volumes.
// +kubebuilder:validation:Enum=Forbid;Allow
type MoveCopying string

// Values of moves.copying.
const (
	// MoveCopyingForbid keeps directories on their volumes.
	MoveCopyingForbid MoveCopying = "Forbid"
	// MoveCopyingAllow copies them.
	MoveCopyingAllow MoveCopying = "Allow"
)

// MoveOpenFiles says what becomes of open files.
// +kubebuilder:validation:Enum=Wait;Interrupt
type MoveOpenFiles string

// Values of moves.openFiles.
const (
	// MoveOpenFilesWait waits until they are closed.
	MoveOpenFilesWait MoveOpenFiles = "Wait"
	// MoveOpenFilesInterrupt makes them stale.
	MoveOpenFilesInterrupt MoveOpenFiles = "Interrupt"
)

// AllowedNamespaces selects the Kubernetes namespaces that may have FileShares on a FileServer, as
// allowedRoutes.namespaces of a Gateway does for routes. The FileServer's own namespace is always allowed.
// +kubebuilder:validation:XValidation:rule="(has(self.from) && self.from == 'Selector') == has(self.selector)",message="selector goes with from: Selector, and that needs one; from: All allows every namespace"
type AllowedNamespaces struct {
	// from is how namespaces are selected; unset means Same. API clients must tolerate new values.
	// +kubebuilder:default=Same
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// selector selects namespaces by label if from is Selector. Every namespace has the label
	// kubernetes.io/metadata.name with its name.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector would choose every namespace; write from: All if that is meant"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="matchExpressions need an operator: In or NotIn with values, Exists or DoesNotExist without"
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NamespacesFrom is how Kubernetes namespaces are selected.
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

// Ways to choose namespaces.
const (
	// NamespacesFromSame allows only the FileServer's own namespace.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromAll allows every namespace.
	NamespacesFromAll NamespacesFrom = "All"
	// NamespacesFromSelector allows the namespaces whose labels match a selector.
	NamespacesFromSelector NamespacesFrom = "Selector"
)

// NamespaceServers configures the namespace servers: small, stateless NFSv4.1 servers that serve the upper directories
// and refer clients to the data servers.
type NamespaceServers struct {
	// placement selects the nodes for namespace servers.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// replicas is the number of namespace servers; unset means 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// maxWaitSeconds is how long a client that enters a directory waits while the directory's data server does not
	// serve, in seconds. After that time the client's mount of the directory fails. Unset: no limit, as with a hard
	// mount.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	MaxWaitSeconds int32 `json:"maxWaitSeconds,omitempty"`

	// resources are the compute resources of each namespace server's container. What is unset is a request of 10m CPU and
	// 64Mi memory, and a limit of 512Mi memory, or the memory request if that is more. The limit "0" means no limit. The
	// maximum of connections, sessions and cached replies follows from
	// the memory limit.
	// +kubebuilder:validation:XValidation:rule="!has(self.claims) || size(self.claims) == 0",message="resources.claims can't be used: pods of namespace servers have no resource claims"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('cpu' in self.requests) || !('cpu' in self.limits) || quantity(string(self.requests['cpu'])).compareTo(quantity(string(self.limits['cpu']))) <= 0",message="resources.requests of cpu must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('memory' in self.requests) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('0')) == 0 || quantity(string(self.requests['memory'])).compareTo(quantity(string(self.limits['memory']))) <= 0",message="resources.requests of memory must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('ephemeral-storage' in self.requests) || !('ephemeral-storage' in self.limits) || quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity(string(self.limits['ephemeral-storage']))) <= 0",message="resources.requests of ephemeral-storage must not exceed resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('0')) == 0 || quantity(string(self.limits['memory'])).compareTo(quantity('64Mi')) >= 0",message="resources.limits of memory must be at least 64Mi, or \"0\" for no limit"
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// NFSOptions tunes the NFS protocol.
// +kubebuilder:validation:XValidation:rule="!has(self.graceSeconds) || !has(self.leaseSeconds) || self.graceSeconds >= self.leaseSeconds",message="graceSeconds must be at least leaseSeconds, or clients can't reclaim their state after a restart (RFC 8881 section 8.4.2)"
type NFSOptions struct {
	// leaseSeconds is the NFSv4 lease time in seconds (ganesha: Lease_Lifetime). The minimum is 7, because Linux renews
	// leases at most every 5 s and ganesha counts whole seconds. Unset means 10, or 8 with storage.ceph.
	// A data server uses a changed value from its next start.
	// +kubebuilder:validation:Minimum=7
	// +kubebuilder:validation:Maximum=120
	// +optional
	LeaseSeconds int32 `json:"leaseSeconds,omitempty"`

	// graceSeconds is the maximum time that a restarted data server waits for clients to reclaim their state, in
	// seconds (ganesha: Grace_Period). After an outage it waits longer, by three times the time that it was away, 90 s at
	// most: clients may try that late. Unset means 20, or 12 with storage.ceph, but at least twice leaseSeconds if that is
	// set. A data server uses a changed value from its next start.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=180
	// +optional
	GraceSeconds int32 `json:"graceSeconds,omitempty"`

	// maxConnections is the maximum number of TCP connections of each data server (ganesha: RPC_Max_Connections). At the
	// maximum, a new one takes the place of the connection that was unused for longest of the address that has most. One
	// address can have a quarter of them, or 64. A client uses as many as its mount option nconnect says, for each server
	// whose directories it has entered. Unset: the number follows from the memory in spec.resources, and status.servers
	// shows it. A data server uses a changed value from its next start.
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65536
	// +optional
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// FileServerList is a list of FileServers.
// +kubebuilder:object:root=true
type FileServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FileServer `json:"items"`
}
