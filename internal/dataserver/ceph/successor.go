package ceph

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/ceph"
)

const (
	// askWait is how long a start of ganesha waits for the watchers from the open connection. It answers within milliseconds if Ceph does.
	askWait = 2 * time.Second
	// successorPoll is how often a pod that was replaced looks whether its successor still serves.
	successorPoll = 5 * time.Second
)

// successor names the Ceph clients of another pod that serves this data server; "" if none is known. This pod's node was lost, its data server
// failed over, and the node is back. The pod ends when its kubelet learns that it was deleted.
func (b *Backend) successor(current []string) string {
	return strings.Join(b.watching.successors(current), ", ")
}

// awaitTurn returns when no other pod serves this data server. A ganesha that starts before would end the other one's mounts, and
// the Ceph clients to blocklist would be the other's.
func (b *Backend) awaitTurn(ctx context.Context) {
	if !b.watching.knowsOurs() {
		return // A pod that has not served has no successor, and its clients don't wait for this answer.
	}
	for warned := false; ctx.Err() == nil; warned = true {
		other := b.successor(b.watchersNow(ctx))
		if other == "" {
			return
		}
		if !warned {
			b.options.Log.Warn("another pod of this data server serves, and Ceph has shut this one out: ganesha does not start; this pod ends when its kubelet learns that it was deleted",
				"cephClients", other)
		}
		select {
		case <-ctx.Done():
		case <-time.After(successorPoll):
		}
	}
}

// watchersNow are the watchers of the grace object at this moment; none if Ceph does not answer. The open connection of the health watch is
// asked first: a new one takes half a second or more.
func (b *Backend) watchersNow(ctx context.Context) []string {
	answer, limit := make(chan []string, 1), time.NewTimer(askWait)
	defer limit.Stop()
	select {
	case b.asking <- answer:
		select {
		case found, ok := <-answer:
			if ok {
				return found
			}
		case <-limit.C:
		case <-ctx.Done():
			return nil
		}
	case <-limit.C:
	case <-ctx.Done():
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	found, err := b.watchers(ctx)
	if err != nil {
		b.options.Log.Warn("finding out whether another pod serves this data server failed; ganesha starts, which needs Ceph as well", "err", err)
	}
	return found
}

// watchers returns the addresses that watch the grace object. It makes its own connection, because it runs concurrently
// with the other methods.
func (b *Backend) watchers(ctx context.Context) ([]string, error) {
	own, err := b.connect(ctx, b.options.RecoveryUser)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	watchers, err := own.Watchers(ctx, b.place(), ceph.GraceObject)
	if err != nil {
		return nil, fmt.Errorf("listing the watchers of the grace object: %w", err)
	}
	return ceph.Dead(watchers), nil
}
