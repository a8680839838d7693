package dataserver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
)

// nodePoll is how often a data server looks whether its node has what it needs.
const nodePoll = time.Second

type reporting = func(context.Context, func(internalv1.DataServerStatus) internalv1.DataServerStatus) error

// awaitPorts returns true as soon as this process can have its ports on the node's network, and reports meanwhile why it can't.
// It returns false if the context ends before. The scheduler knows the ports of pods, and not those of the node's own programs.
func awaitPorts(ctx context.Context, options Options, report reporting) bool {
	return awaitNode(ctx, options, report, internalv1.ReasonPortTaken, func() error { return portTaken(ctx, options) })
}

// awaitNode returns true as soon as there is no fault, and reports the fault meanwhile. It returns false if the context ends before.
func awaitNode(ctx context.Context, options Options, report reporting, reason string, find func() error) bool {
	for {
		fault := find()
		if fault == nil {
			return true
		}
		options.Log.Error("the node lacks what this data server needs", "reason", reason, "err", fault)
		err := report(ctx, func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
			return kubeapi.StatusFrom(status, kubeapi.Observation{
				NodeName: options.NodeName, PodIP: options.PodIP, PodUID: options.PodUID, FirstPort: options.FirstPort,
				Reason: reason, Message: fault.Error(),
			}, metav1.Now())
		})
		if err != nil {
			options.Log.Warn("can't report it", "err", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(nodePoll):
		}
	}
}

// portTaken is an error if one of the ports on the node's network can't be used.
func portTaken(ctx context.Context, options Options) error {
	if options.FirstPort == 0 {
		return nil
	}
	for port := options.FirstPort; port < options.FirstPort+v1alpha1.HostNetworkPorts; port++ {
		var configured net.ListenConfig
		listener, err := configured.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
		if err != nil {
			return fmt.Errorf("port %d of node %s can't be used: %w", port, options.NodeName, err)
		}
		_ = listener.Close()
	}
	return nil
}
