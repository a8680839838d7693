package dataserver

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/realtest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// subnet are the addresses of a /64: those of one machine, of a node, and of a machine that is found to be one.
type subnet struct {
	s       *dataServer
	machine []string
	// opened are the machine's connections.
	opened     []net.Conn
	node, late string
}

// networksAreOneClient: a machine outside of the cluster uses one address of its /64 after the other. It has what one client may have. Nodes of the
// same /64 are clients of their own, and one that is found to be a node later keeps what it has.
func networksAreOneClient(t *testing.T) {
	const connections = 256
	address := func(i int) string { return fmt.Sprintf("%s%x", realtest.SubnetIPv6, i) }
	n := &subnet{s: boot(t, "subnet", 1), node: address(7), late: address(8)}
	for i := range realtest.SubnetAddresses - 2 {
		n.machine = append(n.machine, address(i+1))
	}
	n.s.apply(func(want *dataservertest.Wanted) {
		want.LeaseSeconds, want.GraceSeconds, want.MaxConnections = 60, 60, connections
		want.NodeNetworks = []string{n.node + "/128"}
		want.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("alpha", v1alpha1.AccessRule{Clients: []string{"10.99.0.0/16", realtest.SubnetIPv6 + "/64"}}),
		}
	})
	n.s.settle()
	limits := ganesha.LimitsFor(n.s.memoryLimit).WithConnections(connections)
	others := n.s.watch(clientAddress, "/alpha/0")
	node, late := wireFrom(t, "a node", n.node), wireFrom(t, "found to be a node", n.late)
	ofLate := n.connect(n.late, 20)
	// goesOn also uses the connections: one that was unused for 10 s gives way to another one of the same client.
	goesOn := func(when string) {
		t.Helper()
		mustBe(t, when+": the node", node.Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)
		mustBe(t, when+": the machine that is found to be one", late.Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)
		for _, connection := range ofLate {
			mustWork(t, "set a deadline", connection.SetDeadline(time.Now().Add(timeout)))
			_, err := connection.Write(nullCall())
			mustWork(t, when+": a call of the machine that is found to be a node", err)
			mustAnswerNull(t, when, connection)
		}
	}
	goesOn("at first")
	others.noticedNothing("the beginning")

	made := 1 // The machine that is found to be a node has one.
	for _, address := range n.machine {
		made += n.login("client", nextClient(t, address), int(limits.ClientsPerAddress))
	}
	t.Logf("FIGURE client IDs of %d addresses of one /64: %d; one address may have %d, a network %d, all %d", len(n.machine), made,
		limits.ClientsPerAddress, limits.ClientsPerNetwork, limits.Clients)
	if made != int(limits.ClientsPerNetwork) {
		t.Errorf("one /64 has %d client IDs, not %d", made, limits.ClientsPerNetwork)
	}
	goesOn("when the machine has all client IDs that it may have")
	n.fill("", limits, len(ofLate)+1)
	goesOn("when the machine has all connections that it may have")
	others.noticedNothing("a machine with all addresses of its /64")

	n.s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = []string{n.node + "/128", n.late + "/128"} })
	n.s.settle()
	goesOn("when another node is known")
	// What it has does not count for the machine any more: the machine may have as much, and no more.
	last := nextClient(t, n.machine[0])
	if made := n.login("later", last, 8); made != 1 {
		t.Errorf("the /64 has room for %d client IDs when one of its addresses, with 1, is a node's", made)
	}
	goesOn("when the machine has more client IDs")
	n.fill("without what is found to be a node, ", limits, 0)
	mustBe(t, "the machine's last client", last.Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)
	goesOn("when the machine has more connections")
	if made := n.login("many", nextClient(t, n.late), 20); made != 20 {
		t.Errorf("the node that is found later made %d clients of 20", made)
	}
	for _, connection := range n.connect(n.late, 30) {
		if isEnded(connection, 20*time.Millisecond) {
			t.Error("a further connection of it was ended")
		}
	}

	n.s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = []string{n.node + "/128"} })
	n.s.settle()
	goesOn("when that node is unknown again")
	if made := n.login("no more", last, 4); made != 0 {
		t.Errorf("the /64 has room for %d client IDs", made)
	}
	others.noticedNothing("a network of nodes")

	// Only its connections end who is let in no more, whatever is counted together with it.
	n.s.apply(func(want *dataservertest.Wanted) {
		want.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("alpha", v1alpha1.AccessRule{Clients: []string{"10.99.0.0/16", realtest.SubnetIPv6 + "/125"}}),
		}
	})
	n.s.settle()
	mustBe(t, "the machine's last client, when another address of its /64 is let in no more", last.Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)
	mustBe(t, "the node", node.Run(user, lookUp("alpha")...), nfsv4.NFS4_OK)
	for _, connection := range append(ofLate, late.connection) {
		if !isEnded(connection, 5*time.Second) {
			t.Fatalf("a connection of %s is open, which is let in no more", n.late)
		}
	}
	others.noticedNothing("an address of a network that is let in no more")
}

// login makes as many clients as there may be, over one connection, and counts them. All have a session that is connected, so none gives way.
func (n *subnet) login(name string, w *wire, count int) (made int) {
	n.s.t.Helper()
	n.opened = append(n.opened, w.connection)
	for i := range count {
		status := w.identify(fmt.Sprintf("%s of %s %d", name, w.connection.LocalAddr(), i), [8]byte{})
		if status == nfsv4.NFS4_OK {
			status = w.createSession()
		}
		switch status {
		case nfsv4.NFS4_OK:
			made++
		case nfsv4.NFS4ERR_DELAY:
			return made
		default:
			n.s.t.Fatalf("client %d of %s: %s", i, w.connection.LocalAddr(), client.StatusName(status))
		}
	}
	return made
}

// fill makes connections from all addresses of the machine, and looks how many there are with others of the /64.
func (n *subnet) fill(what string, limits ganesha.Limits, others int) {
	n.s.t.Helper()
	for _, address := range n.machine {
		n.opened = append(n.opened, n.connect(address, int(limits.ConnectionsPerAddress))...)
	}
	have := others + openAtMost(n.opened, int(limits.ConnectionsPerNetwork)-others)
	n.s.t.Logf("FIGURE %sconnections of one /64: %d; one address may have %d, a network %d, all %d", what, have,
		limits.ConnectionsPerAddress, limits.ConnectionsPerNetwork, limits.Connections)
	if have != int(limits.ConnectionsPerNetwork) {
		n.s.t.Errorf("%sone /64 has %d connections, not %d", what, have, limits.ConnectionsPerNetwork)
	}
}

func (n *subnet) connect(address string, count int) (connections []net.Conn) {
	n.s.t.Helper()
	for range count {
		connections = append(connections, connectFrom(n.s.t, address))
	}
	return connections
}

// openAtMost counts the connections that the server has not ended. On a busy machine it ends one some time after the client made it, so this waits
// until there are no more than some.
func openAtMost(connections []net.Conn, most int) (count int) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		count = 0
		for _, connection := range connections {
			if !isEnded(connection, time.Millisecond) {
				count++
			}
		}
		if count <= most || time.Now().After(deadline) {
			return count
		}
	}
}
