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

// Clone is the subvolume of a share that starts as a copy of a snapshot and was never used.
type Clone struct {
	Volume ceph.Volume
	// Subvolume is the clone, Source the subvolume of the snapshot.
	Subvolume, Source string
	// Share is the share of the snapshot (for messages), Snapshot the snapshot's name in Ceph.
	Share, Snapshot string
	// Begun is when the clone was about to be made and no subvolume of its name existed; nil if that was not recorded yet.
	Begun *time.Time
}

// Ask sends a command to Ceph and returns Ceph's error unchanged.
type Ask func(ctx context.Context, command ceph.Command) (string, error)

// Fault is why a clone can't be used yet, for users.
type Fault struct {
	// Reason is v1alpha1.ReasonCloning, or CloneRefused or CloneFailed.
	Reason string
	// Begin: the clone is about to be made. Record that before the next call of Make.
	Begin bool
	words string
	cause error
}

func (f *Fault) Error() string { return f.words }
func (f *Fault) Unwrap() error { return f.cause }

// Make takes the next step. It returns nil if the clone is complete, and a *Fault if it is not. Any other error is Ceph's, and
// the state of the clone is not known.
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
		return &Fault{Reason: v1alpha1.ReasonCloneFailed, words: fmt.Sprintf("Ceph ended the copy of %s, %s%s, and does not start it again; nothing of it is served: "+
			"delete this share, which removes what there is of the copy, and make it again", c.source(), state.State, inParentheses(state.Failure))}
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

// End removes an incomplete clone. It returns true if nothing else is to be removed: the share has neither a user nor data.
func (c *Clone) End(ctx context.Context, ask Ask) (bool, error) {
	if c.Begun == nil {
		return true, nil // A subvolume of this name does not belong to this share.
	}
	found, _, err := c.look(ctx, ask)
	if err != nil {
		return false, err
	}
	switch last(true, found) {
	case cancel:
		// EINVAL: the copy has ended meanwhile.
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

// look asks Ceph for the state of the clone.
func (c *Clone) look(ctx context.Context, ask Ask) (finding, ceph.CloneState, error) {
	answer, err := ask(ctx, c.Volume.CloneStatus(c.Subvolume))
	var state ceph.CloneState
	switch {
	case errors.Is(err, syscall.ENOENT):
		return absent, state, nil
	case errors.Is(err, syscall.ENOTSUP):
		// A manager that has just started and has not loaded its volumes module also returns ENOTSUP. Then Info fails, too.
		if _, err := ask(ctx, c.Volume.Info(c.Subvolume)); err != nil {
			return "", state, fmt.Errorf("looking at the subvolume that has the name of the copy of %s: %w", c.source(), err)
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

func inParentheses(words string) string {
	if words == "" {
		return ""
	}
	return " (" + words + ")"
}
