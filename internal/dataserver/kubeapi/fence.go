package kubeapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

const (
	// fenceTimeout is how long the steward may take. Ganesha starts meanwhile; after this time a fence would save it little waiting.
	fenceTimeout = 10 * time.Second
	fencePoll    = 20 * time.Millisecond
	// maxFenced is the schema's limit of addresses.
	maxFenced = 64
)

// Fence asks the FileServer's steward, through the DataServer's status, to block the Ceph clients that the last start left. It waits for the
// answer.
func (a *Source) Fence(ctx context.Context, addresses []string) error {
	id := rand.Text()
	request := internalv1.FenceRequest{ID: id, Addresses: addresses[:min(len(addresses), maxFenced)]}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	err := a.Report(ctx, func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
		status.Fence = request
		return status
	})
	if err != nil {
		return fmt.Errorf("asking the steward for a fence: %w", err)
	}
	for poll := time.NewTicker(fencePoll); ; {
		if answer := a.fenced(); answer.ID == id && answer.Fault != "" {
			return errors.New("the steward could not block the Ceph clients that the last start left: " + answer.Fault)
		} else if answer.ID == id {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the steward did not answer within %s", fenceTimeout)
		case <-poll.C:
		}
	}
}

// fenced is the steward's newest answer.
func (a *Source) fenced() internalv1.FenceAnswer {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.newest == nil {
		return internalv1.FenceAnswer{}
	}
	return a.newest.Status.Fenced
}
