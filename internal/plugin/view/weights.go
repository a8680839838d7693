package view

import (
	"fmt"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/placement"
)

// By is what a rebalancing makes even.
type By string

// What there is.
const (
	// ByNumber: each directory counts as one.
	ByNumber By = "number"
	// ByBytes: each counts the bytes in it, by the storage's own count.
	ByBytes By = "bytes"
	// ByLoad: each counts the bytes a second that clients read and write through its data server, in its share: what a server does for a share is told, and
	// not for which directory of it, so its directories there count alike.
	ByLoad By = "load"
)

func (b By) isWeighed() bool { return b == ByBytes || b == ByLoad }

func (b By) column() string {
	if b == ByLoad {
		return "LOAD"
	}
	return "SIZE"
}

func (b By) figure(n int64) string {
	if b == ByLoad {
		return rate(&n)
	}
	return bytes(n)
}

// Weighing gives directories their weights. The zero value counts them.
type Weighing struct {
	By By
	// weights are by ShareDirectory; nil: each weighs the same.
	weights map[string]int64
}

// Counting is by number.
func Counting() Weighing { return Weighing{By: ByNumber} }

// WeighingBytes is by bytes, from the sizes of ShareDirectories by their names.
func WeighingBytes(sizes map[string]int64) Weighing { return Weighing{ByBytes, sizes} }

// Rates are bytes a second, by data server and share.
type Rates map[string]map[string]float64

// WeighingLoad is by load, from what data servers serve of each share.
func WeighingLoad(w *World, fs *v1alpha1.FileServer, rates Rates) Weighing {
	type part struct{ server, share string }
	owned := map[part]int{}
	each := func(do func(part, *internalv1.ShareDirectory)) {
		for i := range w.Directories {
			if d := &w.Directories[i]; d.Namespace == fs.Namespace && d.Spec.FileServerRef.Name == fs.Name && d.Spec.DataServerRef.Name != "" {
				do(part{d.Spec.DataServerRef.Name, d.Spec.FileShareRef.Name}, d)
			}
		}
	}
	each(func(of part, _ *internalv1.ShareDirectory) { owned[of]++ })
	weights := map[string]int64{}
	each(func(of part, d *internalv1.ShareDirectory) {
		if shares, told := rates[of.server]; told {
			weights[d.Name] = int64(shares[of.share]) / int64(owned[of])
		}
	})
	return Weighing{ByLoad, weights}
}

// CanMove tells whether directories of a FileServer can move at all.
func CanMove(fs *v1alpha1.FileServer) bool { return isShared(fs) }

// Takers are the data servers that directories may move to.
func Takers(w *World, fs *v1alpha1.FileServer) (names []string) {
	for _, target := range targetsOf(w, fs) {
		names = append(names, target.Server)
	}
	return names
}

// Measured is a share whose directories are to be measured: by which key, how deep they are (0: the share is one), and who may be asked.
type Measured struct {
	Key     string
	Depth   int
	Servers []string
}

// ToMeasure are the shares that have directories on data servers, in order.
func ToMeasure(w *World, fs *v1alpha1.FileServer) (shares []Measured) {
	targets := targetsOf(w, fs)
	directories, _ := movablesOf(w, fs, Counting())
	for _, d := range directories {
		if slices.ContainsFunc(shares, func(m Measured) bool { return m.Key == d.Share }) {
			continue // All of a share are as deep.
		}
		one := Measured{Key: d.Share, Depth: strings.Count(d.Path, "/") + 1}
		if d.Path == tree.RootPath {
			one.Depth = 0
		}
		for _, target := range targets {
			if target.Serves(d.Share) {
				one.Servers = append(one.Servers, target.Server)
			}
		}
		shares = append(shares, one)
	}
	slices.SortFunc(shares, func(a, b Measured) int { return placement.CompareNatural(a.Key, b.Key) })
	return shares
}

func (g Weighing) of(d *internalv1.ShareDirectory) (weight int64, known bool) {
	if g.weights == nil {
		return 1, true
	}
	weight, known = g.weights[d.Name]
	return weight, known
}

// isIdle: by these figures there is nothing to even out.
func (g Weighing) isIdle(directories []placement.Movable) bool {
	for _, d := range directories {
		if d.Weight > 0 {
			return false
		}
	}
	return true
}

// nothing is what there is to say if nothing is to move.
func (g Weighing) nothing() string {
	switch g.By {
	case ByBytes:
		return "the data servers that can take directories have as many bytes of each share as there can be, to a fiftieth of a server's part: nothing is to move"
	case ByLoad:
		return "no move would bring the load of two data servers nearer by a fiftieth of a server's part: nothing is to move"
	default:
		return "the data servers that can take directories have as many of each share as there can be: nothing is to move"
	}
}

// notes are what to know of the figures.
func (g Weighing) notes(unknown, moves int) (notes []string) {
	if unknown > 0 {
		notes = append(notes, fmt.Sprintf("%s without a figure (just made, or on a data server that was not asked) are left where they are", plural(unknown, "directory")))
	}
	if g.By == ByLoad && moves > 0 {
		notes = append(notes, "a share's directories on one data server count alike, as which of them is busy is not told; who stays with the old data server is its load until then: wait some minutes before the next time")
	}
	return notes
}
