package command

import (
	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/internal/plugin/view"
)

func newCapacity(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "capacity [FILESERVER]",
		Short: "Show what volumes have, what their claims promise, and what shares take",
		Long: "Show for each data server and volume what its claim promises, what its file system has, what is used and free, and when it will be\n" +
			"full; and for each share where its directories are. A file system that several volumes are on counts once.",
		Example: "  kubectl howdah capacity training\n" +
			"  kubectl howdah capacity -A -o json | jq '.fileServers[].volumes[] | select(.fill != null)'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			w, err := o.readStatus(command, arguments)
			if err != nil {
				return err
			}
			if len(w.FileServers) == 0 && o.output == "" {
				return noFileServer(w, "capacity")
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			if err := c.ReadOnly(command.Context(), w, namespace, "", view.ResourceClaims); err != nil {
				return err
			}
			capacity := view.NewCapacity(w)
			return o.print(capacity, func(page text.Page) string { return capacity.Text(page) })
		},
	}
}
