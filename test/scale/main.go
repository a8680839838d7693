package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/verdict"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
	os.Exit(int(result))
}

// stepsBefore counts the steps that are no measurement: senders, data servers, files.
const stepsBefore = 3

func run(ctx context.Context) (verdict.Outcome, error) {
	serverNodes := flag.String("server-nodes", "", "comma-separated nodes with capped links, for data servers")
	clientNode := flag.String("client-node", "", "node of the client; its link must carry all the caps together")
	capMbit := flag.Float64("cap-mbit", 0, "cap of each server node's link in Mbit/s, as given to the lab")
	seconds := flag.Int("seconds", 15, "length of one measurement")
	rounds := flag.Int("rounds", 2, "how often each measurement is made; they are interleaved and the median counts")
	growNodes := flag.String("grow-nodes", "", "comma-separated nodes with capped links that run nothing else: measure a job before and after data servers join there")
	ceph := flag.Bool("ceph", false, "with --grow-nodes: the data servers have their data in the Ceph of the cluster (hack/ceph.sh), not on volumes")
	flag.Parse()
	nodes := strings.Split(*serverNodes, ",")
	if *serverNodes == "" || *clientNode == "" || *capMbit <= 0 || *seconds < 1 || *rounds < 1 {
		return 0, fmt.Errorf("--server-nodes, --client-node and --cap-mbit are needed; see --help")
	}
	capBytes := *capMbit * 1e6 / 8

	c, err := cluster.Connect(ctx, "howdah-scale")
	if err != nil {
		return 0, err
	}
	if *growNodes != "" {
		added := strings.Split(*growNodes, ",")
		b := &bench{Cluster: c, nodes: append(nodes, added...), clientNode: *clientNode, seconds: *seconds, ceph: *ceph}
		return b.runGrowth(ctx, nodes, added, capBytes)
	}
	links := len(nodes) + 1 // Each, and all together.
	b := &bench{
		Cluster: c, nodes: nodes, clientNode: *clientNode, seconds: *seconds,
		progress: newProgress(os.Stdout, stepsBefore+links+*rounds*measurements+1),
	}
	defer b.telling(ctx)()
	found, err := b.find(ctx, capBytes, *rounds)
	b.removeAll(ctx, b.remove)
	if err != nil {
		return 0, err
	}
	text, result := report(found, len(nodes), capBytes, *seconds, *rounds)
	fmt.Print(text)
	return result, nil
}

// runGrowth is the run of --grow-nodes.
func (b *bench) runGrowth(ctx context.Context, first, added []string, capBytes float64) (verdict.Outcome, error) {
	if grownDirectories%len(b.nodes) != 0 {
		return 0, fmt.Errorf("%d directories can't be distributed evenly over %d nodes", grownDirectories, len(b.nodes))
	}
	b.fileKiB = max(1, int(capBytes*openSeconds/(readersEach*grownDirectories)/1024))
	b.progress = newProgress(os.Stdout, growSteps(len(b.nodes)))
	defer b.telling(ctx)()
	found, err := b.grow(ctx, first, added, capBytes)
	b.removeAll(ctx, b.removeGrowth)
	if err != nil {
		return 0, err
	}
	text, result := growthReport(found, len(first), len(b.nodes), capBytes)
	fmt.Print(text)
	return result, nil
}

// telling has the progress printed until it is ended.
func (b *bench) telling(ctx context.Context) (end func()) {
	telling, silence := context.WithCancel(context.WithoutCancel(ctx))
	go b.run(telling)
	return silence
}

// removeAll takes away what was made, also after an interrupt.
func (b *bench) removeAll(ctx context.Context, remove func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	b.begin("removing what was made")
	remove(ctx)
}

// find measures; if the links are slow already, it stops there.
func (b *bench) find(ctx context.Context, capBytes float64, rounds int) (found outcome, err error) {
	b.begin("a pod on each capped node that sends")
	if err := b.startSenders(ctx); err != nil {
		return found, err
	}
	if found.links, err = b.tryLinks(ctx, capBytes); err != nil || len(whyInvalid(found.links, nil)) > 0 {
		return found, err
	}
	if err := b.prepare(ctx); err != nil {
		return found, err
	}
	found.figures, found.windows, err = b.measure(ctx, rounds)
	return found, err
}
