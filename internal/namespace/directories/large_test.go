package directories

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/namespace/ownertest"
)

const (
	// manyFiles is a claim that was in use for long.
	manyFiles = 3_000_000 / slower
	// mostHeap is what a look at it may add to the heap, garbage included. All entries at once are more than 512 MiB.
	mostHeap = 48 << 20
)

// grows is how many bytes the heap had more at a time than before.
func grows(do func()) int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before, most := int64(stats.HeapAlloc), int64(0)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		var stats runtime.MemStats
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				runtime.ReadMemStats(&stats)
				most = max(most, int64(stats.HeapAlloc)-before)
			}
		}
	})
	do()
	close(done)
	watch.Wait()
	return most
}

// One entry tells that a root is not empty.
func TestAFullRootIsNotListed(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutSingle, true)
	w.owner.Put("/s/0/.howdah", ownertest.Directory{Mode: 0o755})
	w.owner.Fill("/s/0", manyFiles)
	var found internalv1.ShareInventory
	grown := grows(func() { found = w.inventory(t) })
	if !slices.Equal(found.OccupiedVolumes, []int32{0}) {
		t.Errorf("the volume has %d files, and the inventory says %+v", manyFiles, found)
	}
	if n := w.owner.Calls("readdir"); n > 2 {
		t.Errorf("%d pages were listed", n)
	}
	if grown > mostHeap {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// Names that look like Howdah's own are no reason to list all either.
func TestARootFullOfOwnNamesIsOccupied(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutSingle, true)
	for i := range mostOwn + 500 {
		w.owner.Put(fmt.Sprintf("/s/0/.howdah-%d", i), ownertest.Directory{Mode: 0o755})
	}
	if found := w.inventory(t); !slices.Equal(found.OccupiedVolumes, []int32{0}) {
		t.Errorf("%+v", found)
	}
	if n := w.owner.Calls("readdir"); n > mostOwn/100+1 {
		t.Errorf("%d pages of 100 were listed", n)
	}
}

// Of a directory with millions of files beside the directories that are looked for, one page is in memory.
func TestAScanHoldsOnePageOfALargeDirectory(t *testing.T) {
	w := newWorld(t, "", true)
	for i := range 250 {
		w.owner.Put(fmt.Sprintf("/s/0/p/d%03d", i), ownertest.Directory{Mode: 0o755})
	}
	share, _ := w.leader.Tree.Share("s")
	server, _ := w.leader.Tree.Server("fs-0")
	for _, look := range []struct {
		name  string
		files int
		do    func() error
	}{
		{"a scan", manyFiles, func() error { return w.leader.scan(t.Context(), task{share: "s", server: "fs-0"}) }},
		{"a check", manyFiles / 10, func() error { return w.leader.check(t.Context(), share, server) }},
	} {
		w.owner.Fill("/s/0/p", look.files)
		if look.name == "a check" {
			w.keep(t, left("p/gone", internalv1.DirectoryReady))
		}
		began := time.Now()
		grown := grows(func() {
			if err := look.do(); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s looked through %d files in %v, with %d MiB", look.name, look.files, time.Since(began).Round(100*time.Millisecond), grown>>20)
		if grown > mostHeap {
			t.Errorf("%s: the heap grew by %d MiB", look.name, grown>>20)
		}
	}
	if n := w.leader.Tree.Directories("s"); n != 252 { // and p, and p/gone.
		t.Errorf("%d directories are known", n)
	}
	if r, ok := w.leader.Tree.Directory("s", "p/gone"); !ok || r.State != internalv1.DirectoryMissing {
		t.Errorf("what is not there has the ShareDirectory %+v", r)
	}
}

// A scan that is cut short tells nothing: what it has not seen may be there.
func TestAScanThatIsCutShortReportsNothing(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.owner.Fill("/s/0/p", manyFiles)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for w.owner.Calls("readdir") < 3 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if err := w.leader.scan(ctx, task{share: "s", server: "fs-0"}); err == nil {
		t.Error("it is done")
	}
}

// Where a data server has more directories than an answer may have, those that came are shown, and none of the others is taken for missing.
func TestMoreDirectoriesThanAnAnswerHas(t *testing.T) {
	w := newWorld(t, "", true)
	w.inCeph()
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.keep(t, left("p/beyond", internalv1.DirectoryReady))
	w.leader.List = func(context.Context, string, string, int32) ([]listing.Directory, error) {
		return []listing.Directory{{Path: "p", Mode: 0o755}, {Path: "p/a", Mode: 0o755}}, fmt.Errorf("the share is large: %w", listing.ErrTooMany)
	}
	share, _ := w.leader.Tree.Share("s")
	server, _ := w.leader.Tree.Server("fs-0")
	for range 2 * listsAtATime {
		if err := w.leader.check(t.Context(), share, server); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"p/a", "p/beyond"} {
		if _, ok := w.leader.Tree.Directory("s", path); !ok {
			t.Errorf("%s has no ShareDirectory", path)
		}
	}
	w.leader.List = func(context.Context, string, string, int32) ([]listing.Directory, error) {
		return nil, errors.New("Ceph is away")
	}
	for range 2 * listsAtATime {
		if err := w.leader.check(t.Context(), share, server); err == nil {
			t.Error("a check of what can't be listed is done")
		}
	}
}
