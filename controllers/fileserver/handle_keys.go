package fileserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/desired"
)

// lostKeysAfter is how long a data server's pod is pending before its Secret may be what it lacks. Tried again at
// this interval: no event would bring another pass.
const lostKeysAfter = 30 * time.Second

// handleKeys remembers which Secrets with keys of file handles exist, because the operator can't look: it
// may make Secrets and never read one.
type handleKeys struct {
	made sync.Map // By namespace, name.
}

// ensure makes the Secrets with the keys of file handles, each once. One that was deleted is made again when a
// pod waits for it; its key is another, and clients must mount again.
func (k *handleKeys) ensure(ctx context.Context, c client.Client, o *observed, now time.Time) error {
	waits := o.waitsSince(now.Add(-lostKeysAfter))
	for _, generation := range desired.HandleKeyGenerations(o.fileServer) {
		var random [desired.HandleKeysBytes]byte
		_, _ = rand.Read(random[:]) // Never fails: it ends the program instead.
		keys := desired.HandleKeys(o.fileServer, generation, random)
		if _, made := k.made.Load(client.ObjectKeyFromObject(keys)); made && !waits {
			continue
		}
		if err := c.Create(ctx, keys, client.FieldOwner(FieldManager)); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("making Secret %s: %w", keys.Name, err)
		}
		k.made.Store(client.ObjectKeyFromObject(keys), nil)
	}
	return nil
}

// waitsSince tells whether a data server's pod has been pending since then or longer.
func (o *observed) waitsSince(then time.Time) bool {
	for name := range o.pods {
		pod := o.pods[name]
		if isWaiting(&pod) && pod.CreationTimestamp.Time.Before(then) {
			return true
		}
	}
	return false
}

// hasWaiting tells whether a data server's pod was given a node and does not run there yet.
func (o *observed) hasWaiting() bool {
	for name := range o.pods {
		pod := o.pods[name]
		if isWaiting(&pod) {
			return true
		}
	}
	return false
}

func isWaiting(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
}
