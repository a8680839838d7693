package command

import (
	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/internal/plugin/view"
)

func newStatus(o *options) *cobra.Command {
	directories := false
	command := &cobra.Command{
		Use:   "status [FILESERVER]",
		Short: "Show the tree of FileServers, data servers, shares and directories, with health",
		Long: "Show the tree of FileServers, data servers, shares and directories, with health.\n" +
			"Directories are counted for each share and server; those that are not Ready are listed.",
		Example: "  # Everything in this namespace\n  kubectl howdah status\n\n" +
			"  # One FileServer with every directory\n  kubectl howdah status training --directories\n\n" +
			"  # In a script: is anything not Ready, anywhere?\n  kubectl howdah status -A -o json > status.json || echo look at status.json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			w, err := o.readStatus(command, arguments)
			if err != nil {
				return err
			}
			status := view.NewStatus(w, directories)
			if err := o.print(status, func(page text.Page) string { return status.Text(page, directories) }); err != nil {
				return err
			}
			if !status.IsWell() {
				return answer(CodeNotWell)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&directories, "directories", false, "list every directory")
	return command
}

func (o *options) readStatus(command *cobra.Command, arguments []string) (*view.World, error) {
	ctx := command.Context()
	c, namespace, err := o.connect()
	if err != nil {
		return nil, err
	}
	w := o.world(namespace)
	selector := ""
	if len(arguments) == 1 {
		if err := o.readNamed(ctx, c, w, namespace, arguments[0]); err != nil {
			return nil, err
		}
		selector = fileServerSelector(w.FileServers[0].Name)
	} else if err := c.Read(ctx, w, namespace, view.ResourceFileServers); err != nil {
		return nil, err
	}
	if err := c.Read(ctx, w, namespace, view.ResourceFileShares); err != nil {
		return nil, err
	}
	if selector != "" {
		w.FileShares = keep(w.FileShares, func(s *fileShare) bool { return s.Spec.FileServerRef.Name == w.FileServers[0].Name })
	}
	return w, c.ReadOnly(ctx, w, namespace, selector,
		view.ResourceDataServers, view.ResourceShareDirectories, view.ResourceShareAttachments, view.ResourcePods)
}
