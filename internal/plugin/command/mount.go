package command

import (
	"io"
	"path"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/internal/plugin/view"
)

func newMount(o *options) *cobra.Command {
	at, manifestFor := "/mnt", ""
	command := &cobra.Command{
		Use:   "mount SHARE",
		Short: "Show how to mount a share, on a machine and in pods",
		Long: "Show the mount command of a share, a line for /etc/fstab, and how a pod mounts it. Pods in the share's own namespace use its\n" +
			"ready-made claim; --manifest-for prints a PersistentVolume and a claim for another namespace.",
		Example: "  kubectl howdah mount unet3d\n" +
			"  sudo $(kubectl howdah mount unet3d --at /data -o json | jq -r .command)\n" +
			"  kubectl howdah mount unet3d --manifest-for team-b | kubectl apply -f -",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileShares),
		RunE: func(command *cobra.Command, arguments []string) error {
			name, err := shareName(arguments[0])
			if err != nil {
				return err
			}
			if !path.IsAbs(at) || strings.ContainsFunc(at, unicode.IsSpace) {
				return usageError("--at is %q; it must be an absolute path without blanks, which neither the command nor /etc/fstab would take as it is", at)
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			w := o.world(namespace)
			share, err := getShare(command.Context(), c, w, namespace, name)
			if err != nil {
				return err
			}
			fs, err := getFileServerOf(command.Context(), c, w, share)
			if err != nil {
				return err
			}
			mount, err := view.NewMount(share, fs, at)
			if err != nil {
				return err
			}
			if manifestFor == "" {
				return o.print(mount, mount.Text)
			}
			capacity := int64(0)
			if fs != nil {
				capacity = ptr.Deref(fs.Status.Capacity.TotalBytes, 0)
			}
			manifest, err := mount.Manifest(manifestFor, capacity)
			if err != nil {
				return err
			}
			_, err = io.WriteString(o.out, manifest)
			return err
		},
	}
	command.Flags().StringVar(&at, "at", at, "mount point")
	command.Flags().StringVar(&manifestFor, "manifest-for", "", "print a PersistentVolume and a claim for pods of this Kubernetes namespace")
	return command
}
