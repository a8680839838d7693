package tree

import (
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
)

// After the API's database was restored, a ShareDirectory has an earlier version, and one that was deleted is there again.
func TestWhatTheAPIHasAgainIsTaken(t *testing.T) {
	tree := New("fs")
	state := func(path string) internalv1.DirectoryState {
		r, ok := tree.Directory("s", path)
		if !ok {
			return "none"
		}
		return r.State
	}
	earlier, later := newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 5), newDirectory("s", "a", "fs-0", internalv1.DirectoryRemoving, 9)
	tree.SetDirectory(later)
	if tree.SetDirectory(earlier); state("a") != internalv1.DirectoryRemoving {
		t.Error("a watch that is late puts an earlier state in place of the own change")
	}
	if tree.RestoreDirectory(earlier); state("a") != internalv1.DirectoryReady {
		t.Error("the restored state is not taken")
	}
	deleted := newDirectory("s", "b", "fs-0", internalv1.DirectoryReady, 6)
	tree.SetDirectory(deleted)
	tree.DeleteDirectory("s", "b", string(deleted.UID))
	if tree.SetDirectory(deleted); state("b") != "none" {
		t.Error("a watch that is late brings back what was deleted")
	}
	if tree.RestoreDirectory(deleted); state("b") != internalv1.DirectoryReady {
		t.Error("the restored directory is not taken")
	}
	if tree.DeleteDirectory("s", "b", string(deleted.UID)); state("b") != "none" {
		t.Error("it can't be deleted again")
	}
	if tree.SetDirectory(deleted); state("b") != "none" {
		t.Error("a watch that is late brings back what was deleted twice")
	}
}

// A watch that was interrupted has a deletion and what was made in its place in one event. The renamed directory that is gone is not waited for.
func TestARenameThatAnotherDirectoryHasReplacedIsOver(t *testing.T) {
	tree := New("fs")
	renaming := newDirectory("s", "a", "fs-0", internalv1.DirectoryRenaming, 5)
	renaming.UID, renaming.Spec.Identity = "first", "kept"
	tree.SetDirectory(renaming)
	id := directoryID(NewDirectory(renaming))
	if _, _, moving := tree.Resolve(id); !moving {
		t.Error("it is not getting its name")
	}
	tree.SetDirectory(newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 9))
	if _, ok, moving := tree.Resolve(id); ok || moving {
		t.Error("it is getting its name still")
	}
}

// A ShareDirectory whose deletion nothing explains is lost. What was being removed, or was given up, is not: its name is free at once, whatever data servers
// are down.
func TestWhichDeletionsAreLosses(t *testing.T) {
	for name, tc := range map[string]struct {
		state internalv1.DirectoryState
		edit  func(*internalv1.ShareDirectory)
		lost  bool
	}{
		"ready":                   {state: internalv1.DirectoryReady, lost: true},
		"to go when it is empty":  {state: internalv1.DirectoryReady, edit: func(o *internalv1.ShareDirectory) { o.Spec.Removal = internalv1.RemovalWhenEmpty }},
		"on its way":              {state: internalv1.DirectoryMoving, lost: true},
		"being made":              {state: internalv1.DirectoryCreating},
		"being removed":           {state: internalv1.DirectoryRemoving},
		"missing, not looked for": {state: internalv1.DirectoryMissing, lost: true},
		"missing":                 {state: internalv1.DirectoryMissing, edit: func(o *internalv1.ShareDirectory) { o.Status.LossID = "another" }, lost: true},
		"given up":                {state: internalv1.DirectoryMissing, edit: func(o *internalv1.ShareDirectory) { o.Status.LossID = "accepted" }},
	} {
		t.Run(name, func(t *testing.T) {
			tree := New("fs")
			tree.SetShare(fleet.ShareOf(newShare("s", "/s", 0, func(spec *v1alpha1.FileShareSpec) { spec.AcceptedLosses = []string{"accepted"} })))
			o := newDirectory("s", "a", "fs-0", tc.state, 5)
			if tc.edit != nil {
				tc.edit(o)
			}
			tree.SetDirectory(o)
			if lost := tree.DeleteDirectory("s", "a", string(o.UID)) != nil; lost != tc.lost {
				t.Errorf("lost: %v, want %v", lost, tc.lost)
			}
		})
	}
}
