package tree

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/utils/lru"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
)

// full is a tree with 10,000 junctions in one directory.
func full(b *testing.B) *Tree {
	b.Helper()
	tr := New("fs")
	tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, nil)))
	for i := range 10_000 {
		tr.SetDirectory(newDirectory("s", fmt.Sprintf("d%05d", i), "fs-0", internalv1.DirectoryReady, i+1))
	}
	return tr
}

func BenchmarkBuildTenThousand(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var keep *Tree
	for b.Loop() {
		keep = full(b)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10_000, "B/directory")
	runtime.KeepAlive(keep)
}

func BenchmarkAddAndRemoveOneOfTenThousand(b *testing.B) {
	tr := full(b)
	version := 100_000
	for b.Loop() {
		version++
		r := newDirectory("s", "x", "fs-0", internalv1.DirectoryReady, version)
		r.UID = "x"
		tr.gone = lru.New(maxTombstones)
		tr.SetDirectory(r)
		tr.DeleteDirectory("s", "x", "x")
	}
}

func BenchmarkLookup(b *testing.B) {
	tr := full(b)
	id := idOf(tr, "/s")
	for b.Loop() {
		if _, ok := tr.Lookup(id, "d05000"); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkListTenThousand(b *testing.B) {
	tr := full(b)
	id := idOf(tr, "/s")
	for b.Loop() {
		n := 0
		tr.List(id, 0, func(*Entry) bool { n++; return true })
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkReadFourThousandShares is what a start takes with as many shares as a FileServer can have, and BenchmarkSetOneOfFourThousandShares each change of one.
func BenchmarkReadFourThousandShares(b *testing.B) {
	for b.Loop() {
		fourThousandShares()
	}
}

func BenchmarkSetOneOfFourThousandShares(b *testing.B) {
	tr := fourThousandShares()
	for b.Loop() {
		tr.SetShare(fleet.ShareOf(newShare("s7", "/team7/s7", 0, nil)))
	}
}

func fourThousandShares() *Tree {
	tr := New("fs")
	for i := range 4096 {
		tr.SetShare(fleet.ShareOf(newShare(fmt.Sprintf("s%d", i), fmt.Sprintf("/team%d/s%d", i%50, i), 0, nil)))
	}
	return tr
}
