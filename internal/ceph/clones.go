package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Clone has a new subvolume made, in the same group, with what a snapshot of another one has in it. Ceph copies in the background, and answers at once;
// CloneStatus tells how far it is. It keeps the RADOS namespace of the source: named a pool (pool_layout) Ceph would give it none at all (18.2.7,
// subvolume_v2.py, create_clone).
func (v Volume) Clone(source, snapshot, target string) Command {
	return v.command("fs subvolume snapshot clone", source, map[string]any{"snap_name": snapshot, "target_sub_name": target, "target_group_name": v.Group})
}

// CloneStatus asks what became of a clone. Ceph answers ENOTSUP of a subvolume that is none; Info of one that is not complete is EAGAIN.
func (v Volume) CloneStatus(clone string) Command { return v.clone("fs clone status", clone) }

// CancelClone ends the copying. What is there of the clone stays until RemoveUnfinished.
func (v Volume) CancelClone(clone string) Command { return v.clone("fs clone cancel", clone) }

func (v Volume) clone(name, clone string) Command {
	return v.command(name, "", map[string]any{"clone_name": clone})
}

// RemoveUnfinished moves a clone to Ceph's trash that was cancelled or failed; Remove does not take it.
func (v Volume) RemoveUnfinished(clone string) Command {
	return v.command("fs subvolume rm", clone, map[string]any{"force": true})
}

// errSilent is an answer with nothing in it, and no error: so ends a command that was under way when the manager died.
var errSilent = errors.New("the manager answered nothing: is one active (ceph mgr stat)?")

// CloneState is what Ceph says of a clone.
type CloneState struct {
	// State is that of Ceph's own machine: pending, in-progress, complete, failed or canceled.
	State string
	// Progress is how far it is, in Ceph's words; "" before Ceph 19.2.
	Progress string
	// Failure is why it failed, in Ceph's words; "" if it did not, or Ceph doesn't know.
	Failure string
}

// IsComplete tells whether the clone can be used.
func (s CloneState) IsComplete() bool { return s.State == "complete" }

// HasFailed tells whether nothing more will come of it.
func (s CloneState) HasFailed() bool { return s.State == "failed" || s.State == "canceled" }

// ParseCloneStatus reads the answer to Volume.CloneStatus.
func ParseCloneStatus(answer string) (CloneState, error) {
	var told struct {
		Status struct {
			State    string `json:"state"`
			Progress struct {
				Percentage string `json:"percentage cloned"`
				Amount     string `json:"amount cloned"`
			} `json:"progress_report"`
			Failure struct {
				// Numbers are written as texts.
				Errno   json.RawMessage `json:"errno"`
				Message string          `json:"error_msg"`
			} `json:"failure"`
		} `json:"status"`
	}
	if strings.TrimSpace(answer) == "" {
		return CloneState{}, errSilent
	}
	if err := json.Unmarshal([]byte(answer), &told); err != nil {
		return CloneState{}, fmt.Errorf("what Ceph says of a clone is no answer: %w", err)
	}
	if told.Status.State == "" {
		return CloneState{}, fmt.Errorf("no state is told of a clone: %s", answer)
	}
	state := CloneState{State: told.Status.State, Failure: told.Status.Failure.Message}
	if number := strings.Trim(string(told.Status.Failure.Errno), `"`); state.Failure != "" && number != "" {
		state.Failure += " (" + number + ")"
	}
	if progress := told.Status.Progress; progress.Percentage != "" {
		state.Progress = progress.Percentage
		if progress.Amount != "" {
			state.Progress += ", " + progress.Amount
		}
	}
	return state, nil
}
