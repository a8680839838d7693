package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
)

type flag = pflag.Flag

// kinds are the resources of objects, by the names that users write.
var kinds = map[string]string{
	"fileserver": view.ResourceFileServers, "fileservers": view.ResourceFileServers, "fsrv": view.ResourceFileServers,
	"fileshare": view.ResourceFileShares, "fileshares": view.ResourceFileShares, "fshare": view.ResourceFileShares,
	"filesharesnapshot": view.ResourceSnapshots, "filesharesnapshots": view.ResourceSnapshots, "fsnap": view.ResourceSnapshots,
	"filesharesnapshotschedule": view.ResourceSchedules, "filesharesnapshotschedules": view.ResourceSchedules, "fsnapsched": view.ResourceSchedules,
	"mlperfstoragejob": view.ResourceJobs, "mlperfstoragejobs": view.ResourceJobs, "mlps": view.ResourceJobs,
	"dataserver": view.ResourceDataServers, "dataservers": view.ResourceDataServers, "dsrv": view.ResourceDataServers,
}

// object is an object named by an argument.
type object struct{ resource, name string }

// parseObject reads KIND/NAME, or NAME alone: then the resource is "".
func parseObject(argument string) (object, error) {
	kind, name, found := strings.Cut(argument, "/")
	if !found {
		return object{"", argument}, nil
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	resource := kinds[kind]
	if resource == "" || name == "" {
		return object{}, usageError("%q does not name an object: write fileserver/NAME, fileshare/NAME, filesharesnapshot/NAME, filesharesnapshotschedule/NAME, mlperfstoragejob/NAME or dataserver/NAME", argument)
	}
	return object{resource, name}, nil
}

// shareName reads NAME or fileshare/NAME.
func shareName(argument string) (string, error) {
	of, err := parseObject(argument)
	if err == nil && of.resource != "" && of.resource != view.ResourceFileShares {
		err = usageError("%q is not a FileShare", argument)
	}
	return of.name, err
}

// one fails if a command about a single object has no namespace.
func one(namespace string) error {
	if namespace == "" {
		return usageError("-A can't be used with the name of an object: give its namespace with -n")
	}
	return nil
}

// getShare reads a FileShare into the world.
func getShare(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, name string) (*v1alpha1.FileShare, error) {
	if err := one(namespace); err != nil {
		return nil, err
	}
	var share v1alpha1.FileShare
	if err := get(ctx, c, view.ResourceFileShares, namespace, name, &share); err != nil {
		return nil, err
	}
	w.FileShares = append(w.FileShares, share)
	return &share, nil
}

// getFileServerOf reads a share's FileServer into the world if it may be read; nil if not.
func getFileServerOf(ctx context.Context, c *cluster.Cluster, w *view.World, share *v1alpha1.FileShare) (*v1alpha1.FileServer, error) {
	var fs v1alpha1.FileServer
	namespace := naming.ServerNamespace(share)
	err := c.Get(ctx, view.ResourceFileServers, namespace, share.Spec.FileServerRef.Name, &fs)
	switch {
	case apierrors.IsForbidden(err):
		w.Hidden = append(w.Hidden, view.Hidden{Resource: view.ResourceFileServers, Namespace: namespace, Right: "get"})
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, cluster.Explain(err)
	}
	w.FileServers = append(w.FileServers, fs)
	return &fs, nil
}

// reader is a kind that get can read.
type reader interface {
	*v1alpha1.FileServer | *v1alpha1.FileShare | *v1alpha1.FileShareSnapshot | *v1alpha1.FileShareSnapshotSchedule | *v1alpha1.MLPerfStorageJob | *internalv1.DataServer
	kubeObject
}

func get[T reader](ctx context.Context, c *cluster.Cluster, resource, namespace, name string, into T) error {
	err := c.Get(ctx, resource, namespace, name, into)
	if apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "the server could not find the requested resource") {
		plural, _, _ := strings.Cut(resource, ".")
		return fmt.Errorf("there is no %s %q in namespace %s; to list all: kubectl get %s -A", strings.TrimSuffix(plural, "s"), name, namespace, plural)
	}
	return cluster.Explain(err)
}

// complete completes the names of objects for the first argument.
func (o *options) complete(resources ...string) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, namespace, err := o.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		w := o.world(namespace)
		if err := c.Read(command.Context(), w, namespace, resources...); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		kinded := func(kind, name string) string {
			if len(resources) == 1 {
				return name
			}
			return kind + "/" + name
		}
		var names []string
		for i := range w.FileServers {
			names = append(names, kinded("fileserver", w.FileServers[i].Name))
		}
		for i := range w.FileShares {
			names = append(names, kinded("fileshare", w.FileShares[i].Name))
		}
		for i := range w.Snapshots {
			names = append(names, kinded("filesharesnapshot", w.Snapshots[i].Name))
		}
		for i := range w.Schedules {
			names = append(names, kinded("filesharesnapshotschedule", w.Schedules[i].Name))
		}
		for i := range w.Jobs {
			names = append(names, kinded("mlperfstoragejob", w.Jobs[i].Name))
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
