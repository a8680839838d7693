package dataserver

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// nodesAreLetIn: the word Nodes in a rule stands for the DataServer's list. Nodes that come are let in, nodes that go are not, and what
// changes nothing for ganesha is no reload.
func nodesAreLetIn(t *testing.T) {
	nodes := v1alpha1.AccessRule{Clients: []string{v1alpha1.ClientNodes}}
	gatewaysOf["nodes"] = []netip.Addr{netip.MustParseAddr("10.98.0.1")}
	s := boot(t, "nodes", 1)
	s.apply(func(want *dataservertest.Wanted) {
		want.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("default", nodes),
			dataservertest.ShareSpec("reader", v1alpha1.AccessRule{Clients: []string{v1alpha1.ClientNodes, "10.99.0.9"}, AccessType: v1alpha1.AccessReadOnly},
				v1alpha1.AccessRule{Clients: []string{"0.0.0.0/0"}}),
			dataservertest.ShareSpec("reserved", v1alpha1.AccessRule{Clients: []string{v1alpha1.ClientNodes}, SourcePorts: v1alpha1.SourcePortsReserved}),
			dataservertest.ShareSpec("everybody", v1alpha1.AccessRule{Clients: []string{"0.0.0.0/0"}}),
		}
	})
	s.settle()
	one, two := s.from("10.99.0.1"), s.from("10.99.0.2")
	for _, c := range []struct {
		from string
		path string
		want nfsv4.Nfsstat4
	}{{"10.99.0.1", "/default/0", nfsv4.NFS4ERR_NOENT}, {"10.99.0.1", "/everybody/0", nfsv4.NFS4_OK}, {"10.99.0.1", "/reader/0", nfsv4.NFS4ERR_NOENT}} {
		_, err := one.Stat(t.Context(), user, c.path)
		mustAnswer(t, "before any node is known, "+c.path, err, c.want)
	}

	_, err := s.from("10.98.0.1").Stat(t.Context(), user, "/default/0")
	mustWork(t, "the pod's own node, before any other is known", err)

	before := s.reloads()
	s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = []string{"10.99.0.1/32", "fd00:7::1/128"} })
	s.settle()
	if got := s.reloads() - before; got != 1 {
		t.Errorf("%d reloads for the first nodes", got)
	}
	_, err = one.Stat(t.Context(), user, "/default/0")
	mustWork(t, "a node", err)
	_, err = one.Stat(t.Context(), root, "/default/0")
	mustWork(t, "a node's root", err)
	_, err = two.Stat(t.Context(), user, "/default/0")
	mustFailWith(t, "another address", err, nfsv4.NFS4ERR_NOENT)
	_, err = two.Stat(t.Context(), user, "/everybody/0")
	mustWork(t, "another address where everybody is let in", err)
	_, err = two.Stat(t.Context(), user, "/reader/0")
	mustWork(t, "another address, by the next rule", err)
	_, err = one.Stat(t.Context(), user, "/reserved/0")
	mustFailWith(t, "a node's program that takes no reserved port, where these are asked for", err, nfsv4.NFS4ERR_NOENT)
	_, err = s.fromReservedPort("10.99.0.1").Stat(t.Context(), user, "/reserved/0")
	mustWork(t, "a node's kernel there", err)

	// From the list that all such shares have in common to rules of its own, and back.
	s.apply(func(want *dataservertest.Wanted) {
		want.Exports = slices.Clone(want.Exports)
		want.Exports[0].Access = []v1alpha1.AccessRule{{Clients: []string{"10.99.0.2"}}}
	})
	s.settle()
	_, err = one.Stat(t.Context(), user, "/default/0")
	mustFailWith(t, "a node where a rule names another address", err, nfsv4.NFS4ERR_NOENT)
	_, err = two.Stat(t.Context(), user, "/default/0")
	mustWork(t, "that address", err)
	s.apply(func(want *dataservertest.Wanted) {
		want.Exports = slices.Clone(want.Exports)
		want.Exports[0].Access = []v1alpha1.AccessRule{nodes}
	})
	s.settle()
	_, err = one.Stat(t.Context(), user, "/default/0")
	mustWork(t, "a node again", err)
	_, err = two.Stat(t.Context(), user, "/default/0")
	mustFailWith(t, "that address again", err, nfsv4.NFS4ERR_NOENT)
	names, err := two.ReadDir(t.Context(), user, "/")
	mustWork(t, "the tree above the exports, by an address that is no node's", err)
	if !slices.ContainsFunc(names, func(e client.DirEntry) bool { return e.Name == "everybody" }) {
		t.Errorf("there is %v", names)
	}

	before = s.reloads()
	began := time.Now()
	s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = []string{"10.99.0.0/30"} })
	s.await("a node that comes to be let in", func(dataservertest.Reported) bool {
		_, err := two.Stat(t.Context(), user, "/default/0")
		return err == nil
	})
	t.Logf("FIGURE from a DataServer with one node more to its first answer: %s", time.Since(began).Round(time.Millisecond))
	s.settle()
	s.apply(func(want *dataservertest.Wanted) { want.LeaseSeconds, want.NodeNetworks = 10, []string{"10.99.0.3/30"} })
	s.settle()
	if got := s.reloads() - before; got != 1 {
		t.Errorf("%d reloads for one node more and the same list in other words", got)
	}
	s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = []string{"10.99.0.2/32"} })
	s.settle()
	_, err = one.Stat(t.Context(), user, "/default/0")
	mustFailWith(t, "a node that is gone", err, nfsv4.NFS4ERR_NOENT)
	_, err = two.Stat(t.Context(), user, "/default/0")
	mustWork(t, "the one that stays", err)
	s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = nil })
	s.settle()
	_, err = two.Stat(t.Context(), user, "/default/0")
	mustFailWith(t, "the last that is gone", err, nfsv4.NFS4ERR_NOENT)

	manyNodes(t, s)
}

// addressTwice: the pod's own node is one of the cluster's nodes, and a user may name it again. Ganesha takes no export with one address twice.
func addressTwice(t *testing.T) {
	const node = "10.99.0.1"
	gatewaysOf["twice"] = []netip.Addr{netip.MustParseAddr(node)}
	s := boot(t, "twice", 1)
	s.apply(func(want *dataservertest.Wanted) {
		want.NodeNetworks = []string{node + "/32"}
		want.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("alpha", v1alpha1.AccessRule{Clients: []string{v1alpha1.ClientNodes, node, node + "/32", "10.98.0.1/24", "10.98.0.0/24"}},
				v1alpha1.AccessRule{Clients: []string{node}, AccessType: v1alpha1.AccessReadOnly}),
		}
	})
	s.settle()
	_, err := s.from(node).Stat(t.Context(), user, "/alpha/0")
	mustWork(t, "the node", err)
}

// manyNodes: a cluster of 100 nodes with two networks each, and 100 shares.
func manyNodes(t *testing.T, s *dataServer) {
	s.apply(func(want *dataservertest.Wanted) {
		for i := range 100 {
			want.Exports = append(want.Exports, dataservertest.ShareSpec(fmt.Sprintf("many-%d", i), v1alpha1.AccessRule{Clients: []string{v1alpha1.ClientNodes}}))
		}
		for i := range 100 {
			want.NodeNetworks = append(want.NodeNetworks, fmt.Sprintf("10.%d.%d.1/32", 100+i/250, i%250), fmt.Sprintf("10.%d.%d.0/31", 200+i/250, i%250))
		}
	})
	s.settle()
	began := time.Now()
	s.apply(func(want *dataservertest.Wanted) { want.NodeNetworks = append(want.NodeNetworks, "10.99.0.1/32") })
	s.settle()
	t.Logf("FIGURE a node more on 100, with 104 shares: %s", time.Since(began).Round(time.Millisecond))
	c := s.from("10.99.0.1")
	_, err := c.Stat(t.Context(), user, "/many-99/0")
	mustWork(t, "the node that came last", err)
	began = time.Now()
	for range 100 {
		if _, err = c.Stat(t.Context(), user, "/many-99/0"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FIGURE 100 looks by the last of 101 nodes: %s", time.Since(began).Round(time.Millisecond))
}

// mustAnswer is mustWork, or mustFailWith.
func mustAnswer(t *testing.T, what string, err error, want nfsv4.Nfsstat4) {
	t.Helper()
	if want == nfsv4.NFS4_OK {
		mustWork(t, what, err)
		return
	}
	mustFailWith(t, what, err, want)
}
