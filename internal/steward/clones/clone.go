package clones

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// Clone is the subvolume of a share that is to begin as a copy of a snapshot, and was never used.
type Clone struct {
	Volume ceph.Volume
	// Subvolume is the clone's own, Source that of the snapshot.
	Subvolume, Source string
	// Share is the share that the snapshot is of, Snapshot its name: for messages, and the latter is Ceph's.
	Share, Snapshot string
	// Begun is when it was about to be made for the first time, and nothing was there of its name; nil if it was not.
	Begun *time.Time
}

// Ask has Ceph carry out a command. The error is Ceph's own.
type Ask func(ctx context.Context, command ceph.Command) (string, error)

// Fault is why a clone can't be used yet, for users.
type Fault struct {
	// Reason is v1alpha1.ReasonCloning, or CloneRefused or CloneFailed.
	Reason string
	// Begin: it is about to be made, which is to be written down before the next try.
	Begin bool
	words string
	cause error
}

func (f *Fault) Error() string { return f.words }
func (f *Fault) Unwrap() error { return f.cause }

// Make goes as far as it can. It is nil if the clone is whole, a *Fault if not, and any other error is Ceph's, with which it was not possible to tell.
func (c *Clone) Make(ctx context.Context, ask Ask) error {
	found, state, err := c.look(ctx, ask)
	if err != nil {
		return err
	}
	switch next(c.Begun != nil, found) {
	case use:
		return nil
	case begin:
		return &Fault{Reason: v1alpha1.ReasonCloning, Begin: true, words: fmt.Sprintf("Ceph is about to copy %s", c.source())}
	case start:
		return c.start(ctx, ask)
	case wait:
		return c.waiting(state)
	case fail:
		return &Fault{Reason: v1alpha1.ReasonCloneFailed, words: fmt.Sprintf("Ceph ended the copy of %s, %s%s, and does not begin again by itself; nothing of it is served: "+
			"delete this share, which removes what there is of the copy, and make it again", c.source(), state.State, said(state.Failure))}
	}
	return &Fault{Reason: v1alpha1.ReasonCloneRefused, words: fmt.Sprintf("subvolume %s of group %s is there already, with the data of an earlier share of this name: it is neither served as %s nor removed. "+
		"Delete this share, and make it with another name, or without spec.source to have that data", c.Subvolume, c.Volume.Group, c.source())}
}

func (c *Clone) start(ctx context.Context, ask Ask) error {
	_, err := ask(ctx, c.Volume.Clone(c.Source, c.Snapshot, c.Subvolume))
	switch {
	case err == nil, errors.Is(err, syscall.EEXIST):
		return c.waiting(ceph.CloneState{State: "pending"})
	case errors.Is(err, syscall.EAGAIN):
		return &Fault{Reason: v1alpha1.ReasonCloning, cause: err, words: fmt.Sprintf("Ceph makes as many copies as it does at a time, and %s waits for its turn: %v", c.source(), err)}
	case errors.Is(err, syscall.ENOENT):
		return &Fault{Reason: v1alpha1.ReasonCloneFailed, cause: err, words: fmt.Sprintf("%s is not in Ceph any more (%v): delete this share, and make it from another snapshot", c.source(), err)}
	}
	return fmt.Errorf("having Ceph copy %s: %w", c.source(), err)
}

func (c *Clone) waiting(state ceph.CloneState) error {
	words := fmt.Sprintf("Ceph copies %s since %s: %s", c.source(), c.Begun.UTC().Format(time.RFC3339), state.State)
	if state.Progress != "" {
		words += ", " + state.Progress
	}
	return &Fault{Reason: v1alpha1.ReasonCloning, words: words}
}

// End removes a clone that is not whole. It is true if there is nothing else to end: no user was made for it, and no data is the share's.
func (c *Clone) End(ctx context.Context, ask Ask) (bool, error) {
	if c.Begun == nil {
		return true, nil // What is there is not this share's.
	}
	found, _, err := c.look(ctx, ask)
	if err != nil {
		return false, err
	}
	switch last(true, found) {
	case cancel:
		// EINVAL: it has ended meanwhile.
		if _, err := ask(ctx, c.Volume.CancelClone(c.Subvolume)); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
			return false, fmt.Errorf("ending the copy of %s: %w", c.source(), err)
		}
		return false, &Fault{Reason: v1alpha1.ReasonCloning, words: fmt.Sprintf("Ceph ends the copy of %s", c.source())}
	case discard:
		if _, err := ask(ctx, c.Volume.RemoveUnfinished(c.Subvolume)); err != nil && !errors.Is(err, syscall.ENOENT) {
			return false, fmt.Errorf("removing what there is of the copy of %s: %w", c.source(), err)
		}
		return true, nil
	case use:
		return false, nil
	}
	return true, nil
}

// look asks Ceph what there is.
func (c *Clone) look(ctx context.Context, ask Ask) (finding, ceph.CloneState, error) {
	answer, err := ask(ctx, c.Volume.CloneStatus(c.Subvolume))
	var state ceph.CloneState
	switch {
	case errors.Is(err, syscall.ENOENT):
		return absent, state, nil
	case errors.Is(err, syscall.ENOTSUP):
		// So answers a manager, too, that has just started and has not loaded what knows of subvolumes: it can't answer the other question either.
		if _, err := ask(ctx, c.Volume.Info(c.Subvolume)); err != nil {
			return "", state, fmt.Errorf("looking at what is in the place of the copy of %s: %w", c.source(), err)
		}
		return foreign, state, nil
	}
	if err == nil {
		state, err = ceph.ParseCloneStatus(answer)
	}
	switch {
	case err != nil:
		return "", state, fmt.Errorf("asking for the copy of %s: %w", c.source(), err)
	case state.IsComplete():
		return complete, state, nil
	case state.HasFailed():
		return failed, state, nil
	}
	return copying, state, nil
}

func (c *Clone) source() string { return fmt.Sprintf("snapshot %s of share %s", c.Snapshot, c.Share) }

func said(words string) string {
	if words == "" {
		return ""
	}
	return " (" + words + ")"
}
