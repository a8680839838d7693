package placement

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// ErrNoneEligible is what Choose and Plan return, wrapped with the figures, when no
// slot can take a directory. Trying again later is right: servers come and come back.
var ErrNoneEligible = errors.New("no data server can take a new directory")

// Owner is where a directory lives.
type Owner struct {
	// Server is the name of the data server.
	Server string
	// Volume is the index of the server's volume, from 0.
	Volume int32
}

// Slot is a volume of a data server that may take directories.
type Slot struct {
	Owner
	// Ready: the server serves, or is about to for the first time.
	Ready bool
	// TotalBytes is the size of the volume in bytes; 0 means unknown.
	TotalBytes int64
	// UsedBytes is what is used of it in bytes.
	UsedBytes int64
	// Tight and Full: the volume has little room, or none (fleet.Room). Directories hold growing data, so what is left is for those that are there.
	Tight, Full bool
	// ShareDirectories is the number of directories of the share in question that the slot owns.
	ShareDirectories int
	// Directories is the number of directories of all shares that the slot owns, this share's included.
	Directories int
}

// Directory is a directory that has an owner.
type Directory struct {
	// Share is the name of the share.
	Share string
	// Path is the path below the share's root.
	Path string
	// Owner is where the directory lives.
	Owner Owner
}

// Assignment is a directory of a plan.
type Assignment struct {
	// Path is the path below the share's root.
	Path string
	// Owner is where the directory lives, or is to live.
	Owner Owner
	// New: the directory had no owner before.
	New bool
}

// Count returns the slots with their counts filled in for a new directory of share.
// directories may be of any share; those of servers without a slot do not count.
func Count(slots []Slot, share string, directories []Directory) []Slot {
	counted := slices.Clone(slots)
	position := make(map[Owner]int, len(counted))
	for i := range counted {
		counted[i].ShareDirectories, counted[i].Directories = 0, 0
		position[counted[i].Owner] = i
	}
	for _, directory := range directories {
		i, known := position[directory.Owner]
		if !known {
			continue
		}
		counted[i].Directories++
		if directory.Share == share {
			counted[i].ShareDirectories++
		}
	}
	return counted
}

// Choose returns the owner of one new directory. The error is ErrNoneEligible with
// the figures, or names a slot that is listed twice.
func Choose(slots []Slot) (Owner, error) {
	servers, err := group(slots)
	if err != nil {
		return Owner{}, err
	}
	return choose(servers)
}

// Plan returns an assignment for each path, in natural order of the paths
// ("train/2" before "train/10"): the present owner where current has one, a new one for
// the others. The counts of slots must include current's directories (see Count). The
// error is ErrNoneEligible if there is a new path and no slot for it, or names a path or slot
// that is listed twice; then there is no assignment at all.
func Plan(slots []Slot, current map[string]Owner, paths []string) ([]Assignment, error) {
	servers, err := group(slots)
	if err != nil {
		return nil, err
	}
	ordered := slices.SortedFunc(slices.Values(paths), CompareNatural)
	plan := make([]Assignment, 0, len(ordered))
	for i, path := range ordered {
		if i > 0 && ordered[i-1] == path {
			return nil, fmt.Errorf("directory %q is listed twice; list it once", path)
		}
		if owner, placed := current[path]; placed {
			plan = append(plan, Assignment{Path: path, Owner: owner})
			continue
		}
		owner, err := choose(servers)
		if err != nil {
			return nil, err
		}
		servers.add(owner)
		plan = append(plan, Assignment{Path: path, Owner: owner, New: true})
	}
	return plan, nil
}

// load is what the rule compares, for a volume or for a server as a whole.
type load struct {
	share, all  int
	used, total int64
}

func (l *load) add(slot Slot) {
	l.share += slot.ShareDirectories
	l.all += slot.Directories
	if slot.TotalBytes > 0 {
		l.used += max(0, slot.UsedBytes)
		l.total += slot.TotalBytes
	}
}

// compare is the rule but for the names.
func (l load) compare(other load) int {
	return cmp.Or(
		cmp.Compare(l.share, other.share),
		cmp.Compare(l.all, other.all),
		compareFractions(l.used, l.total, other.used, other.total),
	)
}

// server is a data server with its slots, by volume.
type server struct {
	name string
	load
	slots []Slot
}

// servers are sorted by name.
type servers []*server

// group sorts the slots and puts those of a server together.
func group(slots []Slot) (servers, error) {
	ordered := slices.SortedFunc(slices.Values(slots), func(a, b Slot) int {
		return cmp.Or(CompareNatural(a.Server, b.Server), cmp.Compare(a.Volume, b.Volume))
	})
	var all servers
	for i, slot := range ordered {
		if i > 0 && ordered[i-1].Owner == slot.Owner {
			return nil, fmt.Errorf("volume %d of data server %q is listed twice; list it once", slot.Volume, slot.Server)
		}
		if len(all) == 0 || all[len(all)-1].name != slot.Server {
			all = append(all, &server{name: slot.Server})
		}
		last := all[len(all)-1]
		last.slots = append(last.slots, slot)
		last.load.add(slot)
	}
	return all, nil
}

// add counts a directory that was just placed.
func (s servers) add(owner Owner) {
	for _, candidate := range s {
		if candidate.name != owner.Server {
			continue
		}
		candidate.share++
		candidate.all++
		for i := range candidate.slots {
			if candidate.slots[i].Volume == owner.Volume {
				candidate.slots[i].ShareDirectories++
				candidate.slots[i].Directories++
			}
		}
	}
}

// choose applies the rule: first to volumes with room, then to any volume of a ready
// server that is not full, then to any, because space may come back.
func choose(all servers) (Owner, error) {
	for _, eligible := range []func(Slot) bool{
		func(slot Slot) bool { return slot.Ready && !slot.Tight && !slot.Full },
		func(slot Slot) bool { return slot.Ready && !slot.Full },
		func(slot Slot) bool { return slot.Ready },
	} {
		if owner, found := best(all, eligible); found {
			return owner, nil
		}
	}
	return Owner{}, fmt.Errorf("%w: %d of %d are ready; wait until one is", ErrNoneEligible, 0, len(all))
}

// best is the first of the least loaded servers with an eligible slot, and its least loaded one.
func best(all servers, eligible func(Slot) bool) (Owner, bool) {
	var chosen *server
	for _, candidate := range all {
		if !slices.ContainsFunc(candidate.slots, eligible) {
			continue
		}
		if chosen == nil || candidate.compare(chosen.load) < 0 {
			chosen = candidate
		}
	}
	if chosen == nil {
		return Owner{}, false
	}
	var volume *Slot
	for i := range chosen.slots {
		candidate := &chosen.slots[i]
		if eligible(*candidate) && (volume == nil || candidate.load().compare(volume.load()) < 0) {
			volume = candidate
		}
	}
	return volume.Owner, true
}

func (s Slot) load() load {
	var l load
	l.add(s)
	return l
}

// compareFractions compares a/b with c/d without rounding; a denominator of 0 (unknown) counts as 0.
func compareFractions(a, b, c, d int64) int {
	if b <= 0 {
		a, b = 0, 1
	}
	if d <= 0 {
		c, d = 0, 1
	}
	leftHigh, leftLow := bits.Mul64(uint64(max(0, a)), uint64(d))
	rightHigh, rightLow := bits.Mul64(uint64(max(0, c)), uint64(b))
	return cmp.Or(cmp.Compare(leftHigh, rightHigh), cmp.Compare(leftLow, rightLow))
}
