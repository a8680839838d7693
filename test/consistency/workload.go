package consistency

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// Directories are requests about a few directories in a few others, so that clients meet. above are the paths of the latter, of which
// the first ones are there and stay, names are those of the former.
type Directories struct {
	// Kept are there from the beginning, and stay.
	Kept []string
	// Gone come and go themselves.
	Gone  []string
	Names []string

	// renamed is how many names Renames have given. Each is a new one: the namespace replaces a directory in two steps
	// (docs/kinds/fileshare.md), which is for tests of its own (internal/namespace/crash).
	renamed atomic.Int64
}

// targets is how many of the last new names are asked for.
const targets = 3

// target is a new name.
func (d *Directories) target() string { return fmt.Sprintf("t%d", d.renamed.Add(1)) }

// known is one of the last new names; it is not known in which directory it is.
func (d *Directories) known(random *rand.Rand) string {
	return fmt.Sprintf("t%d", max(0, d.renamed.Load()-random.Int64N(targets)))
}

// Next is a random request.
func (d *Directories) Next(random *rand.Rand) Request {
	above := append(append([]string(nil), d.Kept...), d.Gone...)
	dir := func() string { return above[random.IntN(len(above))] }
	name := func() string { return dir() + "/" + d.Names[random.IntN(len(d.Names))] }
	entry := func() string {
		if random.IntN(3) == 0 {
			return dir() + "/" + d.known(random)
		}
		return name()
	}
	if len(d.Gone) > 0 && random.IntN(6) == 0 {
		p := d.Gone[random.IntN(len(d.Gone))]
		return Request{Kind: []Kind{Mkdir, Rmdir, Stat}[random.IntN(3)], Path: p}
	}
	switch n := random.IntN(20); {
	case n < 6:
		return Request{Kind: Mkdir, Path: name()}
	case n < 10:
		return Request{Kind: Rmdir, Path: entry()}
	case n < 13:
		return Request{Kind: Rename, Path: entry(), To: dir() + "/" + d.target()}
	case n < 17:
		return Request{Kind: Stat, Path: entry()}
	default:
		return Request{Kind: List, Path: dir()}
	}
}

// ValueSize is how long values of registers are: all the same, so that one replaces another whole.
const ValueSize = 20

// Files are requests about registers.
type Files struct {
	// Locked are used under locks, Open without.
	Locked, Open []string

	values atomic.Int64
}

// Next is a random request.
func (f *Files) Next(random *rand.Rand) Request {
	n := random.IntN(len(f.Locked) + len(f.Open))
	request := Request{Kind: Read}
	if n < len(f.Locked) {
		request.Path, request.Locked = f.Locked[n], true
		request.Kind = []Kind{Read, Read, Write, Swap, Swap}[random.IntN(5)]
	} else {
		request.Path = f.Open[n-len(f.Locked)]
		request.Kind = []Kind{Read, Read, Write}[random.IntN(3)]
	}
	if request.Kind != Read {
		value := fmt.Sprintf("value-%d-", f.values.Add(1))
		request.Value = value + strings.Repeat("x", ValueSize-len(value))
	}
	return request
}
