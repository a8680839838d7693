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
		fmt.Fprintln(os.Stderr, "cephcost:", err)
		os.Exit(1)
	}
	os.Exit(int(result))
}

func run(ctx context.Context) (verdict.Outcome, error) {
	serverNodes := flag.String("server-nodes", "", "comma-separated nodes for servers; where there is one server it is on the first")
	clientNode := flag.String("client-node", "", "node of the client")
	seconds := flag.Int("seconds", 10, "length of a measurement of small files")
	mib := flag.Int("mib", 32, "MiB that each of 3 processes writes and reads")
	rounds := flag.Int("rounds", 2, "how often each measurement is made; ways take turns, and the median counts")
	flag.Parse()
	nodes := strings.Split(*serverNodes, ",")
	plainImage := os.Getenv("HOWDAH_UNSIGNED_IMAGE")
	if len(nodes) < 3 || *clientNode == "" || plainImage == "" || *seconds < 1 || *mib < 1 || *rounds < 1 {
		return 0, fmt.Errorf("three --server-nodes, --client-node, and HOWDAH_UNSIGNED_IMAGE for the plain ganesha are needed; see --help")
	}
	c, err := cluster.Connect(ctx, "howdah-cost")
	if err != nil {
		return 0, err
	}
	b := &bench{Cluster: c, nodes: nodes, clientNode: *clientNode, seconds: *seconds, mib: *mib, rounds: *rounds, plainImage: plainImage, began: time.Now()}
	f, windows, err := b.find(ctx)
	b.removeAll(ctx)
	if err != nil {
		return 0, err
	}
	text, result := report(f, windows, *rounds)
	fmt.Print(text)
	return result, nil
}

// say tells what is done, and since when.
func (b *bench) say(format string, args ...any) {
	fmt.Printf("%5.0f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// find measures; if the machine is busy already, it stops there.
func (b *bench) find(ctx context.Context) (figures, []window, error) {
	first, err := rest("anything was made")
	if err != nil || len(whyInvalid([]window{first})) > 0 {
		return nil, []window{first}, err
	}
	if err := b.prepare(ctx); err != nil {
		return nil, nil, err
	}
	return b.measure(ctx)
}
