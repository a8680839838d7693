package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/internal/serverpod"
)

const weighed = "--by number counts directories. --by bytes weighs them by size. --by load weighs them by what clients read and write, measured for\n" +
	"--for: data servers report the load of a share, not of each directory, so all directories of a share on a server get the same weight.\n" +
	"For bytes and load the command asks the data servers through the API server, which needs the right to get pods/proxy (Kubernetes' role\n" +
	"edit has it), and it only plans moves that change a server's load by at least 2% of an even part."

const (
	usualSample = 10 * time.Second
	// Data servers read ganesha's counters every 5 s.
	leastSample, longestSample = 5 * time.Second, 10 * time.Minute
	// sizesTimeout is the longest that a data server takes and the API server waits.
	sizesTimeout = time.Minute
)

// weighings are the flags for what to balance.
type weighings struct {
	by     string
	during time.Duration
}

func (g *weighings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&g.by, "by", g.by, "what to balance: number (of directories), bytes or load")
	flags.DurationVar(&g.during, "for", g.during, "with --by load: how long to measure")
}

func (g *weighings) check() error {
	switch view.By(g.by) {
	case view.ByNumber, view.ByBytes:
	case view.ByLoad:
		if g.during < leastSample || g.during > longestSample {
			return usageError("--for is %s; it can be %s to %s", g.during, leastSample, longestSample)
		}
	default:
		return usageError("--by is %q; it can be number, bytes or load", g.by)
	}
	return nil
}

// weigh asks data servers for the weights of directories, unless directories can't move.
func (g *weighings) weigh(ctx context.Context, c *cluster.Cluster, w *view.World, fs *v1alpha1.FileServer) (view.Weighing, error) {
	if view.By(g.by) == view.ByNumber || !view.CanMove(fs) {
		return view.Counting(), nil
	}
	if view.By(g.by) == view.ByBytes && !view.KnowsSizes(fs) {
		return view.Counting(), usageError("--by bytes: with storage.volumes the bytes of a directory are not counted; use --by number or --by load")
	}
	if view.By(g.by) == view.ByBytes {
		sizes, err := askSizes(ctx, c, fs, view.ToMeasure(w, fs))
		return view.WeighingBytes(sizes), err
	}
	rates, err := askRates(ctx, c, fs, view.Takers(w, fs), g.during)
	return view.WeighingLoad(w, fs, rates), err
}

// askSizes asks for the sizes of the directories of each share. All data servers have the same storage, so one answer is enough.
func askSizes(ctx context.Context, c *cluster.Cluster, fs *v1alpha1.FileServer, shares []view.Measured) (map[string]int64, error) {
	all := map[string]int64{}
	for _, share := range shares {
		err := errors.New("no data server serves the share")
		for _, server := range share.Servers {
			var answer serverpod.Sizes
			query := url.Values{serverpod.SizesShare: {share.Key}, serverpod.SizesDepth: {strconv.Itoa(share.Depth)}}
			if err = askPod(ctx, c, fs.Namespace, server, serverpod.SizesPath, query, sizesTimeout, &answer); err != nil {
				continue
			}
			for name, size := range answer.Bytes {
				all[name] = size
			}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("can't get the sizes of the directories of share %s: %w", share.Key, err)
		}
	}
	return all, nil
}

// askRates asks each data server twice how much it has served, and returns the rates between.
func askRates(ctx context.Context, c *cluster.Cluster, fs *v1alpha1.FileServer, servers []string, during time.Duration) (view.Rates, error) {
	first, err := askServed(ctx, c, fs, servers)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(during):
	}
	second, err := askServed(ctx, c, fs, servers)
	if err != nil {
		return nil, err
	}
	rates := view.Rates{}
	for server, after := range second {
		of, err := ratesBetween(first[server], after)
		if err != nil {
			return nil, fmt.Errorf("data server %s: %w", server, err)
		}
		rates[server] = of
	}
	return rates, nil
}

// ratesBetween is what was served between two reports, by share, in bytes per second.
func ratesBetween(before, after serverpod.Served) (map[string]float64, error) {
	seconds := after.Time.Sub(before.Time).Seconds()
	switch {
	case before.Start != after.Start:
		return nil, errors.New("ganesha was restarted during the measurement: try again")
	case seconds <= 0:
		return nil, errors.New("its counters have not been updated since the first reading: measure for longer (--for)")
	}
	rates := map[string]float64{}
	for share, bytes := range after.Bytes {
		rates[share] = max(0, float64(bytes)-float64(before.Bytes[share])) / seconds
	}
	return rates, nil
}

func askServed(ctx context.Context, c *cluster.Cluster, fs *v1alpha1.FileServer, servers []string) (map[string]serverpod.Served, error) {
	var mutex sync.Mutex
	all := map[string]serverpod.Served{}
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for _, server := range servers {
		group.Go(func() error {
			var answer serverpod.Served
			if err := askPod(ctx, c, fs.Namespace, server, serverpod.ServedPath, nil, askTimeout, &answer); err != nil {
				return fmt.Errorf("can't get the load of data server %s: %w", server, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			all[server] = answer
			return nil
		})
	}
	return all, group.Wait()
}

// askPod gets an answer of a server's pod. The error has what to do.
func askPod(ctx context.Context, c *cluster.Cluster, namespace, pod, path string, query url.Values, timeout time.Duration, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	port := managerPort(ctx, c, namespace, pod)
	text, err := c.AskPod(ctx, namespace, pod, port, path, query)
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return errors.New(whyNotAsked(ctx, err, namespace, port, timeout))
	}
	return nil
}

// managerPort is the port of a pod that answers. A pod that can't be read is asked at the usual one.
func managerPort(ctx context.Context, c *cluster.Cluster, namespace, name string) int32 {
	var pod corev1.Pod
	_ = c.Get(ctx, view.ResourcePods, namespace, name, &pod) // AskPod has the same error, or one that says more.
	return fleet.PortOf(&pod, naming.PortManager, v1alpha1.ManagerPort)
}
