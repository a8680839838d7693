package dataserver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/nodeaddress"
)

// node has addresses, or can't be asked for them.
type node struct {
	mutex sync.Mutex
	all   []nodeaddress.Address
	fault error
}

func (n *node) has(fault error, all ...nodeaddress.Address) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.all, n.fault = all, fault
}

// onANode is what a data server knows of the addresses of a node.
func onANode(node *node) *nodeAddresses {
	n := newNodeAddresses(Options{NodeName: "node-a", PodUID: "uid-1", AddressesIn: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}, Log: quiet})
	n.read = func() ([]nodeaddress.Address, error) {
		node.mutex.Lock()
		defer node.mutex.Unlock()
		return node.all, node.fault
	}
	return n
}

// The addresses of node-a.
var (
	management  = nodeaddress.Address{Prefix: netip.MustParsePrefix("192.168.7.11/24"), Interface: "eth0", Up: true, Running: true}
	fast        = nodeaddress.Address{Prefix: netip.MustParsePrefix("10.20.0.11/16"), Interface: "eth1", Up: true, Running: true}
	switchedOff = nodeaddress.Address{Prefix: fast.Prefix, Interface: "eth1"}
)

func TestADataServerWaitsForItsNodesAddressAndSaysWhereItIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var node node
		node.has(nil, management)
		n := onANode(&node)
		var status internalv1.DataServerStatus
		report := func(_ context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
			status = build(status)
			return nil
		}
		done := make(chan bool, 2)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- n.await(ctx, report) }()
		says := func(want string) {
			t.Helper()
			time.Sleep(2 * nodePoll)
			synctest.Wait()
			ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != internalv1.ReasonNodeAddressMissing || ready.Message != want || status.PodUID != "uid-1" || len(status.NetworkAddresses) > 0 {
				t.Errorf("%+v, want %s", status, want)
			}
		}
		says("node node-a has no address in 10.20.0.0/16")
		node.has(nil, management, switchedOff)
		says("node node-a has no address in 10.20.0.0/16 that can be used: its interface eth1, which has 10.20.0.11, is switched off")
		node.has(errors.New("no buffer space available"))
		says("the addresses of node node-a can't be read: no buffer space available")
		cancel()
		if <-done {
			t.Error("it went on without the address")
		}
		node.has(nil, management, fast)
		if !n.await(t.Context(), report) {
			t.Error("it did not go on")
		}
		if addresses, missing := n.known(); !slices.Equal(addresses, []string{"10.20.0.11"}) || missing != "" {
			t.Errorf("%v, %q", addresses, missing)
		}
	})
}

func TestADataServerNoticesThatItsNodeHasLostTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var node node
		node.has(nil, management, fast)
		n, changes := onANode(&node), 0
		n.look()
		ctx, cancel := context.WithCancel(t.Context())
		go n.watch(ctx, func() { changes++ })
		knows := func(want []string, missing string, wantChanges int) {
			t.Helper()
			time.Sleep(2 * addressPoll)
			synctest.Wait()
			addresses, lacks := n.known()
			if !slices.Equal(addresses, want) || lacks != missing || changes != wantChanges {
				t.Errorf("%v, %q, after %d changes", addresses, lacks, changes)
			}
		}
		knows([]string{"10.20.0.11"}, "", 0)
		node.has(errors.New("no buffer space available"))
		knows([]string{"10.20.0.11"}, "", 0)
		node.has(nil, management)
		knows(nil, "node node-a has no address in 10.20.0.0/16", 1)
		node.has(nil, management, fast)
		knows([]string{"10.20.0.11"}, "", 2)
		cancel()
		synctest.Wait()
	})
}

func TestADataServerThatIsReachedAtItsPodWaitsForNoAddress(t *testing.T) {
	n := newNodeAddresses(Options{})
	n.watch(t.Context(), func() { t.Error("something has changed") })
	if addresses, missing := n.known(); !n.await(t.Context(), nil) || addresses != nil || missing != "" {
		t.Errorf("%v, %q", addresses, missing)
	}
}
