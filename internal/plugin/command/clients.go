package command

import (
	"context"
	"errors"
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
		Short: "List clients with their connections and the pods that mount shares",
		Long: "List the addresses that have connections to namespace servers and data servers, and the pods there that mount a share.\n" +
			"The command asks each server's pod through the API server. That needs the right to get pods/proxy in the FileServer's namespace\n" +
			"(Kubernetes' role edit has it). Pods mount with their node's address, so a client is a node. The command finds pods that mount\n" +
			"through claims or NFS volumes in the FileServer's namespace; with -A, in all namespaces.",
		Example: "  kubectl howdah clients\n" +
			"  kubectl howdah clients training -o json | jq '[.clients[].servers // {} | add] | add'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			ctx := command.Context()
			c, w, err := o.readFileServers(ctx, "clients", arguments, view.ResourceFileShares, view.ResourcePods)
			if err != nil {
				return err
			}
			all := []view.Clients{}
			for i := range w.FileServers {
				all = append(all, view.NewClients(w, &w.FileServers[i], askServers(ctx, c, w, &w.FileServers[i])))
			}
			if o.output != "" && len(all) == 1 {
				return o.print(all[0], nil)
			}
			for i, clients := range all {
				if o.output != "" {
					return o.print(all, nil)
				}
				if i > 0 {
					fmt.Fprintln(o.out)
				}
				if err := o.print(clients, clients.Text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// readFileServers reads FileServers, with further kinds of objects: the one that the arguments name, or all. None is an error; what is the command.
func (o *options) readFileServers(ctx context.Context, what string, arguments []string, more ...string) (*cluster.Cluster, *view.World, error) {
	c, namespace, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	w := o.world(namespace)
	if len(arguments) == 1 {
		if err := o.readNamed(ctx, c, w, namespace, arguments[0]); err != nil {
			return nil, nil, err
		}
	} else if err := c.Read(ctx, w, namespace, view.ResourceFileServers); err != nil {
		return nil, nil, err
	}
	if len(w.FileServers) == 0 {
		return nil, nil, noFileServer(w, what)
	}
	return c, w, c.Read(ctx, w, namespace, more...)
}

// readNamed reads the FileServer that an argument names.
func (o *options) readNamed(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, argument string) error {
	of, err := parseObject(argument)
	if err != nil {
		return err
	}
	if of.resource != "" && of.resource != view.ResourceFileServers {
		return usageError("%q is not a FileServer", argument)
	}
	if err := one(namespace); err != nil {
		return err
	}
	w.FileServers = make([]fileServer, 1)
	return get(ctx, c, view.ResourceFileServers, namespace, of.name, &w.FileServers[0])
}

func cmpNamespace(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return "namespace " + namespace
}

// noFileServer is the error of a command that found none, with what to do.
func noFileServer(w *view.World, what string) error {
	switch where := "in namespace " + w.Namespace; {
	case w.Namespace != "" && w.IsHidden(view.ResourceFileServers, w.Namespace):
		return fmt.Errorf("you may not list %s %s: ask for Kubernetes' role view there", view.ResourceFileServers, where)
	case w.IsHidden(view.ResourceFileServers, w.Namespace):
		return fmt.Errorf("you may not list %s in all namespaces: name one with -n", view.ResourceFileServers)
	case w.Namespace == "":
		return errors.New("there is no FileServer in this cluster")
	default:
		return fmt.Errorf("there is no FileServer %s; those of other namespaces: kubectl howdah %s -A", where, what)
	}
}

// Limits of asking pods: a lost node must not delay the others.
const (
	askAtOnce  = 8
	askTimeout = 10 * time.Second
)

// askServers asks each server of a FileServer for its clients.
func askServers(ctx context.Context, c *cluster.Cluster, w *view.World, fs *v1alpha1.FileServer) []view.PodAnswer {
	var answers []view.PodAnswer
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
		a := view.PodAnswer{Pod: pod.Name, NamespaceServers: component == naming.ComponentNamespaceServer}
		if pod.Status.Phase != corev1.PodRunning {
			a.Error = "the pod is not running"
		}
		answers, names = append(answers, a), append(names, pod.Name)
	}
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for i := range answers {
		if answers[i].Error != "" {
			continue
		}
		group.Go(func() error {
			var answer serverpod.Clients
			if err := askPod(ctx, c, fs.Namespace, names[i], serverpod.ClientsPath, nil, askTimeout, &answer); err != nil {
				answers[i].Error = err.Error()
				return nil
			}
			answers[i].Connections, answers[i].More = map[string]int{}, answer.More
			for _, client := range answer.Clients {
				answers[i].Connections[client.Address] = client.Connections
			}
			return nil
		})
	}
	_ = group.Wait() // Each answer has its own error.
	return answers
}

// whyNotAsked is why a pod could not be asked, with what to do.
func whyNotAsked(ctx context.Context, err error, namespace string, port int32, timeout time.Duration) string {
	switch {
	// Refused by the API server itself, not by a proxy or the pod.
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), `resource "pods/proxy"`):
		return "you may not get pods/proxy in namespace " + namespace + "; ask for Kubernetes' role edit there"
	case ctx.Err() != nil:
		return fmt.Sprintf("no answer through the API server within %s: the node may be lost, or a NetworkPolicy blocks the API server from port %d", timeout, port)
	case apierrors.IsNotFound(err):
		return "the server is of an older release that does not report this; upgrade it"
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return fmt.Sprintf("the API server can't reach port %d of the pod: %s", port, strings.TrimSpace(err.Error()))
	}
	return strings.TrimSpace(err.Error())
}
