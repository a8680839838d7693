package failover

import "time"

// Input is what is known at one moment.
type Input struct {
	Now time.Time
	// Allowed means that failovers may begin. Those that have begun are finished in every case.
	Allowed bool
	// ByPower means that Howdah can fence nothing, so that others must say that the machine is off, or that the storage refuses it
	// (spec.failover.fencing: Power). There is no steward then, and Fences are what the status has of failovers that are not done.
	ByPower bool
	// Storage is what csi-addons knows of fences; only with ByPower, and while a data server does not answer, or is started elsewhere.
	Storage StorageFences
	// Servers are the data servers of the FileServer.
	Servers []Server
	// NamespaceServers are the pods of the namespace servers, and Leader is the one that reports which data servers do not answer; nil if that
	// is not known.
	NamespaceServers []Pod
	Leader           *Leader
	// Steward is the pod of the steward, which fences; the zero value if there is none.
	Steward Pod
	// Nodes are all nodes of the cluster, by name.
	Nodes map[string]Node
	// Fences are the requests that exist.
	Fences []Fence
}

// Pod is a pod. The zero value is none.
type Pod struct {
	Name, UID, Node string
	// Ready means that the kubelet calls it ready.
	Ready bool
	// Ending means that it is being deleted.
	Ending bool
}

// Leader is the namespace server that reports. Name is "" if none does, and Renewed is when it was last heard of.
type Leader struct {
	Name    string
	Renewed time.Time
}

// Server is a data server.
type Server struct {
	Name string
	Pod  Pod
	// Started means that it has served before. Serving means that it serves now.
	Started, Serving bool
	// Since is when it stopped answering, and Reporter the namespace server that reports so; zero if it answers.
	Since    time.Time
	Reporter string
	// Reported is when its supervisor last reported a change of its own state; zero if it never has.
	Reported time.Time
	// Last is when its last failover began, and Count the number of its failovers.
	Last  time.Time
	Count int32
	// Boot is where it served last; only with ByPower, as the next two.
	Boot Boot
	// Pinned means that one of its volumes can be used on one node alone.
	Pinned bool
	// Volumes are its volumes. They are known while it does not answer, or is started on another node.
	Volumes []Volume
}

// Boot is a pod, and one boot of the node that it runs on.
type Boot struct {
	PodUID, NodeUID, BootID string
}

// Volume is a PersistentVolume of a data server.
type Volume struct {
	Name, Claim string
	// Driver is its CSI driver, "" if it has none or that is not known; Attributes are what the driver has written down about it.
	Driver     string
	Attributes map[string]string
	// Nodes are the nodes that could use it now: they are Ready, data servers may be placed there, and its node affinity admits them.
	Nodes []string
	// Attachments are its VolumeAttachments. Without one, nothing detaches it.
	Attachments []Attachment
}

// Attachment is a VolumeAttachment. Version is that of the object that was read.
type Attachment struct {
	Name, UID, Version, Node string
	// Ending means that its driver has been asked to detach, Fault why it has not.
	Ending bool
	Fault  string
}

func (s Server) isUnreachable() bool { return !s.Since.IsZero() }

// Node is a node of the cluster.
type Node struct {
	// Ready is its condition in the API, which is up to 50 s old. ReadySince is when that began, as its kubelet has it after a cut; zero if that is
	// not known.
	Ready      bool
	ReadySince time.Time
	BootID     string
	// KeptOff means that a pod keeps others off it. Acknowledged is when its kubelet took note of that pod; zero if it has not, or if that is not
	// known.
	KeptOff      bool
	Acknowledged time.Time
	// Renewed is when its kubelet last renewed its Lease; zero if that is not known.
	Renewed time.Time
	// UID is that of the Node. It is another one if the Node was deleted and made again.
	UID string
	// Silent means that Kubernetes has heard nothing of its kubelet for the grace period (Ready is Unknown). A kubelet that says by
	// itself that it is not ready is alive.
	Silent bool
	// Closed means that no data server would be placed there.
	Closed bool
	// Addresses are its IP addresses in the API, and Reported is when its kubelet last wrote its status, by the node's clock.
	Addresses []string
	Reported  time.Time
	// Off is the evidence that the machine is off, or can't write; "" if there is none. By is what says so, where that is not a taint, and
	// Doubt why fences that name the node do not.
	Off       Evidence
	By, Doubt string
}

// Evidence is why a lost data server can't write any more.
type Evidence string

const (
	// StorageFenced means that the storage refuses it.
	StorageFenced Evidence = "StorageFenced"
	// OutOfServiceTaint means that the Node has the taint node.kubernetes.io/out-of-service, which says that the machine is off.
	// Kubernetes deletes pods and detaches volumes by itself then.
	OutOfServiceTaint Evidence = "OutOfServiceTaint"
	// ShutdownTaint means that the cloud's controller has set the taint node.cloudprovider.kubernetes.io/shutdown.
	ShutdownTaint Evidence = "ShutdownTaint"
	// NetworkFenced means that the storage of all its volumes refuses all addresses of its node (NetworkFences of csi-addons).
	NetworkFenced Evidence = "NetworkFence"
)

// Fence is a request to fence the storage's clients of a pod.
type Fence struct {
	Server, PodUID string
	// Node is where the pod ran, and BootID the node's at that time; "" if the node did not exist.
	Node, BootID string
	// Since is when the data server stopped answering, Requested when the fence was requested, Message why.
	Since, Requested time.Time
	Message          string
	// Fenced is when the storage confirmed it; zero if it has not. Clients is the number of fenced clients, Fault why it failed.
	Fenced  time.Time
	Clients int
	Fault   string
	// Deleted is when the pod was deleted; zero if it is not, or if that is not known any more.
	Deleted time.Time
	// Evidence is why it can't write; "" stands for StorageFenced. NodeUID is that of the Node; only with ByPower.
	Evidence Evidence
	NodeUID  string
}

// Plan is what to do.
type Plan struct {
	// Fences are the requests that should exist.
	Fences []Fence
	// KeepOff are the nodes that must get none of the FileServer's pods, sorted.
	KeepOff []string
	// Delete are pods of lost data servers to be deleted at once, without waiting for their kubelet: they are fenced.
	Delete []Pod
	// Evict are pods without state on lost nodes to be deleted in the usual way, so that others start elsewhere: the steward. Namespace
	// servers that do not answer are evicted by controllers/namespaceprobe.
	Evict []Pod
	// Detach are attachments to lost nodes to be deleted, so that the volumes are detached.
	Detach []Attachment
	// Waits is what the failover of a data server waits for, after its pod is deleted.
	Waits map[string]string
	// Refused has the unreachable data servers for which nothing is done, and why.
	Refused map[string]Refusal
	// Again is when to decide again; 0: when something changes.
	Again time.Duration
}

// Refusal is why no failover begins.
type Refusal struct {
	Reason  Reason
	Message string
}

// Reason is a word for programs.
type Reason string

// Reasons not to begin a failover.
const (
	// Observing means that it was a moment ago that the data server stopped answering.
	Observing Reason = "Observing"
	// NodeAlive means that the node shows signs of life. It restarts the data server itself, or the failover begins later.
	NodeAlive Reason = "NodeAlive"
	// ReporterOnSameNode means that the only witness runs on the same node, which is not lost then.
	ReporterOnSameNode Reason = "ReporterOnSameNode"
	// ReportOutdated means that the namespace server that got no answer does not report any more: the data server may answer again.
	ReportOutdated Reason = "ReportOutdated"
	// NoServerReachable means that the witness reaches no data server at all: it may be cut off itself.
	NoServerReachable Reason = "NoServerReachable"
	// OneWitness means that there is no other data server, so that the node must also be NotReady.
	OneWitness Reason = "OneWitness"
	// TooManyNodesUnhealthy means that half of the nodes or more are unhealthy.
	TooManyNodesUnhealthy Reason = "TooManyNodesUnhealthy"
	// AnotherInProgress means that another node's data servers are being started elsewhere.
	AnotherInProgress Reason = "AnotherInProgress"
	// CoolingDown means that the last failover of the data server was a short time ago.
	CoolingDown Reason = "CoolingDown"
	// Starting means that it is being started on another node, after a failover.
	Starting Reason = "Starting"
	// VolumesOnNode means that its volumes can be used on the lost node alone.
	VolumesOnNode Reason = "VolumesOnNode"
	// NoNodeForVolumes means that no other node can use its volumes now.
	NoNodeForVolumes Reason = "NoNodeForVolumes"
	// VolumesNotAttached means that nothing would detach a volume: it has no VolumeAttachment.
	VolumesNotAttached Reason = "VolumesNotAttached"
	// PowerUnknown means that there is no evidence that the machine is off, or refused by the storage.
	PowerUnknown Reason = "PowerUnknown"
	// EvidenceOutdated means that what says so may be about another boot of the machine.
	EvidenceOutdated Reason = "EvidenceOutdated"
	// NodeGone means that the Node is deleted, which does not say that the machine is off.
	NodeGone Reason = "NodeGone"
	// NodeTakesPods means that the next pod could be placed on the lost node.
	NodeTakesPods Reason = "NodeTakesPods"
	// VolumesNotDetached means that the pod is deleted, and a volume is not detached for long.
	VolumesNotDetached Reason = "VolumesNotDetached"
	// NotScheduled means that the data server has no pod on a node: nothing can be fenced, and nothing is in its way.
	NotScheduled Reason = "NotScheduled"
)

// IsWait reports whether the reason is usual for some seconds: a restart, or the pod that follows a failover.
func (r Reason) IsWait() bool {
	return r == Observing || r == NodeAlive || r == Starting || r == NotScheduled
}
