package directories

import (
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/test/builders"
)

// What nothing can stand for must not keep the share from all others.
func TestADirectoryThatCantBeRecordedIsLeftOutAndNamed(t *testing.T) {
	w := newWorld(t, "", true)
	share := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}
	share.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: "/s", Depth: 5}
	share.Status.Conditions = builders.InventoriedConditions()
	w.leader.Tree.SetShare(fleet.ShareOf(builders.Defaulted(share)))
	name := strings.Repeat("n", 255)
	above := strings.Join([]string{name, name, name, "d"}, "/")
	// The one has 1,024 characters, the other one more.
	fits := above + "/" + strings.Repeat("n", maxPath-len(above)-1)
	for _, path := range []string{"p/q/r/s/a", fits, fits + "x"} {
		w.owner.Put("/s/0/"+path, ownertest.Directory{Mode: 0o755})
	}
	found := w.inventory(t)
	if found.FileShareUID != "s" || found.SkippedCount == nil || *found.SkippedCount != 1 || len(found.Skipped) != 1 {
		t.Fatalf("the inventory tells %+v", found)
	}
	if text := found.Skipped[0]; !strings.Contains(text, "(its path has 1025 characters, and can have 1024)") || len(text) > 512 || !utf8.ValidString(text) {
		t.Errorf("%q", text)
	}
	for _, path := range []string{"p/q/r/s/a", fits} {
		if r, ok := w.leader.Tree.Directory("s", path); !ok || r.State != internalv1.DirectoryReady {
			t.Errorf("%.20s has no ShareDirectory", path)
		}
	}
	w.owner.Drop("/s/0/" + fits + "x")
	if found := w.inventory(t); len(found.Skipped) > 0 || found.SkippedCount != nil {
		t.Errorf("it is gone, and the inventory tells %+v", found)
	}
}

func TestWhatTheAPIRefusesIsLeftOut(t *testing.T) {
	var result scanResult
	invalid := &errUnrecordable{apierrors.NewInvalid(schema.GroupKind{Kind: "ShareDirectory"}, "x", nil)}
	if err := result.unlessUnrecordable(tree.Slot{Volume: 3}, "p/x", invalid); err != nil || result.skippedCount != 1 || result.skipped[0] != `volume 3: "p/x" (the API refuses it)` {
		t.Errorf("%v, %v", err, result.skipped)
	}
	if err := result.unlessUnrecordable(tree.Slot{}, "p/y", apierrors.NewBadRequest("x")); err == nil || result.skippedCount != 1 {
		t.Errorf("%v, %v", err, result.skipped)
	}
}

func TestWhatCanBeRecorded(t *testing.T) {
	for path, can := range map[string]bool{
		"a/b": true, strings.Repeat("ä", maxPath): true, strings.Repeat("ä", maxPath+1): false, "a/\xff": false,
	} {
		if why := whyUnrecordable(path); (why == "") != can {
			t.Errorf("%.10q: %s", path, why)
		}
		var result scanResult
		result.leaveOut(1, path, "why")
		if text := result.skipped[0]; len(text) > 512 || !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
	}
}
