package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// linkSeconds is how long each link is tried before anything else.
const linkSeconds = 5

const (
	tcpSend = `perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(Listen=>1,LocalPort=>5001,ReuseAddr=>1) or die $!;
		$s=$l->accept; $b="x"x262144; $SIG{PIPE}="IGNORE"; while (syswrite($s,$b)) {}'`
	// tcpReceive reads from all addresses at once and prints the sum of their rates as bytes and one second.
	tcpReceive = `receive() {
			for try in $(seq 50); do exec 3<>/dev/tcp/$1/5001 && break; sleep 0.2; done 2>/dev/null
			start=$(date +%%s%%N); bytes=$(timeout %d cat <&3 | wc -c); end=$(date +%%s%%N)
			echo $bytes $((end-start))
		}
		{ for address in %s; do receive $address & done; wait; } | awk '{r += $1/$2*1e9} END {printf "%%.0f 1\n", r}'`
)

// startSenders runs a pod on each capped node that can send as fast as its link takes it.
func (b *bench) startSenders(ctx context.Context) error {
	for _, node := range b.nodes {
		pod := cluster.ClientPod{Name: sender(node), NodeSelector: map[string]string{corev1.LabelHostname: node}}
		if err := b.RunClient(ctx, pod); err != nil {
			return err
		}
	}
	for _, node := range b.nodes {
		if err := b.WaitPodReady(ctx, sender(node)); err != nil {
			return err
		}
	}
	return nil
}

func sender(node string) string { return "sender-" + node }

// tryLinks measures each capped link, and all at once: the client's link and the machine must carry them together.
func (b *bench) tryLinks(ctx context.Context, capBytes float64) ([]verdict.Link, error) {
	var links []verdict.Link
	try := func(name string, nodes []string) error {
		b.begin("%s, plain TCP", name)
		rate, _, err := b.rawTCP(ctx, nodes, linkSeconds)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		links = append(links, verdict.Link{Name: name, Rate: rate, Cap: float64(len(nodes)) * capBytes})
		b.end("%.1f of %.1f MB/s", rate/1e6, float64(len(nodes))*capBytes/1e6)
		return nil
	}
	for _, node := range b.nodes {
		if err := try("link of "+node, []string{node}); err != nil {
			return nil, err
		}
	}
	return links, try("all links together", b.nodes)
}

// rawTCP measures the limit: TCP streams from the senders of nodes to a pod on the client's node.
func (b *bench) rawTCP(ctx context.Context, nodes []string, seconds int) (float64, spare.Use, error) {
	pod, err := b.client(ctx, nil)
	if err != nil {
		return 0, spare.Use{}, err
	}
	defer b.drop(ctx, pod)
	var addresses []string
	ended := make(chan error, len(nodes))
	for _, node := range nodes {
		from := &corev1.Pod{}
		if err := b.Get(ctx, sender(node), from); err != nil {
			return 0, spare.Use{}, err
		}
		addresses = append(addresses, from.Status.PodIP)
		go func() {
			_, err := b.Shell(ctx, sender(node), tcpSend)
			ended <- err
		}()
	}
	b.note("sending for %d s", seconds)
	// bash for its /dev/tcp.
	script := "exec bash -c " + shellQuote(fmt.Sprintf(tcpReceive, seconds, strings.Join(addresses, " ")))
	rate, use, err := b.rate(ctx, pod, script)
	for range nodes {
		if err == nil {
			err = <-ended
		}
	}
	return rate, use, err
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
