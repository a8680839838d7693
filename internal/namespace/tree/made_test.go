package tree

import (
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
)

// A directory that this server has made is shown before its ShareDirectory is Ready, whatever else is changed of it meanwhile.
func TestADirectoryThatThisServerHasMadeIsShown(t *testing.T) {
	creating := func(version int) *internalv1.ShareDirectory { return newDirectory("s", "x", "fs-0", "", version) }
	other := creating(1)
	other.UID = "another"
	for name, test := range map[string]struct {
		do   func(tree *Tree)
		want bool
	}{
		"it is being made":              {func(*Tree) {}, false},
		"it is made":                    {func(tree *Tree) { tree.Made(creating(1)) }, true},
		"another of its name was":       {func(tree *Tree) { tree.Made(other) }, false},
		"its object comes by the watch": {func(tree *Tree) { tree.Made(creating(1)); tree.SetDirectory(creating(1)) }, true},
		"its object was changed":        {func(tree *Tree) { tree.Made(creating(1)); tree.SetDirectory(creating(2)) }, true},
		"its object is Ready": {func(tree *Tree) {
			tree.Made(creating(1))
			tree.SetDirectory(newDirectory("s", "x", "fs-0", internalv1.DirectoryReady, 3))
		}, true},
		"it is made again after it was ready": {func(tree *Tree) {
			tree.SetDirectory(newDirectory("s", "x", "fs-0", internalv1.DirectoryReady, 3))
			tree.SetDirectory(creating(4))
		}, false},
		"it was removed": {func(tree *Tree) { tree.DeleteDirectory("s", "x", string(creating(1).UID)); tree.Made(creating(1)) }, false},
		"it is being removed, after it was shown": {func(tree *Tree) {
			tree.Made(creating(1))
			tree.DeleteDirectory("s", "x", string(creating(1).UID))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := New("fs")
			tree.SetShare(fleet.ShareOf(newShare("s", "/s", 0, func(s *v1alpha1.FileShareSpec) { s.Depth = 1 })))
			tree.SetDirectory(creating(1))
			test.do(tree)
			if _, shown := tree.At("/s/x"); shown != test.want {
				t.Errorf("it is shown: %v", shown)
			}
		})
	}
}

func TestTheNewestUnfinishedDirectoryOfALevel(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	made := func(path string, state internalv1.DirectoryState, after time.Duration) *internalv1.ShareDirectory {
		o := newDirectory("s", path, "fs-0", state, 1)
		o.Annotations = map[string]string{MadeTimeAnnotation: FormatTime(at.Add(after))}
		return o
	}
	tree := New("fs")
	tree.SetShare(fleet.ShareOf(newShare("s", "/s", 0, func(s *v1alpha1.FileShareSpec) { s.Depth = 2 })))
	for _, o := range []*internalv1.ShareDirectory{
		made("a", "", 1*time.Second),
		made("b", "", 2*time.Second),
		made("c", internalv1.DirectoryRemoving, 3*time.Second),
		made("p/d", "", 4*time.Second),
		made("p/e", internalv1.DirectoryReady, 5*time.Second),
		made("p/f", internalv1.DirectoryRenaming, 6*time.Second),
	} {
		tree.SetDirectory(o)
	}
	for path, want := range map[string]time.Time{"/s": at.Add(2 * time.Second), "/s/p": at.Add(6 * time.Second), "/": {}} {
		dir, ok := tree.At(path)
		if got := tree.NewestUnfinished(&dir); !ok || !got.Equal(want) {
			t.Errorf("%s: %v, not %v", path, got, want)
		}
	}
}
