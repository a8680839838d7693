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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	serverNodes := flag.String("server-nodes", "", "comma-separated nodes with capped links, for data servers")
	clientNode := flag.String("client-node", "", "node of the client; its link must carry all the caps together")
	capMbit := flag.Float64("cap-mbit", 0, "cap of each server node's link in Mbit/s, as given to the lab")
	seconds := flag.Int("seconds", 15, "length of one measurement")
	rounds := flag.Int("rounds", 2, "how often each measurement is made; they are interleaved and the median counts")
	flag.Parse()
	nodes := strings.Split(*serverNodes, ",")
	if *serverNodes == "" || *clientNode == "" || *capMbit <= 0 || *seconds < 1 || *rounds < 1 {
		return fmt.Errorf("--server-nodes, --client-node and --cap-mbit are needed; see --help")
	}

	c, err := cluster.Connect(ctx, "howdah-scale")
	if err != nil {
		return err
	}
	b := &bench{Cluster: c, nodes: nodes, clientNode: *clientNode, seconds: *seconds}
	defer func() {
		// Cleaning up must outlive an interrupt.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		b.remove(ctx)
	}()
	fmt.Printf("preparing %d data servers on capped nodes and files for them\n", len(nodes)+1)
	if err := b.prepare(ctx); err != nil {
		return err
	}
	figures, err := b.measure(ctx, *rounds)
	if err != nil {
		return err
	}
	fmt.Print(report(figures, len(nodes), *capMbit*1e6/8, *seconds, *rounds))
	return nil
}
