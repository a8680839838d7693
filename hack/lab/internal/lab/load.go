package lab

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/guest"
	"github.com/howdah/howdah/hack/lab/internal/image"
	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// unusedParts is how long the parts of an image stay in the cache after their
// last use; a developer's images change many times a day.
const unusedParts = 3 * 24 * time.Hour

// Load puts docker-archives into all nodes, or the named ones, at the same time.
func (l *Lab) Load(archives, only []string) error {
	nodes, err := l.pick(only)
	if err != nil {
		return err
	}
	store := filepath.Join(l.rec.Cache, "images", "parts")
	for _, archive := range archives {
		parts, err := image.Split(archive, store)
		if err != nil {
			return err
		}
		failures := make([]error, len(nodes))
		var all sync.WaitGroup
		for i, node := range nodes {
			all.Go(func() {
				if err := l.loadInto(node, parts, store); err != nil {
					failures[i] = fmt.Errorf("%s: %w", node.Name, err)
				}
			})
		}
		all.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return image.Prune(store, unusedParts)
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

// loadInto hands the image over by the shared folder, not by the network: that
// may be capped, and is what tests measure. The parts stay there, because the
// node's containerd only links to them.
func (l *Lab) loadInto(node plan.Node, parts image.Parts, store string) error {
	client, err := l.Agent(node.Name)
	if err != nil {
		return err
	}
	folder := "inbox/" + parts.ID()
	if err := parts.Place(store, l.nodeDir(node, "share", folder)); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := client.Run([]string{"/usr/local/bin/loader", guest.Share + "/" + folder}, nil, &out, &out); err != nil {
		return fmt.Errorf("%w: %s", err, out.String())
	}
	l.Say("%s %s", node.Name, strings.TrimSpace(out.String()))
	return nil
}
