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

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/internal/serverpod"
)

const weighed = "--by number counts directories; bytes counts what is in them; load what clients read and write, for as long as --for says: what a\n" +
	"data server serves of a share is told, and not of which directory, so its directories of a share count alike, and those of a busy server\n" +
	"move until it is found which one is. For bytes and load the data servers are asked through the API server, which takes the right to get\n" +
	"pods/proxy (Kubernetes' role edit has it). A move by them is only planned if it is worth a fiftieth of a server's part."

const (
	usualSample = 10 * time.Second
	// Data servers read ganesha's counters every 5 s.
	leastSample, longestSample = 5 * time.Second, 10 * time.Minute
	// sizesTimeout is as long as a data server takes at most, and the API server waits.
	sizesTimeout = time.Minute
)

// weighings are the flags that say what is to be evened out.
type weighings struct {
	by     string
	during time.Duration
}

func (g *weighings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&g.by, "by", g.by, "what is to be the same everywhere: number, bytes or load")
	flags.DurationVar(&g.during, "for", g.during, "with --by load: how long it is measured")
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

// weigh asks data servers for what directories weigh. Where they can't move, nobody is asked.
func (g *weighings) weigh(ctx context.Context, c *cluster.Cluster, w *view.World, fs *v1alpha1.FileServer) (view.Weighing, error) {
	if view.By(g.by) == view.ByNumber || !view.CanMove(fs) {
		return view.Counting(), nil
	}
	if view.By(g.by) == view.ByBytes {
		sizes, err := askSizes(ctx, c, fs, view.ToMeasure(w, fs))
		return view.WeighingBytes(sizes), err
	}
	rates, err := askRates(ctx, c, fs, view.Takers(w, fs), g.during)
	return view.WeighingLoad(w, fs, rates), err
}

// askSizes asks for the sizes of the directories of each share. All data servers have the same storage: the first one that answers will do.
func askSizes(ctx context.Context, c *cluster.Cluster, fs *v1alpha1.FileServer, shares []view.Measured) (map[string]int64, error) {
	all := map[string]int64{}
	for _, share := range shares {
		err := errors.New("no data server serves it")
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
			return nil, fmt.Errorf("the sizes of the directories of share %s are not to be had: %w", share.Key, err)
		}
	}
	return all, nil
}

// askRates asks each data server twice how much it has served.
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
		told, err := ratesBetween(first[server], after)
		if err != nil {
			return nil, fmt.Errorf("data server %s: %w", server, err)
		}
		rates[server] = told
	}
	return rates, nil
}

// ratesBetween is what was served between two times, by share, in bytes a second.
func ratesBetween(before, after serverpod.Served) (map[string]float64, error) {
	seconds := after.Time.Sub(before.Time).Seconds()
	switch {
	case before.Start != after.Start:
		return nil, errors.New("ganesha was started again while it was measured: try again")
	case seconds <= 0:
		return nil, errors.New("its figures are no newer than the first ones: measure for longer (--for)")
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
				return fmt.Errorf("data server %s does not tell what it serves: %w", server, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			all[server] = answer
			return nil
		})
	}
	return all, group.Wait()
}

// askPod asks a server's pod, and says in the error what to do.
func askPod(ctx context.Context, c *cluster.Cluster, namespace, pod, path string, query url.Values, patience time.Duration, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := c.AskPod(ctx, namespace, pod, v1alpha1.ManagerPort, path, query)
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return errors.New(whyNotAsked(ctx, err, namespace, patience))
	}
	return nil
}
