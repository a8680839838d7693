package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Clone makes a new subvolume in the same group from a snapshot of another one. Ceph answers at once and copies in the
// background; CloneStatus reports the progress. The clone has the RADOS namespace of the source; with a pool (pool_layout),
// Ceph would give it no namespace at all (18.2.7, subvolume_v2.py, create_clone).
func (v Volume) Clone(source, snapshot, target string) Command {
	return v.command("fs subvolume snapshot clone", source, map[string]any{"snap_name": snapshot, "target_sub_name": target, "target_group_name": v.Group})
}

// CloneStatus asks for the state of a clone. Ceph returns ENOTSUP for a subvolume that is not a clone. For an incomplete clone
// Info returns EAGAIN.
func (v Volume) CloneStatus(clone string) Command { return v.clone("fs clone status", clone) }

// CancelClone stops the copy. The incomplete clone stays until RemoveUnfinished.
func (v Volume) CancelClone(clone string) Command { return v.clone("fs clone cancel", clone) }

func (v Volume) clone(name, clone string) Command {
	return v.command(name, "", map[string]any{"clone_name": clone})
}

// RemoveUnfinished moves a canceled or failed clone to Ceph's trash. Remove fails for such a clone.
func (v Volume) RemoveUnfinished(clone string) Command {
	return v.command("fs subvolume rm", clone, map[string]any{"force": true})
}

// errSilent means an empty answer without an error. A command that runs while the manager dies ends like that.
var errSilent = errors.New("the manager answered nothing: is one active (ceph mgr stat)?")

// CloneState is what Ceph reports about a clone.
type CloneState struct {
	// State is Ceph's state: pending, in-progress, complete, failed or canceled.
	State string
	// Progress is Ceph's text about the progress; "" before Ceph 19.2.
	Progress string
	// Failure is Ceph's text about the failure; "" if there is none.
	Failure string
}

// IsComplete reports whether the clone can be used.
func (s CloneState) IsComplete() bool { return s.State == "complete" }

// HasFailed reports whether the clone failed or was canceled.
func (s CloneState) HasFailed() bool { return s.State == "failed" || s.State == "canceled" }

// ParseCloneStatus reads the answer to Volume.CloneStatus.
func ParseCloneStatus(answer string) (CloneState, error) {
	var parsed struct {
		Status struct {
			State    string `json:"state"`
			Progress struct {
				Percentage string `json:"percentage cloned"`
				Amount     string `json:"amount cloned"`
			} `json:"progress_report"`
			Failure struct {
				// Ceph writes numbers as strings.
				Errno   json.RawMessage `json:"errno"`
				Message string          `json:"error_msg"`
			} `json:"failure"`
		} `json:"status"`
	}
	if strings.TrimSpace(answer) == "" {
		return CloneState{}, errSilent
	}
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil {
		return CloneState{}, fmt.Errorf("reading Ceph's answer about a clone: %w", err)
	}
	if parsed.Status.State == "" {
		return CloneState{}, fmt.Errorf("the answer of Ceph about a clone has no state: %s", answer)
	}
	state := CloneState{State: parsed.Status.State, Failure: parsed.Status.Failure.Message}
	if number := strings.Trim(string(parsed.Status.Failure.Errno), `"`); state.Failure != "" && number != "" {
		state.Failure += " (" + number + ")"
	}
	if progress := parsed.Status.Progress; progress.Percentage != "" {
		state.Progress = progress.Percentage
		if progress.Amount != "" {
			state.Progress += ", " + progress.Amount
		}
	}
	return state, nil
}
