package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Clients are the NFS clients of a FileServer.
type Clients struct {
	FileServer string   `json:"fileServer"`
	Clients    []Client `json:"clients"`
	// Unanswered are servers that could not be asked, with the reason.
	Unanswered []Unanswered `json:"unanswered,omitempty"`
	// More is how many addresses the servers left out of their lists, because there are too many.
	More int `json:"more,omitempty"`
	// LastReported is how many connections servers that could not be asked have, as the FileServer's status reports it.
	LastReported []LastReported `json:"lastReported,omitempty"`
	Hidden       []Hidden       `json:"hidden,omitempty"`
}

// Client is an address with connections, or a node with pods that mount a share.
type Client struct {
	// Address is the node's.
	Address string `json:"address,omitempty"`
	Node    string `json:"node,omitempty"`
	// NamespaceServers and Servers count connections.
	NamespaceServers int            `json:"namespaceServers"`
	Servers          map[string]int `json:"servers,omitempty"`
	Pods             []PodMount     `json:"pods,omitempty"`
}

// PodMount is a pod that mounts a share.
type PodMount struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Share     string `json:"share"`
}

// Unanswered is a server that could not be asked.
type Unanswered struct {
	Pod     string `json:"pod"`
	Message string `json:"message"`
}

// LastReported is what a status reports of a server.
type LastReported struct {
	Server      string       `json:"server"`
	Connections *Connections `json:"connections"`
}

// PodAnswer is the answer of a server's pod.
type PodAnswer struct {
	Pod string
	// NamespaceServers: it is a namespace server.
	NamespaceServers bool
	// Connections are by address; nil if the pod could not be asked, for the reason in Error.
	Connections map[string]int
	More        int
	Error       string
}

// NewClients joins the connections to a FileServer with the pods that mount its shares.
func NewClients(w *World, fs *v1alpha1.FileServer, answers []PodAnswer) Clients {
	clients := Clients{FileServer: fs.Namespace + "/" + fs.Name, Clients: []Client{}, Hidden: w.Hidden}
	byAddress := map[string]*Client{}
	at := func(address, node string) *Client {
		key := cmp.Or(address, "node "+node)
		if byAddress[key] == nil {
			byAddress[key] = &Client{Address: address, Node: node, Servers: map[string]int{}}
		}
		return byAddress[key]
	}
	unanswered := map[string]bool{}
	namespaceUnanswered := false
	for _, a := range answers {
		clients.More += a.More
		if a.Connections == nil {
			clients.Unanswered = append(clients.Unanswered, Unanswered{a.Pod, a.Error})
			unanswered[a.Pod] = true
			namespaceUnanswered = namespaceUnanswered || a.NamespaceServers
		}
		for address, n := range a.Connections {
			if a.NamespaceServers {
				at(address, "").NamespaceServers += n
			} else {
				at(address, "").Servers[a.Pod] += n
			}
		}
	}
	for i := range w.Pods {
		pod := &w.Pods[i]
		addresses := hostAddresses(pod)
		for _, address := range addresses {
			if byAddress[address] != nil {
				byAddress[address].Node = pod.Spec.NodeName
			}
		}
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, share := range mounted(w, fs, pod) {
			// By which of the node's addresses it comes is for the cluster's Services to say.
			from := slices.IndexFunc(addresses, func(address string) bool { return byAddress[address] != nil })
			c := at(addresses[max(from, 0)], pod.Spec.NodeName)
			c.Node = pod.Spec.NodeName
			c.Pods = append(c.Pods, PodMount{pod.Namespace, pod.Name, share})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byAddress)) {
		c := byAddress[key]
		slices.SortFunc(c.Pods, func(a, b PodMount) int {
			return cmp.Or(cmp.Compare(a.Share, b.Share), cmp.Compare(a.Namespace, b.Namespace), placement.CompareNatural(a.Pod, b.Pod))
		})
		clients.Clients = append(clients.Clients, *c)
	}
	slices.SortStableFunc(clients.Clients, func(a, b Client) int {
		return cmp.Or(placement.CompareNatural(a.Node, b.Node), placement.CompareNatural(a.Address, b.Address))
	})
	if namespaceUnanswered {
		clients.LastReported = append(clients.LastReported, LastReported{"namespace servers", connectionsOf(fs.Status.NamespaceServers.Connections)})
	}
	for _, s := range fs.Status.Servers {
		if unanswered[s.Name] {
			clients.LastReported = append(clients.LastReported, LastReported{s.Name, connectionsOf(s.Connections)})
		}
	}
	return clients
}

// hostAddresses are those of a pod's node, Kubernetes' own first; "" if none is known.
func hostAddresses(pod *corev1.Pod) []string {
	addresses := []string{pod.Status.HostIP}
	for _, host := range pod.Status.HostIPs {
		if host.IP != pod.Status.HostIP {
			addresses = append(addresses, host.IP)
		}
	}
	return addresses
}

// mounted are the shares of a FileServer that a pod mounts, by a share's claim or by an NFS volume in the pod's own spec.
func mounted(w *World, fs *v1alpha1.FileServer, pod *corev1.Pod) (shares []string) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		for _, share := range w.sharesOf(fs.Namespace, fs.Name) {
			claim := v1alpha1.ClaimReference{Namespace: share.Namespace, Name: share.Status.Mount.ClaimName}
			if naming.IsProvisioned(share) {
				claim = share.Spec.ClaimRef
			}
			byClaim := v.PersistentVolumeClaim != nil && claim == v1alpha1.ClaimReference{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}
			byAddress := v.NFS != nil && fs.Status.Address != "" && v.NFS.Server == fs.Status.Address &&
				(v.NFS.Path == share.Spec.Path || strings.HasPrefix(v.NFS.Path, share.Spec.Path+"/"))
			if byClaim || byAddress {
				shares = append(shares, share.Name)
			}
		}
	}
	return shares
}

func sharesOfPods(pods []PodMount) (shares []string) {
	for _, p := range pods {
		if !slices.Contains(shares, p.Share) {
			shares = append(shares, p.Share)
		}
	}
	return shares
}

// Text is the model as text.
func (c Clients) Text(page text.Page) string {
	var b strings.Builder
	total, toNamespace := 0, 0
	rows := [][]text.Span{}
	for _, client := range c.Clients {
		var servers, pods []string
		for _, name := range slices.SortedFunc(maps.Keys(client.Servers), placement.CompareNatural) {
			servers = append(servers, fmt.Sprintf("%s %d", name, client.Servers[name]))
			total += client.Servers[name]
		}
		toNamespace += client.NamespaceServers
		for _, share := range sharesOfPods(client.Pods) {
			of := slices.DeleteFunc(slices.Clone(client.Pods), func(p PodMount) bool { return p.Share != share })
			if len(of) == 1 {
				pods = append(pods, share+": "+of[0].Namespace+"/"+of[0].Pod)
			} else {
				pods = append(pods, share+": "+plural(len(of), "pod"))
			}
		}
		atNamespace, atServers := fmt.Sprint(client.NamespaceServers), cmp.Or(strings.Join(servers, ", "), "-")
		if len(c.Unanswered) > 0 {
			atNamespace, atServers = cmp.Or(strings.TrimPrefix(atNamespace, "0"), "?"), cmp.Or(strings.TrimPrefix(atServers, "-"), "?")
		}
		rows = append(rows, row(cmp.Or(client.Address, "?"), cmp.Or(client.Node, "-"), atNamespace, atServers, cmp.Or(strings.Join(pods, ", "), "-")))
	}
	head := append([]text.Span{text.S(text.Strong, "FileServer "+c.FileServer)}, some(plural(len(c.Clients), "client"))...)
	if len(c.Unanswered) == 0 { // Else the sums would be too low.
		head = append(head, some(plural(toNamespace, "connection")+" to namespace servers", plural(total, "connection")+" to data servers")...)
	}
	b.WriteString(page.Paragraph("", "  ", head...))
	if len(rows) > 0 {
		b.WriteString("\n" + page.Table([]string{"ADDRESS", "NODE", "NAMESPACE SERVERS", "DATA SERVERS", "PODS"}, rows))
	}
	if c.More > 0 {
		b.WriteString(page.Paragraph("", "  ", text.S(text.Faint, fmt.Sprintf("and %s with fewer connections, which the servers did not list", plural(c.More, "address")))))
	}
	if len(c.Unanswered) > 0 {
		byMessage := map[string][]string{}
		for _, s := range c.Unanswered {
			byMessage[s.Message] = append(byMessage[s.Message], s.Pod)
		}
		b.WriteByte('\n')
		for _, message := range slices.Sorted(maps.Keys(byMessage)) {
			b.WriteString(page.Paragraph("Could not ask: ", "  ", text.S(text.Busy, strings.Join(byMessage[message], ", ")+": "+message)))
		}
		for _, t := range c.LastReported {
			if t.Connections != nil {
				b.WriteString(page.Paragraph("  ", "    ", text.S(text.Plain, "The status of the FileServer reports "+t.Connections.words()+" of "+t.Server)))
			}
		}
	}
	b.WriteString(hiddenText(page, c.Hidden))
	return b.String()
}
