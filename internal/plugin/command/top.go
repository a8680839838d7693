package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/internal/serverpod"
)

func newTop(o *options) *cobra.Command {
	during, watch := leastSample, false
	command := &cobra.Command{
		Use:   "top [FILESERVER]",
		Short: "Show what each data server reads, writes and uses now",
		Long: "Show MB/s, operations per second and CPU of each data server, and what of that each share takes, the busiest first.\n" +
			"The command asks each data server's pod twice through the API server, which needs the right to get pods/proxy\n" +
			"(Kubernetes' role edit has it), and writes nothing. Data servers read ganesha's counters every 5 s.\n" +
			"Operations of a server are its NFS requests; those of a share are its READs and WRITEs, as ganesha counts no others by share.\n" +
			"CPU is the number of processors that ganesha keeps busy.",
		Example: "  kubectl howdah top\n" +
			"  kubectl howdah top training --watch\n" +
			"  kubectl howdah top training --for 1m -o json | jq '.servers[0]'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileServers),
		RunE: func(command *cobra.Command, arguments []string) error {
			switch {
			case during < leastSample || during > longestSample:
				return usageError("--for is %s; it can be %s to %s", during, leastSample, longestSample)
			case watch && o.output != "":
				return usageError("--watch prints text; leave out -o %s, or --watch", o.output)
			}
			return o.top(command.Context(), arguments, during, watch)
		},
	}
	command.Flags().DurationVar(&during, "for", during, "how long to measure")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "go on until interrupted")
	return command
}

func (o *options) top(ctx context.Context, arguments []string, during time.Duration, watch bool) error {
	c, w, err := o.readFileServers(ctx, "top", arguments)
	if err != nil {
		return err
	}
	before := countAll(ctx, c, w)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(during):
		}
		after := countAll(ctx, c, w)
		all := []view.Top{}
		for i := range w.FileServers {
			all = append(all, view.NewTop(w, &w.FileServers[i], joined(before[i], after[i])))
		}
		if err := o.printTops(all, watch); err != nil || !watch {
			return err
		}
		before = after
	}
}

func (o *options) printTops(all []view.Top, watch bool) error {
	switch {
	case o.output != "" && len(all) == 1:
		return o.print(all[0], nil)
	case o.output != "":
		return o.print(all, nil)
	}
	if watch {
		fmt.Fprintln(o.out, o.now().Format(time.TimeOnly))
	}
	for i, top := range all {
		if i > 0 {
			fmt.Fprintln(o.out)
		}
		if err := o.print(top, top.Text); err != nil {
			return err
		}
	}
	if watch {
		fmt.Fprintln(o.out)
	}
	return nil
}

// counted is an answer of a data server.
type counted struct {
	server string
	of     view.Counted
	err    string
}

// countAll asks the data servers of all FileServers that were read.
func countAll(ctx context.Context, c *cluster.Cluster, w *view.World) [][]counted {
	all := make([][]counted, len(w.FileServers))
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for i := range w.FileServers {
		fs := &w.FileServers[i]
		all[i] = make([]counted, len(fs.Status.Servers))
		for k := range fs.Status.Servers {
			into := &all[i][k]
			into.server = fs.Status.Servers[k].Name
			group.Go(func() error {
				var answer serverpod.Served
				if err := askPod(ctx, c, fs.Namespace, into.server, serverpod.ServedPath, nil, askTimeout, &answer); err != nil {
					into.err = err.Error()
				} else {
					into.of = countedOf(answer)
				}
				return nil
			})
		}
	}
	_ = group.Wait() // Each answer has its own error.
	return all
}

func countedOf(answer serverpod.Served) view.Counted {
	counted := view.Counted{
		Start: answer.Start, Time: answer.Time, Requests: answer.Requests, CPUSeconds: answer.CPUSeconds, CPUTime: answer.CPUTime,
	}
	for key, share := range answer.Shares {
		if counted.Shares == nil {
			counted.Shares = map[string]view.CountedShare{}
		}
		counted.Shares[key] = view.CountedShare(share)
	}
	if counted.Shares == nil && len(answer.Bytes) == 0 {
		counted.Shares = map[string]view.CountedShare{} // It serves no share.
	}
	return counted
}

// joined are the answers of the same data servers at two times.
func joined(before, after []counted) []view.Sample {
	var samples []view.Sample
	for i := range after {
		sample := view.Sample{Server: after[i].server, Before: before[i].of, After: after[i].of, Error: before[i].err}
		if after[i].err != "" {
			sample.Error = after[i].err
		}
		samples = append(samples, sample)
	}
	return samples
}
