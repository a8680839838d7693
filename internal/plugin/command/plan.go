package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
)

func newPlan(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what placement would do, without changing anything",
		Long: "Show what placement would do with new directories or another number of data servers. Nothing is changed: the command runs the code\n" +
			"of the operator and of the namespace servers on the current state. It needs the right to read the internal kinds\n" +
			"(ClusterRole howdah-support).",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newPlanMkdir(o), newPlanScale(o), newPlanRebalance(o))
	return command
}

// placing are the kinds that placement depends on.
var placing = []string{view.ResourceDataServers, view.ResourceShareExports, view.ResourceShareDirectories}

// needed reads kinds, and fails if the user may not read them.
func needed(ctx context.Context, c *cluster.Cluster, w *view.World, namespace, fileServer string, resources ...string) error {
	if err := c.ReadOnly(ctx, w, namespace, fileServerSelector(fileServer), resources...); err != nil {
		return err
	}
	for _, resource := range resources {
		if w.IsHidden(resource, namespace) {
			return fmt.Errorf("you may not list %s in namespace %s, which the plan needs: ask for the ClusterRole howdah-support there", resource, namespace)
		}
	}
	return nil
}

func (o *options) showPlan(plan view.Plan) error {
	if err := o.print(plan, plan.Text); err != nil {
		return err
	}
	if plan.Refused != "" {
		return answer(CodeNotWell)
	}
	return nil
}

func newPlanMkdir(o *options) *cobra.Command {
	count := 0
	command := &cobra.Command{
		Use:   "mkdir SHARE [PATH...]",
		Short: "Show which data servers new directories would go to",
		Example: "  kubectl howdah plan mkdir unet3d train/6 train/7\n" +
			"  kubectl howdah plan mkdir unet3d --count 1000",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileShares),
		RunE: func(command *cobra.Command, arguments []string) error {
			name, err := shareName(arguments[0])
			if err != nil {
				return err
			}
			if count == 0 && len(arguments) == 1 {
				count = 1
			}
			if count < 0 || count > 100_000 {
				return usageError("--count is %d; it can be 0 to 100000", count)
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			ctx, w := command.Context(), o.world(namespace)
			share, err := getShare(ctx, c, w, namespace, name)
			if err != nil {
				return err
			}
			if err := needed(ctx, c, w, naming.ServerNamespace(share), share.Spec.FileServerRef.Name,
				placing...); err != nil {
				return err
			}
			plan, err := view.PlanMkdir(w, share, arguments[1:], count)
			if err != nil {
				return usage{err}
			}
			return o.showPlan(plan)
		},
	}
	command.Flags().IntVar(&count, "count", 0, "number of further new directories, without names")
	return command
}

func newPlanScale(o *options) *cobra.Command {
	replicas := int32(0)
	command := &cobra.Command{
		Use:   "scale FILESERVER --replicas N",
		Short: "Show the result of another number of data servers",
		Example: "  kubectl howdah plan scale training --replicas 5\n" +
			"  kubectl howdah plan scale training --replicas 1 && kubectl scale fileserver training --replicas 1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			of, err := parseObject(arguments[0])
			if err != nil {
				return err
			}
			if of.resource != "" && of.resource != view.ResourceFileServers {
				return usageError("%q is not a FileServer", arguments[0])
			}
			if !command.Flags().Changed("replicas") {
				return usageError("--replicas is missing: name the number of data servers, for example --replicas 4")
			}
			if replicas < 1 || replicas > placement.MaxServers {
				return usageError("--replicas is %d; it can be 1 to %d", replicas, placement.MaxServers)
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			if err := one(namespace); err != nil {
				return err
			}
			var fs v1alpha1.FileServer
			if err := get(command.Context(), c, view.ResourceFileServers, namespace, of.name, &fs); err != nil {
				return err
			}
			w := o.world(namespace)
			if err := needed(command.Context(), c, w, namespace, fs.Name, placing...); err != nil {
				return err
			}
			return o.showPlan(view.PlanScale(w, &fs, replicas))
		},
	}
	command.Flags().Int32Var(&replicas, "replicas", 0, "number of data servers")
	return command
}
