package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileServer is a set of NFS data servers spread over nodes, each with volumes
// of its own or all on one Ceph file system, and the namespace servers that join them into one tree behind one address.
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
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name must be at most 40 characters: pod, Service and label names are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label that starts with a letter (no dots): Service names are made from it"
type FileServer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the user wants.
	// +required
	Spec FileServerSpec `json:"spec,omitzero"`
	// Why there is a default: kstatus, by which Flux and others wait, takes an object without any status for Current.

	// status is what the operator sees.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileServerStatus `json:"status,omitempty,omitzero"`
}

// FileServerSpec is what the user wants of a FileServer.
type FileServerSpec struct {
	// replicas is the number of data servers. Unset means one for each eligible node,
	// following the nodes as they come; data servers are never removed while they own directories. Lowered, it is refused while a server
	// that would go owns some, as its data is on its volumes; with storage.ceph their directories go to the others first, and it is
	// waited for their clients (drain).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// storage says where the data lives.
	// +required
	Storage FileServerStorage `json:"storage,omitzero"`

	// placement says which nodes data servers run on.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// handOver gives what FileShares of a deleted Kubernetes namespace have left here to a new namespace of its name. Without it their data is nobody's: who is
	// given a name is not given the data of who had it before.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +optional
	HandOver []DataHandOver `json:"handOver,omitempty"`

	// drain says which data servers are in maintenance, and how long servers that are to be idle wait for their clients.
	// +optional
	Drain *Drain `json:"drain,omitempty"`

	// pods is for the pods of data servers and of namespace servers.
	// +optional
	Pods *PodSettings `json:"pods,omitempty"`

	// namespaceServers configures the namespace servers, which answer at the address that clients mount.
	// +kubebuilder:default={}
	// +optional
	NamespaceServers *NamespaceServers `json:"namespaceServers,omitempty"`

	// nfs tunes the NFS protocol.
	// +kubebuilder:default={}
	// +optional
	NFS *NFSOptions `json:"nfs,omitempty"`

	// keyGeneration counts the secrets of the servers: the keys with which data servers sign file handles, and the certificates
	// by which data servers and namespace servers know each other. Raise it by one for new ones: the pods restart one
	// after the other, and what the generation before it signed is still taken, so clients notice nothing. Handles
	// and certificates of earlier generations are refused; who has such a handle must mount again.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="keyGeneration can't go back: keys that were replaced stay replaced"
	// +optional
	KeyGeneration int32 `json:"keyGeneration,omitempty"`

	// resources are the compute resources of each data server's container. Memory that is not set is a request of 256Mi and a
	// limit of 4Gi; the limit "0" means none.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// allowedNamespaces says whose FileShares the FileServer serves; unset means those of its own Kubernetes namespace.
	// Where it is taken back from a namespace, its shares are no longer served; their data stays on the volumes.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// limits bounds what shares take of the FileServer: how many there are, and their directories and access rules. What is there when a limit
	// is reached, or lowered, stays; what would be more is refused with the reason LimitReached, the newest first, and mkdir with "Disk quota exceeded".
	// +optional
	Limits FileServerLimits `json:"limits,omitempty,omitzero"`

	// additionalNodeNetworks are addresses and networks that count as the cluster's nodes in access rules of shares, besides those that
	// Kubernetes tells of its nodes. They are for network plugins that give nodes addresses of which Kubernetes knows nothing. Pods'
	// addresses don't belong here: whatever is in it may use every share that lets nodes in.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c) || isIP(c))",message="additionalNodeNetworks must be addresses (10.0.0.7) or networks (10.0.0.0/8); names of hosts can't be used"
	// +listType=set
	// +optional
	AdditionalNodeNetworks []string `json:"additionalNodeNetworks,omitempty"`
}

// FileServerLimits bounds what shares take of a FileServer.
// +kubebuilder:validation:MinProperties=1
type FileServerLimits struct {
	// total is for all shares together. Unset means 4096 shares, 100000 directories and 131072 access networks, these divided by storage.volumes.perServer.
	// +optional
	Total ShareLimits `json:"total,omitempty,omitzero"`

	// perNamespace is for the shares of one Kubernetes namespace together, with those that were made for its claims of StorageClasses. The
	// FileServer's own namespace is bounded by total alone. Unset means 512 shares, 20000 directories and 16384 access networks, divided likewise.
	// +optional
	PerNamespace ShareLimits `json:"perNamespace,omitempty,omitzero"`
}

// ShareLimits is how much of a FileServer shares may take together.
// +kubebuilder:validation:MinProperties=1
type ShareLimits struct {
	// shares is how many there may be.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Shares int32 `json:"shares,omitempty"`

	// directories is how many directories they may have at their depths and above, declared and made by clients. Each costs an API object, and
	// memory of the operator and of every namespace server.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Directories int32 `json:"directories,omitempty"`

	// accessNetworks is how many entries the clients of their access rules may have: addresses, networks and the word Nodes. A share without rules
	// has one. Each makes the reload and the start of every data server longer.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	// +optional
	AccessNetworks int32 `json:"accessNetworks,omitempty"`
}

// DataHandOver gives data to a Kubernetes namespace.
type DataHandOver struct {
	// namespace is the name that both namespaces have.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace,omitempty"`

	// namespaceUID is the UID of the new one (kubectl get namespace NAME -o jsonpath={.metadata.uid}): a third of that name gets nothing by it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	NamespaceUID string `json:"namespaceUID,omitempty"`
}

// Drain is for data servers that are to be idle: in maintenance, or on their way out because spec.replicas was lowered.
type Drain struct {
	// servers are the names of data servers in maintenance. They run on and get no new directories. With storage.ceph the directories
	// that they have go to the others; status.servers tells when one is idle. With storage.volumes directories stay where their data is.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[a-z][-a-z0-9]*-[0-9]+$'))",message="drain.servers are names of data servers as status.servers has them: training-1"
	// +listType=set
	// +optional
	Servers []string `json:"servers,omitempty"`

	// limitSeconds is how long after its last directory has gone a data server is kept for clients that have not unmounted it, in
	// seconds; unset means 3600. Then a server that is to go goes, and who still has a file open there waits for it for ever.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	LimitSeconds *int32 `json:"limitSeconds,omitempty"`
}

// AllowedNamespaces says which Kubernetes namespaces may have FileShares on a FileServer, as a Gateway's
// allowedRoutes.namespaces does for routes. The FileServer's own namespace always may.
// +kubebuilder:validation:XValidation:rule="(has(self.from) && self.from == 'Selector') == has(self.selector)",message="selector goes with from: Selector, and that needs one; from: All allows every namespace"
type AllowedNamespaces struct {
	// from tells how namespaces are chosen; unset means Same. Clients must tolerate new values.
	// +kubebuilder:default=Same
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// selector chooses namespaces by their labels, if from is Selector. Every namespace has the label
	// kubernetes.io/metadata.name, by which it can be named.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector would choose every namespace; write from: All if that is meant"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="matchExpressions need an operator: In or NotIn with values, Exists or DoesNotExist without"
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NamespacesFrom tells how Kubernetes namespaces are chosen.
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

// Ways to choose namespaces.
const (
	// NamespacesFromSame allows the FileServer's own namespace alone.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromAll allows every namespace.
	NamespacesFromAll NamespacesFrom = "All"
	// NamespacesFromSelector allows the namespaces that have the labels of a selector.
	NamespacesFromSelector NamespacesFrom = "Selector"
)

// NamespaceServers configures the namespace servers: small stateless NFSv4.1
// servers that answer directories and refer clients to the data servers.
type NamespaceServers struct {
	// placement says which nodes namespace servers run on.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// replicas is the number of namespace servers; unset means 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// maxWaitSeconds is how long a client that enters a directory is put off while the directory's data server does not
	// serve; then the client's mount fails. Unset: for as long as the client waits, as a hard mount does.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	MaxWaitSeconds int32 `json:"maxWaitSeconds,omitempty"`

	// resources are the compute resources of each namespace server's container. Unset means requests of 10m CPU and 64Mi
	// memory, and a limit of 512Mi memory. What clients may make it hold (connections, sessions, replies) follows the limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// NFSOptions tunes the NFS protocol.
// +kubebuilder:validation:XValidation:rule="!has(self.graceSeconds) || !has(self.leaseSeconds) || self.graceSeconds >= self.leaseSeconds",message="graceSeconds must be at least leaseSeconds, or clients can't reclaim their state after a restart (RFC 8881 section 8.4.2)"
type NFSOptions struct {
	// leaseSeconds is the lease of client state in seconds (ganesha: Lease_Lifetime), at least 7, as Linux renews it every 5 s at
	// the most often and ganesha's clock has whole seconds; unset means 10, with storage.ceph 8.
	// +kubebuilder:validation:Minimum=7
	// +kubebuilder:validation:Maximum=120
	// +optional
	LeaseSeconds int32 `json:"leaseSeconds,omitempty"`

	// graceSeconds is how long a restarted data server waits for clients to reclaim their
	// state, in seconds, at the most (ganesha: Grace_Period); unset means 20, with storage.ceph 12, or twice the leaseSeconds
	// that is set if that is more.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=180
	// +optional
	GraceSeconds int32 `json:"graceSeconds,omitempty"`

	// maxConnections is how many TCP connections each data server takes (ganesha: RPC_Max_Connections); more are refused. A
	// client has as many as its mount option nconnect says, to every server that it has entered a directory of. Unset means
	// as many as the memory of spec.resources is good for, which status.servers shows.
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
