package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// balancerClass is the loadBalancerClass of the balancer.
const balancerClass = "example.com/lab"

// balancer stands for a load balancer that gives each Service an address of the nodes' network, of each of the Service's families, as MetalLB and kube-vip do in layer 2:
// a node that has a ready endpoint of the Service answers for the address, and kube-proxy there does the rest. It goes by the
// endpoints' nodes, as they do. Where others tell the network (by ARP, or neighbour advertisements) that an address is at another node now, this one writes it into
// the machine outside. Status has an address some seconds before it is answered: whoever gives an address out and whoever announces it
// are two programs (MetalLB's controller and speakers).
type balancer struct {
	// pool has the addresses that are free.
	pool map[corev1.IPFamily][]string
	// held are Services that get no address yet.
	mu   sync.Mutex
	held map[string]bool
	// at has the node that answers for each address.
	at map[string]string
	// given has when each address got into a status.
	given map[string]time.Time
}

// announcedAfter is how long an address is in a status before it is answered. ARP gives up after three seconds.
const announcedAfter = 5 * time.Second

// startBalancer runs one until the spec ends. The Services named get no address before release.
func startBalancer(pool map[corev1.IPFamily][]string, held ...string) *balancer {
	b := &balancer{pool: pool, held: map[string]bool{}, at: map[string]string{}, given: map[string]time.Time{}}
	for _, name := range held {
		b.held[name] = true
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := b.round(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintf(GinkgoWriter, "load balancer: %v\n", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	DeferCleanup(func(ctx SpecContext) {
		cancel()
		<-done
		for address, node := range b.at {
			_, _ = tryOn(ctx, node, "ip addr del "+alone(address)+" dev vec0")
		}
	}, NodeTimeout(bound(time.Minute)))
	return b
}

// release lets a Service have its address.
func (b *balancer) release(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, name)
}

func (b *balancer) round(ctx context.Context) error {
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services, client.InNamespace(c.Namespace)); err != nil {
		return err
	}
	for i := range services.Items {
		service := &services.Items[i]
		b.mu.Lock()
		held := b.held[service.Name]
		b.mu.Unlock()
		if service.Spec.LoadBalancerClass == nil || *service.Spec.LoadBalancerClass != balancerClass || held {
			continue
		}
		if len(service.Status.LoadBalancer.Ingress) == 0 {
			before := service.DeepCopy()
			for _, family := range service.Spec.IPFamilies {
				address := b.pool[family][0]
				b.pool[family] = b.pool[family][1:]
				service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: address})
				b.given[address] = time.Now()
			}
			if err := c.Status().Patch(ctx, service, client.MergeFrom(before)); err != nil {
				return err
			}
		}
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if err := b.announce(ctx, service.Name, ingress.IP); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone is a network that has an address and no other.
func alone(address string) string {
	ip := netip.MustParseAddr(address)
	return netip.PrefixFrom(ip, ip.BitLen()).String()
}

// notSource keeps a node's own traffic from coming from an address: of several on a card, IPv6 may take any, and a deprecated one last.
// kube-vip does so, too; MetalLB puts no address on a card.
func notSource(address string) string {
	if netip.MustParseAddr(address).Is6() {
		return " preferred_lft 0"
	}
	return ""
}

// announce has a node with a ready endpoint answer for an address of a Service.
func (b *balancer) announce(ctx context.Context, service, address string) error {
	if time.Since(b.given[address]) < announcedAfter {
		return nil
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return err
	}
	var nodes []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			// Serving ones, too, as MetalLB has it: a waiting room must not count.
			if endpoint.NodeName != nil && (endpoint.Conditions.Serving == nil || *endpoint.Conditions.Serving) {
				nodes = append(nodes, *endpoint.NodeName)
			}
		}
	}
	slices.Sort(nodes)
	now := b.at[address]
	if len(nodes) == 0 || slices.Contains(nodes, now) {
		return nil
	}
	if now != "" {
		if output, err := tryOn(ctx, now, "ip addr del "+alone(address)+" dev vec0"); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
	}
	if output, err := tryOn(ctx, nodes[0], "ip addr replace "+alone(address)+" dev vec0"+notSource(address)); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	b.at[address] = nodes[0]
	hardware, err := tryOn(ctx, nodes[0], "cat /sys/class/net/vec0/address")
	if err != nil {
		return fmt.Errorf("%w: %s", err, hardware)
	}
	// As an announcement does: it also answers who asks just now.
	output, err := tryOn(ctx, outsideMachine, fmt.Sprintf("ip neigh replace %s lladdr %s dev vec0 nud stale", address, strings.TrimSpace(hardware)))
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// tryOn runs a script on a machine of the lab.
func tryOn(ctx context.Context, machine, script string) (string, error) {
	words := append(strings.Fields(nodeExec), machine, "--", "sh", "-c", script)
	output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	return string(output), err
}
