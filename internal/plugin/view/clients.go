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

// Clients are those of a FileServer.
type Clients struct {
	FileServer string   `json:"fileServer"`
	Clients    []Client `json:"clients"`
	// Silent are servers that could not be asked, with the reason.
	Silent []Silent `json:"silent,omitempty"`
	// More is how many addresses servers left out, because they have too many.
	More int `json:"more,omitempty"`
	// Told is what the FileServer's status has, for servers that could not be asked: how many connections, and not whose.
	Told   []Told   `json:"told,omitempty"`
	Hidden []Hidden `json:"hidden,omitempty"`
}

// Client is an address with connections, or a node with pods that have a share mounted.
type Client struct {
	// Address is the node's; of IPv6 its network of 64 bits.
	Address string `json:"address,omitempty"`
	Node    string `json:"node,omitempty"`
	// NamespaceServers and Servers are connections.
	NamespaceServers int            `json:"namespaceServers"`
	Servers          map[string]int `json:"servers,omitempty"`
	Pods             []PodMount     `json:"pods,omitempty"`
}

// PodMount is a pod that has a share.
type PodMount struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Share     string `json:"share"`
}

// Silent is a server that could not be asked.
type Silent struct {
	Pod     string `json:"pod"`
	Message string `json:"message"`
}

// Told is what a status says of a server.
type Told struct {
	Server      string       `json:"server"`
	Connections *Connections `json:"connections"`
}

// Asked is what a server's pod said.
type Asked struct {
	Pod string
	// NamespaceServers: it is a namespace server.
	NamespaceServers bool
	// Connections are those of each address; nil if it could not be asked: Error says why.
	Connections map[string]int
	More        int
	Error       string
}

// NewClients puts together who has connections to a FileServer, and which pods have its shares.
func NewClients(w *World, fs *v1alpha1.FileServer, asked []Asked) Clients {
	clients := Clients{FileServer: fs.Namespace + "/" + fs.Name, Clients: []Client{}, Hidden: w.Hidden}
	byAddress := map[string]*Client{}
	at := func(address, node string) *Client {
		key := cmp.Or(address, "node "+node)
		if byAddress[key] == nil {
			byAddress[key] = &Client{Address: address, Node: node, Servers: map[string]int{}}
		}
		return byAddress[key]
	}
	silent := map[string]bool{}
	door := false
	for _, a := range asked {
		clients.More += a.More
		if a.Connections == nil {
			clients.Silent = append(clients.Silent, Silent{a.Pod, a.Error})
			silent[a.Pod] = true
			door = door || a.NamespaceServers
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
		if pod.Status.HostIP != "" && byAddress[pod.Status.HostIP] != nil {
			byAddress[pod.Status.HostIP].Node = pod.Spec.NodeName
		}
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, share := range mounted(w, fs, pod) {
			c := at(pod.Status.HostIP, pod.Spec.NodeName)
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
	if door {
		clients.Told = append(clients.Told, Told{"front door", connectionsOf(fs.Status.NamespaceServers.Connections)})
	}
	for _, s := range fs.Status.Servers {
		if silent[s.Name] {
			clients.Told = append(clients.Told, Told{s.Name, connectionsOf(s.Connections)})
		}
	}
	return clients
}

// mounted are the shares of a FileServer that a pod has by a claim of a share, or by an NFS volume of its own.
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

// Text tells it.
func (c Clients) Text(page text.Page) string {
	var b strings.Builder
	total, door := 0, 0
	rows := [][]text.Span{}
	for _, client := range c.Clients {
		var servers, pods []string
		for _, name := range slices.SortedFunc(maps.Keys(client.Servers), placement.CompareNatural) {
			servers = append(servers, fmt.Sprintf("%s %d", name, client.Servers[name]))
			total += client.Servers[name]
		}
		door += client.NamespaceServers
		for _, share := range sharesOfPods(client.Pods) {
			of := slices.DeleteFunc(slices.Clone(client.Pods), func(p PodMount) bool { return p.Share != share })
			if len(of) == 1 {
				pods = append(pods, share+": "+of[0].Namespace+"/"+of[0].Pod)
			} else {
				pods = append(pods, share+": "+plural(len(of), "pod"))
			}
		}
		atDoor, atServers := fmt.Sprint(client.NamespaceServers), cmp.Or(strings.Join(servers, ", "), "-")
		if len(c.Silent) > 0 {
			atDoor, atServers = cmp.Or(strings.TrimPrefix(atDoor, "0"), "?"), cmp.Or(strings.TrimPrefix(atServers, "-"), "?")
		}
		rows = append(rows, row(cmp.Or(client.Address, "?"), cmp.Or(client.Node, "-"), atDoor, atServers, cmp.Or(strings.Join(pods, ", "), "-")))
	}
	head := append([]text.Span{text.S(text.Strong, "FileServer "+c.FileServer)}, some(plural(len(c.Clients), "client"))...)
	if len(c.Silent) == 0 { // Else there are more, and nobody knows how many.
		head = append(head, some(plural(door, "connection")+" to the front door", plural(total, "connection")+" to data servers")...)
	}
	b.WriteString(page.Paragraph("", "  ", head...))
	if len(rows) > 0 {
		b.WriteString("\n" + page.Table([]string{"ADDRESS", "NODE", "FRONT DOOR", "DATA SERVERS", "PODS"}, rows))
	}
	if c.More > 0 {
		b.WriteString(page.Paragraph("", "  ", text.S(text.Faint, fmt.Sprintf("and %s with fewer connections that servers did not list", plural(c.More, "address")))))
	}
	if len(c.Silent) > 0 {
		said := map[string][]string{}
		for _, s := range c.Silent {
			said[s.Message] = append(said[s.Message], s.Pod)
		}
		b.WriteByte('\n')
		for _, message := range slices.Sorted(maps.Keys(said)) {
			b.WriteString(page.Paragraph("Not asked: ", "  ", text.S(text.Busy, strings.Join(said[message], ", ")+": "+message)))
		}
		for _, t := range c.Told {
			if t.Connections != nil {
				b.WriteString(page.Paragraph("  ", "    ", text.S(text.Plain, t.Server+" has "+t.Connections.words()+" by its FileServer's status")))
			}
		}
	}
	b.WriteString(hiddenText(page, c.Hidden))
	return b.String()
}
