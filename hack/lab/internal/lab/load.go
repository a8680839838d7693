package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/agent"
	"github.com/howdah/howdah/hack/lab/internal/image"
	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Load puts docker-archives into all nodes, or the named ones, at the same time.
func (l *Lab) Load(archives, only []string) error {
	nodes, err := l.pick(only)
	if err != nil {
		return err
	}
	for _, archive := range archives {
		summary, err := image.Summarize(archive)
		if err != nil {
			return err
		}
		failures := make([]error, len(nodes))
		var all sync.WaitGroup
		for i, node := range nodes {
			all.Go(func() {
				if err := l.loadInto(node, archive, summary); err != nil {
					failures[i] = fmt.Errorf("%s: %w", node.Name, err)
				}
			})
		}
		all.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) pick(only []string) ([]plan.Node, error) {
	if !l.Exists() {
		return nil, fmt.Errorf("%w: %s", plan.ErrNoLab, l.Name)
	}
	if len(only) == 0 {
		return l.rec.Settings.NodeList(), nil
	}
	var nodes []plan.Node
	for _, name := range only {
		node, err := l.rec.Settings.Node(name)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// loadInto hands the archive over by the shared folder, not by the network: that
// may be capped, and is what tests measure.
func (l *Lab) loadInto(node plan.Node, archive string, summary image.Summary) error {
	started := time.Now()
	client, err := l.Agent(node.Name)
	if err != nil {
		return err
	}
	names := strings.Join(summary.Names, " ")
	check := append([]string{"/lab/bin/guest", "loaded", summary.ID}, summary.Names...)
	err = client.Run(check, nil, nil, nil)
	var exit agent.ExitError
	if err == nil {
		l.Say("%s has %s", node.Name, names)
		return nil
	}
	if !errors.As(err, &exit) {
		return err
	}
	file := "inbox/" + summary.ID + ".tar"
	if err := sys.LinkOrCopy(archive, l.nodeDir(node, "share", file)); err != nil {
		return err
	}
	defer os.Remove(l.nodeDir(node, "share", file))
	var out bytes.Buffer
	if err := client.Run([]string{"/lab/bin/guest", "import", "/lab/" + file}, nil, &out, &out); err != nil {
		return fmt.Errorf("%w: %s", err, out.String())
	}
	l.Say("%s got %s in %.1fs", node.Name, names, time.Since(started).Seconds())
	return nil
}
