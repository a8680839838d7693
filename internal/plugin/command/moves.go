package command

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
)

// usualMoves is the default of --moves.
const usualMoves = 100

// askTries is how often a request is written if the FileServer changes at the same time.
const askTries = 5

func newMove(o *options) *cobra.Command {
	to, cancel, follow := "", false, false
	command := &cobra.Command{
		Use:   "move SHARE[/DIRECTORY] --to SERVER",
		Short: "Move a directory to another data server",
		Long: "Request that a directory moves to another data server. The operator moves it as soon as that server serves the share. If it refuses,\n" +
			"an event of the FileServer has the reason. The command needs the right to patch the FileServer.\n\n" +
			"With storage.ceph no data is copied. Clients that use the directory stay on its old data server until they have not used it for some\n" +
			"minutes; all others go to the new one. With --follow they go to the new one within seconds. A share of layout Single moves as a whole.\n\n" +
			"With storage.volumes the data is copied while clients use it, if spec.moves.copying is Allow. At the end they wait for some seconds.\n" +
			"A directory in which files are open moves when they are closed (spec.moves.openFiles).\n\n" +
			"--cancel takes the request back. A directory that is being copied stays where it is, unless the copy is in its place already.",
		Example: "  kubectl howdah move unet3d/train/7 --to training-2\n" +
			"  kubectl howdah move unet3d/train/7 --cancel\n" +
			"  kubectl howdah move home --to training-0",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileShares),
		RunE: func(command *cobra.Command, arguments []string) error {
			name, directory, found := strings.Cut(arguments[0], "/")
			directory = strings.Trim(path.Clean("/"+directory), "/")
			switch {
			case name == "" || found && directory == "":
				return usageError("%q does not name a directory of a share: write SHARE/DIRECTORY, for example unet3d/train/7", arguments[0])
			case cancel && (to != "" || follow):
				return usageError("--cancel excludes --to and --follow")
			case !cancel && to == "":
				return usageError("--to is missing: name the data server, for example --to training-2")
			case !found:
				directory = "."
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
			server := share.Spec.FileServerRef.Name
			if cancel {
				return o.cancelMove(ctx, c, naming.ServerNamespace(share), server, naming.KeyOf(share), directory)
			}
			if err := c.ReadOnly(ctx, w, naming.ServerNamespace(share), fileServerSelector(server), view.ResourceShareDirectories); err != nil {
				return err
			}
			return o.ask(ctx, c, naming.ServerNamespace(share), server, func(fs *v1alpha1.FileServer) view.Moves {
				return following(follow, fs, view.PlanMove(w, fs, share, directory, to))
			})
		},
	}
	command.Flags().StringVar(&to, "to", "", "name of the data server")
	command.Flags().BoolVar(&cancel, "cancel", false, "take the request back")
	followFlag(command, &follow)
	return command
}

// followFlag is --follow, for what a plan asks for.
func followFlag(command *cobra.Command, follow *bool) {
	command.Flags().BoolVar(follow, "follow", false, "clients that use a directory go to its new data server, too (on volumes they always do)")
}

func following(follow bool, fs *v1alpha1.FileServer, moves view.Moves) view.Moves {
	if follow {
		return moves.Follow(fs)
	}
	return moves
}

func newRebalance(o *options) *cobra.Command {
	dryRun := false
	command := newBalancing(o, "rebalance FILESERVER", "Spread directories evenly over the data servers",
		"Spread the directories of each share evenly over the data servers, for example after a data server was added: only new directories go\n"+
			"there by themselves. With storage.volumes this needs spec.moves.copying: Allow. The command shows the moves and requests them from the\n"+
			"operator; kubectl howdah move --help says what clients notice. It needs the right to patch the FileServer, and the ClusterRole\n"+
			"howdah-support.\n\n"+weighed,
		"  kubectl howdah rebalance training --dry-run\n  kubectl howdah rebalance training --moves 20\n"+
			"  kubectl howdah rebalance training --follow\n"+
			"  kubectl howdah rebalance training --by load --for 1m", func() bool { return dryRun })
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would move")
	return command
}

func newPlanRebalance(o *options) *cobra.Command {
	return newBalancing(o, "rebalance FILESERVER", "Show which directories kubectl howdah rebalance would move", weighed,
		"  kubectl howdah plan rebalance training\n  kubectl howdah plan rebalance training --by bytes", func() bool { return true })
}

// newBalancing is a command that plans a rebalance, and requests it unless onlyShow.
func newBalancing(o *options, use, short, long, example string, onlyShow func() bool) *cobra.Command {
	most, follow, by := usualMoves, false, weighings{by: string(view.ByNumber), during: usualSample}
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.ExactArgs(1), ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			of, err := parseObject(arguments[0])
			if err != nil {
				return err
			}
			if of.resource != "" && of.resource != view.ResourceFileServers {
				return usageError("%q is not a FileServer", arguments[0])
			}
			if most < 1 || most > placement.MaxRequests {
				return usageError("--moves is %d; it can be 1 to %d", most, placement.MaxRequests)
			}
			if err := by.check(); err != nil {
				return err
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			if err := one(namespace); err != nil {
				return err
			}
			ctx, w := command.Context(), o.world(namespace)
			if err := needed(ctx, c, w, namespace, of.name, placing...); err != nil {
				return err
			}
			var fs v1alpha1.FileServer
			if err := get(ctx, c, view.ResourceFileServers, namespace, of.name, &fs); err != nil {
				return err
			}
			weighing, err := by.weigh(ctx, c, w, &fs)
			if err != nil {
				return err
			}
			if onlyShow() {
				return o.showMoves(following(follow, &fs, view.PlanRebalance(w, &fs, most, weighing)))
			}
			return o.ask(ctx, c, namespace, of.name, func(fs *v1alpha1.FileServer) view.Moves {
				return following(follow, fs, view.PlanRebalance(w, fs, most, weighing))
			})
		},
	}
	by.flags(command.Flags())
	command.Flags().IntVar(&most, "moves", usualMoves, "largest number of directories to move")
	followFlag(command, &follow)
	return command
}

func (o *options) showMoves(moves view.Moves) error {
	if err := o.print(moves, moves.Text); err != nil {
		return err
	}
	if moves.Refused != "" {
		return answer(CodeNotWell)
	}
	return nil
}

// ask adds the moves of a plan to the requests in the FileServer's annotation.
func (o *options) ask(ctx context.Context, c *cluster.Cluster, namespace, name string, plan func(*v1alpha1.FileServer) view.Moves) error {
	for try := 1; ; try++ {
		var fs v1alpha1.FileServer
		if err := get(ctx, c, view.ResourceFileServers, namespace, name, &fs); err != nil {
			return err
		}
		moves := plan(&fs)
		if moves.Refused != "" || len(moves.Requests()) == 0 {
			return o.showMoves(moves)
		}
		patch, err := requestPatch(&fs, moves.Requests())
		if err != nil {
			return err
		}
		err = c.Patch(ctx, view.ResourceFileServers, namespace, name, patch, &fs)
		if apierrors.IsConflict(err) && try < askTries {
			continue
		}
		if err != nil {
			return cluster.Explain(err)
		}
		moves.Requested = true
		return o.showMoves(moves)
	}
}

// requestPatch adds requests to those that are there already. The last request for a directory replaces earlier ones.
func requestPatch(fs *v1alpha1.FileServer, more []placement.Request) ([]byte, error) {
	all, err := placement.ParseRequests(fs.Annotations[v1alpha1.MovesAnnotation])
	if err != nil {
		all = nil // The operator removes an invalid annotation, too.
	}
	all = slices.DeleteFunc(all, func(before placement.Request) bool {
		return slices.ContainsFunc(more, func(m placement.Request) bool { return m.Share == before.Share && m.Path == before.Path })
	})
	all = append(all, more...)
	if fit := placement.Fitting(all); fit < len(all) {
		return nil, fmt.Errorf("%d moves are still pending, and the annotation %s has room for %d of these and %d more: try again when some are done, or with a smaller --moves",
			len(all)-len(more), v1alpha1.MovesAnnotation, fit, len(more))
	}
	return patchOf(fs, all)
}

// patchOf writes requests, if the FileServer is still as it was read. Without any the annotation goes.
func patchOf(fs *v1alpha1.FileServer, requests []placement.Request) ([]byte, error) {
	var patch struct {
		Metadata struct {
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	patch.Metadata.ResourceVersion = fs.ResourceVersion
	patch.Metadata.Annotations = map[string]*string{v1alpha1.MovesAnnotation: nil}
	if len(requests) > 0 {
		patch.Metadata.Annotations[v1alpha1.MovesAnnotation] = ptr.To(placement.FormatRequests(requests))
	}
	return json.Marshal(patch)
}
