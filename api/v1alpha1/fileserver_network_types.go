package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Network is how clients reach the servers of a FileServer. Clients in the cluster always use the servers' Services of type
// ClusterIP, wherever these lead.
// +kubebuilder:validation:MinProperties=1
type Network struct {
	// loadBalancer makes Services of type LoadBalancer, one for the namespace servers and one for each data server.
	// Clients outside the cluster mount the first; referrals lead them to the others. Shares admit them only if
	// spec.access of the FileShare has their addresses.
	// +optional
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`

	// hostNetwork puts the data servers on the networks of their nodes: traffic between nodes has no overlay. Their
	// Services, and so the addresses that clients know, stay. Only one data server of a FileServer fits on a node. The
	// Kubernetes namespace needs the Pod Security level privileged.
	// +optional
	HostNetwork *HostNetwork `json:"hostNetwork,omitempty"`
}

// HostNetworkPorts is how many ports a data server has on its node's network: firstPort and those after it.
const HostNetworkPorts = 5

// HostNetwork describes data servers on the networks of their nodes.
type HostNetwork struct {
	// firstPort is the first of five TCP ports that the data servers have on their nodes: NFS, NFS with TLS, metrics of
	// ganesha, probes and metrics, and one on the loopback interface. Nothing else on these nodes may have them, nor may
	// another FileServer's data server there.
	// +kubebuilder:default=20490
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65531
	// +kubebuilder:validation:XValidation:rule="self + 4 < 30000 || self > 32767",message="firstPort and the four ports after it must not be among 30000 to 32767, which are Kubernetes' ports for Services of type NodePort: use the default 20490, or another one below 29996"
	// +optional
	FirstPort int32 `json:"firstPort,omitempty"`

	// addressesIn are networks, such as 10.20.0.0/16: the Service of each data server leads to its node's address in
	// them, and not to the address that Kubernetes has of the node. Files then take the node's network card there. The
	// first network in which the node has an address counts. In a list with IPv4 and IPv6 the node needs an address of
	// both. A data server on a node without such an address waits. Clients on nodes come from the nodes' addresses in
	// these networks, so spec.additionalNodeNetworks must have them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c) && cidr(c) == cidr(c).masked())",message="addressesIn must be networks without bits of hosts, such as 10.20.0.0/16"
	// +kubebuilder:validation:XValidation:rule="self.all(c, !isCIDR(c) || cidr(c).ip().isGlobalUnicast())",message="addressesIn can't have loopback, link-local and multicast networks, nor 0.0.0.0: name the network that joins the nodes"
	// +listType=atomic
	// +optional
	AddressesIn []string `json:"addressesIn,omitempty"`
}

// LoadBalancer describes the Services of type LoadBalancer. They have externalTrafficPolicy Local, so that servers see
// the addresses of clients.
// +kubebuilder:validation:XValidation:rule="has(self.class) == has(oldSelf.class) && (!has(self.class) || self.class == oldSelf.class)",message="class can't change, because the addresses would: remove loadBalancer, and set it again with the new class"
type LoadBalancer struct {
	// class is the loadBalancerClass of the Services; unset: that of the cluster's default load balancer. It can't
	// change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="class must be a name like that of a label, for example metallb.io/lab"
	// +optional
	Class string `json:"class,omitempty"`

	// labels are added to the Services. Howdah's own labels can't be replaced.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('howdah.io/') && k != 'app.kubernetes.io/name' && k != 'app.kubernetes.io/component' && k != 'app.kubernetes.io/managed-by')",message="labels of howdah.io and app.kubernetes.io/name, component and managed-by are Howdah's"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the Services: the load balancer's settings, for example the pool of its addresses.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('howdah.io/'))",message="annotations of howdah.io are Howdah's"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// sourceRanges are the networks whose machines the load balancer lets through; unset: all. Access rules of shares
	// count beside them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c) && cidr(c) == cidr(c).masked())",message="sourceRanges must be networks without bits of hosts, such as 192.0.2.0/24"
	// +listType=set
	// +optional
	SourceRanges []string `json:"sourceRanges,omitempty"`

	// ipFamilyPolicy is that of the Services: SingleStack, PreferDualStack or RequireDualStack. Unset means SingleStack,
	// with the cluster's first family. A client that came by IPv6 is led to an IPv6 address, if the data server has one.
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	// +optional
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// nodePorts is Allocate or Omit; unset means Allocate. Omit makes Services without ports on every node, for load
	// balancers that need none, such as MetalLB. It counts for Services that are made afterwards.
	// +optional
	NodePorts NodePorts `json:"nodePorts,omitempty"`
}

// NodePorts says whether Services have ports on every node.
// +kubebuilder:validation:Enum=Allocate;Omit
type NodePorts string

// Values of loadBalancer.nodePorts.
const (
	// NodePortsAllocate has Kubernetes choose ports.
	NodePortsAllocate NodePorts = "Allocate"
	// NodePortsOmit has none.
	NodePortsOmit NodePorts = "Omit"
)
