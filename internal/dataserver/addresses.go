package dataserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/nodeaddress"
)

// addressPoll is how often a data server that serves looks whether its node's addresses are still there.
const addressPoll = 5 * time.Second

// nodeAddresses are the addresses of the node at which this data server is to be reached. nil: it is reached at the pod's.
type nodeAddresses struct {
	options Options
	// read is nodeaddress.Read; tests have others.
	read func() ([]nodeaddress.Address, error)

	mutex   sync.Mutex
	chosen  []netip.Addr
	missing string
}

func newNodeAddresses(options Options) *nodeAddresses {
	if len(options.AddressesIn) == 0 {
		return nil
	}
	return &nodeAddresses{options: options, read: nodeaddress.Read}
}

// known are the addresses of the last look, and what is missing; "" if nothing is.
func (n *nodeAddresses) known() (addresses []string, missing string) {
	if n == nil {
		return nil, ""
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, address := range n.chosen {
		addresses = append(addresses, address.String())
	}
	return addresses, n.missing
}

// look reads the node's addresses, and tells whether that changed what is known. What can't be read stays as it was.
func (n *nodeAddresses) look() (hasChanged bool) {
	all, err := n.read()
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if err != nil {
		n.options.Log.Error("can't read the addresses of the node", "err", err)
		if len(n.chosen) == 0 {
			n.missing = fmt.Sprintf("the addresses of node %s can't be read: %v", n.options.NodeName, err)
		}
		return false
	}
	chosen, lacking := nodeaddress.Choose(all, n.options.AddressesIn, n.chosen)
	missing := n.describe(all, lacking)
	hasChanged = missing != n.missing || !slices.Equal(chosen, n.chosen)
	n.chosen, n.missing = chosen, missing
	return hasChanged
}

// describe names the networks in which the node lacks an address, and what may be the reason.
func (n *nodeAddresses) describe(all []nodeaddress.Address, lacking []netip.Prefix) string {
	if len(lacking) == 0 {
		return ""
	}
	texts := make([]string, 0, len(lacking))
	for _, network := range lacking {
		texts = append(texts, network.String())
	}
	text := fmt.Sprintf("node %s has no address in %s", n.options.NodeName, strings.Join(texts, " or "))
	for _, address := range all {
		if !address.Up && slices.ContainsFunc(lacking, func(network netip.Prefix) bool { return network.Contains(address.Prefix.Addr()) }) {
			return fmt.Sprintf("%s that can be used: its interface %s, which has %s, is switched off", text, address.Interface, address.Prefix.Addr())
		}
	}
	return text
}

// await returns true as soon as the node has the addresses, and reports meanwhile which are missing. It returns false if the context ends before.
func (n *nodeAddresses) await(ctx context.Context, report reporting) bool {
	if n == nil {
		return true
	}
	return awaitNode(ctx, n.options, report, internalv1.ReasonNodeAddressMissing, func() error {
		n.look()
		if _, missing := n.known(); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// watch looks again and again until the context ends.
func (n *nodeAddresses) watch(ctx context.Context, changed func()) {
	if n == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(addressPoll):
		}
		if n.look() {
			addresses, missing := n.known()
			n.options.Log.Warn("the addresses of the node have changed", "addresses", addresses, "missing", missing)
			changed()
		}
	}
}
