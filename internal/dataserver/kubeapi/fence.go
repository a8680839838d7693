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
	// fencePatience is how long the steward may take; ganesha starts meanwhile, and has waited out most of what it would be spared by then.
	fencePatience = 10 * time.Second
	fencePoll     = 20 * time.Millisecond
	// maxFenced is the schema's limit of addresses.
	maxFenced = 64
)

// Fence asks the FileServer's steward, in the DataServer's status, to shut out of Ceph what is left of the last start, and waits for its answer.
func (a *Source) Fence(ctx context.Context, addresses []string) error {
	id := rand.Text()
	request := internalv1.FenceRequest{ID: id, Addresses: addresses[:min(len(addresses), maxFenced)]}
	ctx, cancel := context.WithTimeout(ctx, fencePatience)
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
			return errors.New("the steward did not shut out what is left of the last start: " + answer.Fault)
		} else if answer.ID == id {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the steward did not answer within %s", fencePatience)
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
