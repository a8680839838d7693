package command

import (
	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/internal/plugin/view"
)

func newTree(o *options) *cobra.Command {
	all := false
	command := &cobra.Command{
		Use:   "tree SHARE",
		Short: "Show which data server owns which directory of a share",
		Long: "Show which data server owns which directory of a share, how full its volumes are and how many connections it has.\n" +
			"Where more than 16 directories are in one, they are counted for each server.",
		Example: "  kubectl howdah tree unet3d\n" +
			"  kubectl howdah tree unet3d --directories | less\n" +
			"  kubectl howdah tree unet3d -o json | jq -r '.list[] | select(.server == \"training-1\") | .path'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileShares),
		RunE: func(command *cobra.Command, arguments []string) error {
			name, err := shareName(arguments[0])
			if err != nil {
				return err
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
			if _, err := getFileServerOf(ctx, c, w, share); err != nil {
				return err
			}
			if err := c.ReadOnly(ctx, w, naming.ServerNamespace(share), shareSelector(share), view.ResourceShareDirectories); err != nil {
				return err
			}
			if err := c.ReadOnly(ctx, w, naming.ServerNamespace(share), fileServerSelector(share.Spec.FileServerRef.Name), view.ResourceDataServers); err != nil {
				return err
			}
			tree := view.NewTree(w, share)
			return o.print(tree, func(page text.Page) string { return tree.Text(page, all) })
		},
	}
	command.Flags().BoolVar(&all, "directories", false, "list every directory")
	return command
}
