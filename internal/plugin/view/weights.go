package view

import (
	"fmt"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// By is what a rebalance makes equal on all data servers.
type By string

// Values of By.
const (
	// ByNumber counts directories.
	ByNumber By = "number"
	// ByBytes weighs a directory by the bytes in it, as the storage counts them.
	ByBytes By = "bytes"
	// ByLoad weighs a directory by the bytes per second that clients read and write. Data servers report them for each share, not for each
	// directory: all directories of a share on one server get the same weight.
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

// Weighing gives weights to directories. The zero value counts them.
type Weighing struct {
	By By
	// weights are by the name of the ShareDirectory; nil: all have the same weight.
	weights map[string]int64
	// hot are the shares with directories that several data servers serve.
	hot []string
}

// Counting counts directories.
func Counting() Weighing { return Weighing{By: ByNumber} }

// WeighingBytes weighs by size in bytes, given by the name of the ShareDirectory.
func WeighingBytes(sizes map[string]int64) Weighing { return Weighing{By: ByBytes, weights: sizes} }

// Rates are bytes per second, by data server and share.
type Rates map[string]map[string]float64

// WeighingLoad weighs by load, given for each data server and share.
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
		if shares, known := rates[of.server]; known {
			weights[d.Name] = int64(shares[of.share]) / int64(owned[of])
		}
	})
	return Weighing{ByLoad, weights, hotShares(w, fs)}
}

// hotShares are the shares of a FileServer with directories that several data servers serve: named ones, or some that were found.
func hotShares(w *World, fs *v1alpha1.FileServer) (names []string) {
	if !isShared(fs) {
		return nil
	}
	for i := range w.FileShares {
		if share := &w.FileShares[i]; len(share.Spec.HotDirectories) > 0 && naming.ServerNamespace(share) == fs.Namespace && share.Spec.FileServerRef.Name == fs.Name {
			names = append(names, fleet.ShareOf(share).Key)
		}
	}
	for i := range w.Attachments { // FileShares of other Kubernetes namespaces may not be among those that were read.
		if a := &w.Attachments[i]; len(a.Spec.HotDirectories) > 0 && a.Namespace == fs.Namespace && a.Spec.FileServerRef.Name == fs.Name {
			names = append(names, a.Spec.FileShareRef.Name)
		}
	}
	for i := range w.Directories {
		if d := &w.Directories[i]; d.Namespace == fs.Namespace && d.Spec.FileServerRef.Name == fs.Name && d.Status.HotTime != nil {
			names = append(names, d.Spec.FileShareRef.Name)
		}
	}
	slices.SortFunc(names, placement.CompareNatural)
	return slices.Compact(names)
}

// KnowsSizes reports whether the sizes of a FileServer's directories are known: Ceph counts them.
func KnowsSizes(fs *v1alpha1.FileServer) bool { return isShared(fs) }

// Takers are the data servers that directories may move to.
func Takers(w *World, fs *v1alpha1.FileServer) (names []string) {
	for _, target := range targetsOf(w, fs) {
		names = append(names, target.Server)
	}
	return names
}

// Measured is a share whose directories are to be measured: its key, the depth of its directories (0: the share is one), and the data
// servers that can be asked.
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
			continue // All directories of a share have the same depth.
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

// isIdle reports whether all weights are 0.
func (g Weighing) isIdle(directories []placement.Movable) bool {
	for _, d := range directories {
		if d.Weight > 0 {
			return false
		}
	}
	return true
}

// nothing is the note of a plan without moves.
func (g Weighing) nothing() string {
	switch g.By {
	case ByBytes:
		return "Nothing to move: no move would change the bytes of a share on a data server by 2% of an even part or more."
	case ByLoad:
		return "Nothing to move: no move would change the load of a data server by 2% of an even part or more."
	default:
		return "Nothing to move: the directories of each share are spread evenly over the data servers that can take them."
	}
}

// notes explain the figures.
func (g Weighing) notes(unknown, moves int) (notes []string) {
	if unknown > 0 {
		notes = append(notes, fmt.Sprintf("%s without a known weight (just made, or on a data server that was not asked) would stay where they are.", plural(unknown, "directory")))
	}
	if g.By == ByLoad && moves > 0 {
		notes = append(notes, "The load is known for each share on a data server, not for each directory: all of them get the same weight. Clients that stay on the old data server still count as its load, so wait some minutes before you rebalance again.")
	}
	if g.By == ByLoad && moves > 0 && len(g.hot) > 0 {
		notes = append(notes, fmt.Sprintf("Several data servers serve hot directories of %s. What a data server sends of them counts as load of the directories that it owns, and a move does not change it: "+
			"look at the plan before you use it, or move directories by name (kubectl howdah move).", strings.Join(g.hot, ", ")))
	}
	return notes
}
