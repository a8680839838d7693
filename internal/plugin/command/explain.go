package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
)

func newExplain(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "explain OBJECT",
		Short: "Explain why an object is not Ready, and what to do",
		Long: "Explain why a FileServer, a FileShare, a snapshot or its schedule, an MLPerfStorageJob or a DataServer is not Ready, and what to do.\n" +
			"The output has the conditions of the object and of its parts, pods and claims with their events; the root cause is first.",
		Example: "  kubectl howdah explain fileshare/unet3d\n" +
			"  kubectl howdah explain training            # without the kind, if the name is unique\n" +
			"  kubectl howdah explain mlps/unet3d -n team-a -o yaml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers, view.ResourceFileShares, view.ResourceSnapshots, view.ResourceSchedules, view.ResourceJobs),
		RunE: func(command *cobra.Command, arguments []string) error {
			of, err := parseObject(arguments[0])
			if err != nil {
				return err
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			if err := one(namespace); err != nil {
				return err
			}
			e, err := explain(command.Context(), c, o.world(namespace), namespace, of)
			if err != nil {
				return err
			}
			if err := o.print(e, e.Text); err != nil {
				return err
			}
			if e.Health != view.Well {
				return answer(CodeNotWell)
			}
			return nil
		},
	}
}

func explain(ctx context.Context, c *cluster.Cluster, w *view.World, namespace string, of object) (e view.Explanation, err error) {
	if of.resource == "" {
		if of.resource, err = guess(ctx, c, namespace, of.name); err != nil {
			return e, err
		}
	}
	switch of.resource {
	case view.ResourceFileServers:
		var fs v1alpha1.FileServer
		if err := get(ctx, c, of.resource, namespace, of.name, &fs); err != nil {
			return e, err
		}
		if err := readServer(ctx, c, w, namespace, fs.Name); err != nil {
			return e, err
		}
		return view.ExplainFileServer(w, &fs), nil
	case view.ResourceFileShares:
		share, err := getShare(ctx, c, w, namespace, of.name)
		if err != nil {
			return e, err
		}
		if err := readAround(ctx, c, w, share); err != nil {
			return e, err
		}
		return view.ExplainFileShare(w, share), nil
	case view.ResourceSnapshots:
		return explainSnapshot(ctx, c, w, namespace, of.name)
	case view.ResourceSchedules:
		return explainSchedule(ctx, c, w, namespace, of.name)
	case view.ResourceJobs:
		return explainJob(ctx, c, w, namespace, of.name)
	}
	var server internalv1.DataServer
	if err := get(ctx, c, of.resource, namespace, of.name, &server); err != nil {
		return e, err
	}
	if err := readServer(ctx, c, w, namespace, server.Spec.FileServerRef.Name); err != nil {
		return e, err
	}
	return view.ExplainDataServer(w, &server), nil
}

func explainJob(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, name string) (e view.Explanation, err error) {
	var job v1alpha1.MLPerfStorageJob
	if err := get(ctx, c, view.ResourceJobs, namespace, name, &job); err != nil {
		return e, err
	}
	if err := c.Read(ctx, w, namespace, view.ResourceFileShares); err != nil {
		return e, err
	}
	share := w.FileShare(namespace, job.Spec.FileShareRef.Name)
	if share != nil {
		if err := readAround(ctx, c, w, share); err != nil {
			return e, err
		}
	}
	if share == nil || naming.ServerNamespace(share) != namespace {
		if err := c.Read(ctx, w, namespace, view.ResourceEvents); err != nil {
			return e, err
		}
	}
	if err := c.ReadOnly(ctx, w, namespace, v1alpha1.JobLabel+"="+name, view.ResourcePods); err != nil {
		return e, err
	}
	return view.ExplainJob(w, &job), nil
}

// readAround reads a share's FileServer and what explains it, and the events of the share's namespace.
func readAround(ctx context.Context, c *cluster.Cluster, w *view.World, share *v1alpha1.FileShare) error {
	if _, err := getFileServerOf(ctx, c, w, share); err != nil {
		return err
	}
	namespace := naming.ServerNamespace(share)
	if err := readServer(ctx, c, w, namespace, share.Spec.FileServerRef.Name); err != nil {
		return err
	}
	if err := c.ReadOnly(ctx, w, namespace, shareSelector(share), view.ResourceShareExports, view.ResourceShareDirectories); err != nil {
		return err
	}
	if namespace != share.Namespace {
		return c.Read(ctx, w, share.Namespace, view.ResourceEvents)
	}
	return nil
}

// shareSelector chooses what belongs to a share, in its FileServer's namespace.
func shareSelector(share *v1alpha1.FileShare) string {
	labels := naming.ShareLabels(naming.ServerNamespace(share), share.Spec.FileServerRef.Name, naming.KeyOf(share))
	var terms []string
	for key, value := range labels {
		terms = append(terms, key+"="+value)
	}
	slices.Sort(terms)
	return strings.Join(terms, ",")
}

// readServer reads what explains a FileServer.
func readServer(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, name string) error {
	err := c.ReadOnly(ctx, w, namespace, fileServerSelector(name), view.ResourceDataServers, view.ResourcePods, view.ResourceClaims)
	if err != nil {
		return err
	}
	return c.Read(ctx, w, namespace, view.ResourceEvents)
}

// guess finds the kind of an object by its name.
func guess(ctx context.Context, c *cluster.Cluster, namespace, name string) (string, error) {
	w := &view.World{}
	if err := c.Read(ctx, w, namespace, view.ResourceFileServers, view.ResourceFileShares, view.ResourceSnapshots, view.ResourceSchedules, view.ResourceJobs, view.ResourceDataServers); err != nil {
		return "", err
	}
	var found, names []string
	if w.FileServer(namespace, name) != nil {
		found, names = append(found, view.ResourceFileServers), append(names, "fileserver/"+name)
	}
	if w.FileShare(namespace, name) != nil {
		found, names = append(found, view.ResourceFileShares), append(names, "fileshare/"+name)
	}
	for i := range w.Snapshots {
		if w.Snapshots[i].Name == name {
			found, names = append(found, view.ResourceSnapshots), append(names, "filesharesnapshot/"+name)
		}
	}
	for i := range w.Schedules {
		if w.Schedules[i].Name == name {
			found, names = append(found, view.ResourceSchedules), append(names, "filesharesnapshotschedule/"+name)
		}
	}
	for i := range w.Jobs {
		if w.Jobs[i].Name == name {
			found, names = append(found, view.ResourceJobs), append(names, "mlperfstoragejob/"+name)
		}
	}
	for i := range w.DataServers {
		if w.DataServers[i].Name == name {
			found, names = append(found, view.ResourceDataServers), append(names, "dataserver/"+name)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		unread := ""
		if len(w.Hidden) > 0 {
			unread = " that you may read"
		}
		return "", fmt.Errorf("namespace %[2]s has no FileServer, FileShare, snapshot, schedule, MLPerfStorageJob or DataServer %[1]q%[3]s; to list all: kubectl get nfs -A", name, namespace, unread)
	}
	return "", usageError("several objects have that name: write %s", strings.Join(names, " or "))
}
