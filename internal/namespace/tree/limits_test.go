package tree

import (
	"fmt"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// Limits of the FileServer are for all shares together, and for those of each Kubernetes namespace but its own.
func TestDirectoriesHaveTheLimitsOfTheFileServer(t *testing.T) {
	limited := New("fs")
	put := func(share string, n int) {
		for i := range n {
			directory := builders.ShareDirectory("ns", "fs", share, fmt.Sprintf("d%d", i), "fs-0")
			directory.Name, directory.UID = fmt.Sprintf("%s-%d", share, i), ""
			limited.SetDirectory(directory)
		}
	}
	add := func(key string, edit ...func(*v1alpha1.FileShare)) *Share {
		namespace, name := naming.ShareOfKey("ns", key)
		share := builders.FileShare(namespace, name, "fs").OnNamespace("ns").Path("/" + key).Build()
		for _, e := range edit {
			e(share)
		}
		limited.SetShare(fleet.ShareOf(share))
		s := NewShare(fleet.ShareOf(share))
		return s
	}
	own := add("own")
	a1, a2, b := add(naming.ShareKey("ns", "team-a", "one")), add(naming.ShareKey("ns", "team-a", "two")), add(naming.ShareKey("ns", "team-b", "one"))
	claim := add("pvc-1", func(s *v1alpha1.FileShare) {
		s.Spec.ClaimRef = v1alpha1.ClaimReference{Namespace: "team-b", Name: "claim"}
	})
	expect := func(when string, want map[*Share]Full) {
		t.Helper()
		for share, full := range want {
			if got := limited.Full(share); got != full {
				t.Errorf("%s: %s is full: %q, want %q", when, share.Name, got, full)
			}
		}
	}
	put(a1.Name, 2)
	expect("before there are limits", map[*Share]Full{a1: FullNot, own: FullNot})
	server := &internalv1.DataServer{Spec: internalv1.DataServerSpec{
		FileServerRef: internalv1.FileServerReference{Name: "fs"}, DirectoryLimits: internalv1.DirectoryLimits{Total: 10, PerNamespace: 4},
	}}
	server.Name = "fs-0"
	limited.SetServer(server)
	put(a2.Name, 2)
	expect("a namespace is full", map[*Share]Full{a1: FullNamespace, a2: FullNamespace, b: FullNot, claim: FullNot, own: FullNot})
	put(claim.Name, 4)
	expect("a claim's share counts for the claim's namespace", map[*Share]Full{b: FullNamespace, claim: FullNamespace, own: FullNot})
	put(naming.ShareKey("ns", "team-c", "gone"), 2)
	expect("directories of a share that is gone count", map[*Share]Full{own: FullTotal})
	small := *own
	small.MaxDirectories = 0
	expect("the share's own limit comes first", map[*Share]Full{&small: FullShare})
}

// While a directory gets another name it has two ShareDirectories. It counts once, so that no mkdir is refused because of it.
func TestADirectoryThatIsRenamedCountsOnce(t *testing.T) {
	tr := New("fs")
	share := fleet.ShareOf(builders.FileShare("ns", "s", "fs").Path("/s").Build())
	share.MaxDirectories = 3
	tr.SetShare(share)
	s, _ := tr.Share("s")
	put := func(path string, state internalv1.DirectoryState, from string) {
		o := builders.ShareDirectory("ns", "fs", "s", path, "fs-0")
		o.Name, o.Status.State, o.Spec.RenamedFrom = path, state, from
		tr.SetDirectory(o)
	}
	put("a", internalv1.DirectoryReady, "")
	put("b", internalv1.DirectoryRemoving, "")
	put("c", internalv1.DirectoryRenaming, "b")
	if full := tr.Full(s); full != FullNot {
		t.Errorf("two directories of at most three: %q is reached", full)
	}
	put("d", internalv1.DirectoryReady, "")
	if full := tr.Full(s); full != FullShare {
		t.Errorf("three of at most three: %q", full)
	}
}
