package desired

import (
	"maps"
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/internal/naming"
)

// Labels that Kubernetes recommends. nameLabel tells which program an object is part of.
const (
	nameLabel = "app.kubernetes.io/name"
	nameValue = "howdah"
	// instanceLabel tells the objects of several instances apart.
	instanceLabel = "app.kubernetes.io/instance"
)

// Images are the images that pods run.
type Images struct {
	// Server has nfs-ganesha and howdah: data servers.
	Server string
	// Howdah has howdah alone: namespace servers and benchmarks.
	Howdah string
	// PullSecrets name Secrets that every pod's images are pulled with, beside those of its object.
	PullSecrets []string
}

// FileServerInput is all that the children of a FileServer are made from.
type FileServerInput struct {
	FileServer *v1alpha1.FileServer
	Images     Images
	// Replicas is the number of data servers, decided.
	Replicas int32
	// ToBeIdle are the data servers that get no new directories.
	ToBeIdle []string
	// Storage is what data servers get from the storage back end.
	Storage backendapi.ServerStorage
	// Addresses are the cluster addresses of the data servers' Services, by data
	// server; those that have none yet are missing.
	Addresses map[string]string
	// StewardStays leaves the steward's Deployment as it is.
	StewardStays bool
	// OutsideAddresses are, by data server, those for clients outside the cluster, if there are any.
	OutsideAddresses map[string][]string
	// OutsideReplaced are the outside Services that must go before they are made again.
	OutsideReplaced map[string]bool
	// WaitingRooms are the addresses of namespace servers at which clients of data servers without a pod can wait.
	WaitingRooms []netip.Addr
	// AddressesIn are the networks in which the nodes of data servers have the addresses to which Services lead. None: they lead to pods'.
	AddressesIn []netip.Prefix
	// NodeEndpoints are the data servers whose Services lead to addresses of nodes, and to which.
	NodeEndpoints map[string]NodeEndpoint
	// Starting are, by data server, the addresses of nodes at which pods do not serve yet, and hold their clients' connections until they do.
	Starting map[string]netip.AddrPort
	// CertificatesLost is how often the certificates of this FileServer were lost and replaced.
	CertificatesLost int32
	// NetworkPolicies are made for the pods, unless nil.
	NetworkPolicies *NetworkPolicies
	// Moves are the data servers' parts in copies of directories, by their names.
	Moves map[string][]internalv1.MoveTask
	// DirectoryLimits are those of spec.limits, spelled out; zero leaves them out.
	DirectoryLimits internalv1.DirectoryLimits
	// NodeNetworks are the Nodes of access rules.
	NodeNetworks []netip.Prefix
	// LostNodeAddresses are, by data server, those of the node from which a failover took it.
	LostNodeAddresses map[string][]netip.Addr
	// Near are, by data server, the clients that are near it, if a share has hot directories.
	Near map[string]Near
	// Fences are the pods whose clients the storage must refuse.
	Fences []internalv1.PodFence
	// Rollout is how pods of data servers are replaced.
	Rollout Rollout
	// ImageOn is the node that is to pull the image of the data servers; "" is none.
	ImageOn string
	// Clients are the networks that some access rule of the FileServer's shares lets in.
	Clients []netip.Prefix
}

// FileServer is every child of a FileServer, in the order to apply them: what
// others refer to comes first. All of them are to be owned by the FileServer.
func FileServer(in FileServerInput) []runtime.ApplyConfiguration {
	children := dataServerAccess(in)
	children = append(children, namespaceServerAccess(in)...)
	children = append(children, stewardChildren(in)...)
	children = append(children, NamespaceService(in))
	for ordinal := range in.Replicas {
		children = append(children, DataServerService(in, ordinal))
		if slice := waitingRoomSlice(in, ordinal); slice != nil {
			children = append(children, slice)
		}
	}
	for _, slice := range NodeAddressSlices(in) {
		children = append(children, slice)
	}
	if in.NetworkPolicies != nil {
		// Before the pods that they are for.
		children = append(children, networkPolicies(in)...)
	}
	// Before the data servers: claims wait until namespace servers are ready, and clients begin with them.
	children = append(children, NamespaceServerDeployment(in))
	children = append(children, outside(in)...)
	if in.Storage.Describe != nil || !in.Storage.Missing {
		for ordinal := range in.Replicas {
			children = append(children, DataServerObject(in, ordinal))
		}
	}
	children = append(children, dataServerBudget(in), namespaceServerBudget(in))
	if !in.Storage.Missing {
		children = append(children, DataServerStatefulSet(in))
	}
	if in.ImageOn != "" {
		children = append(children, ImageDeployment(in, in.ImageOn))
	}
	if in.Storage.Steward != nil && !in.StewardStays {
		children = append(children, StewardDeployment(in))
	}
	return children
}

// labels are those of a child of a FileServer. The managed-by label is among them
// although the applier sets it: pods and claims are made from templates.
func labels(selector map[string]string) map[string]string {
	all := map[string]string{
		nameLabel:               nameValue,
		v1alpha1.ManagedByLabel: v1alpha1.ManagedBy,
	}
	maps.Copy(all, selector)
	return all
}

func (in FileServerInput) name() string      { return in.FileServer.Name }
func (in FileServerInput) namespace() string { return in.FileServer.Namespace }

// DataServerLabels are those of what belongs to a FileServer's data servers.
func DataServerLabels(fs *v1alpha1.FileServer) map[string]string {
	return labels(naming.SelectDataServers(fs.Name))
}

// NamespaceReplicas is the number of namespace servers.
func NamespaceReplicas(fs *v1alpha1.FileServer) int32 { return fs.Spec.NamespaceServers.Replicas }

func (in FileServerInput) dataServerNames() []string {
	names := make([]string, 0, in.Replicas)
	for ordinal := range in.Replicas {
		names = append(names, naming.DataServer(in.name(), ordinal))
	}
	return names
}
