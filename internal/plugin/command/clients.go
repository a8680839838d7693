package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/internal/serverpod"
)

func newClients(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "clients [FILESERVER]",
		Short: "Who has mounted what, from where, with how many connections",
		Long: "Which addresses have how many connections to the namespace servers and the data servers, and which pods there have a share.\n" +
			"Only the servers know it: each of their pods is asked through the API server, which takes the right to get pods/proxy\n" +
			"in the FileServer's namespace (Kubernetes' role edit has it). Clients are nodes: pods mount with their node's address.\n" +
			"Pods that mount through claims or NFS volumes are found in the FileServer's namespace, and with -A everywhere.",
		Example: "  kubectl howdah clients\n" +
			"  kubectl howdah clients training -o json | jq '[.clients[].servers // {} | add] | add'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			ctx, w := command.Context(), o.world(namespace)
			if err := c.Read(ctx, w, namespace, view.ResourceFileServers, view.ResourceFileShares, view.ResourcePods); err != nil {
				return err
			}
			if len(arguments) == 1 {
				of, err := parseObject(arguments[0])
				if err != nil {
					return err
				}
				w.FileServers = keep(w.FileServers, func(fs *fileServer) bool { return fs.Name == of.name })
			}
			if len(w.FileServers) == 0 {
				return fmt.Errorf("there is no such FileServer that you may see in %s; kubectl get fileservers -A lists all", cmpNamespace(namespace))
			}
			all := []view.Clients{}
			for i := range w.FileServers {
				all = append(all, view.NewClients(w, &w.FileServers[i], askServers(ctx, c, w, &w.FileServers[i])))
			}
			if o.output != "" && len(all) == 1 {
				return o.say(all[0], nil)
			}
			for i, clients := range all {
				if o.output != "" {
					return o.say(all, nil)
				}
				if i > 0 {
					fmt.Fprintln(o.out)
				}
				if err := o.say(clients, clients.Text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func cmpNamespace(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return "namespace " + namespace
}

// Bounds of asking pods: a node that is lost must not hold up the rest.
const (
	askAtOnce  = 8
	askTimeout = 10 * time.Second
)

// askServers asks each server of a FileServer for its clients.
func askServers(ctx context.Context, c *cluster.Cluster, w *view.World, fs *v1alpha1.FileServer) []view.Asked {
	var asked []view.Asked
	var names []string
	for i := range w.Pods {
		pod := &w.Pods[i]
		if pod.Namespace != fs.Namespace || pod.Labels[v1alpha1.FileServerLabel] != fs.Name {
			continue
		}
		component := pod.Labels[v1alpha1.ComponentLabel]
		if component != naming.ComponentDataServer && component != naming.ComponentNamespaceServer {
			continue
		}
		a := view.Asked{Pod: pod.Name, NamespaceServers: component == naming.ComponentNamespaceServer}
		if pod.Status.Phase != corev1.PodRunning {
			a.Error = "the pod does not run"
		}
		asked, names = append(asked, a), append(names, pod.Name)
	}
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for i := range asked {
		if asked[i].Error != "" {
			continue
		}
		group.Go(func() error {
			var answer serverpod.Clients
			if err := askPod(ctx, c, fs.Namespace, names[i], serverpod.ClientsPath, nil, askTimeout, &answer); err != nil {
				asked[i].Error = err.Error()
				return nil
			}
			asked[i].Connections, asked[i].More = map[string]int{}, answer.More
			for _, client := range answer.Clients {
				asked[i].Connections[client.Address] = client.Connections
			}
			return nil
		})
	}
	_ = group.Wait() // Each says for itself what went wrong.
	return asked
}

// whyNotAsked says what to do about a pod that could not be asked.
func whyNotAsked(ctx context.Context, err error, namespace string, patience time.Duration) string {
	switch {
	// The API server's own refusal, and not one of a proxy or of the pod behind it.
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), `resource "pods/proxy"`):
		return "you may not get pods/proxy in " + namespace + " (Kubernetes' role edit has it)"
	case ctx.Err() != nil:
		return fmt.Sprintf("no answer through the API server in %s: the node may be lost, or a NetworkPolicy keeps the API server from port %d", patience, v1alpha1.ManagerPort)
	case apierrors.IsNotFound(err):
		return "the server is of a release that does not tell this"
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return fmt.Sprintf("the API server does not reach port %d of the pod: %s", v1alpha1.ManagerPort, strings.TrimSpace(err.Error()))
	}
	return strings.TrimSpace(err.Error())
}
