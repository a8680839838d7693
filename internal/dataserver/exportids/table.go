// Package exportids is what a data server remembers of its exports: which number each has, so that no Export_Id, and no file
// handle with it, ever means another directory. It decides; the back ends keep what it decides (internal/dataserver/backend). It
// must not import a back end.
package exportids

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
)

// MaxID is the largest Export_Id of ganesha, which has 16 bits of a file handle for it.
const MaxID = math.MaxUint16

// ErrExhausted means that every Export_Id belongs to an export that exists.
var ErrExhausted = errors.New("every Export_Id from 1 to 65535 is in use: " +
	"a data server can have at most 65535 exports, one for each share and volume; delete shares, or use another FileServer")

// Number counts the exports of a data server, and is never used again. Its lower 16 bits are ganesha's Export_Id; the upper 16 bits, its round,
// are how often all IDs were used up before. File handles are signed with the round, so that one of an earlier export with the same ID is
// refused (internal/ganesha/build/patches/0400-signed-handles.patch).
type Number uint32

// ID is the Export_Id.
func (n Number) ID() uint16 { return uint16(n) }

// Round is how often the ID was used before.
func (n Number) Round() uint16 { return uint16(n >> 16) }

// Table is what a data server remembers of its exports. If it has several parts (volumes), each keeps its own entries, and all keep the
// high-water mark, so that a number is not used again when one volume is lost and replaced.
type Table struct {
	// HighWater is the greatest number that was ever given.
	HighWater Number
	// Parts are by part, then by share.
	Parts []map[string]Entry
}

// Entry is what is remembered of a share on a part. It stays until the share's data is removed, or its id is given to another, which
// happens after 65,535 others: a share that is made again with the same name gets its data, its id and so its file handles back.
type Entry struct {
	ExportID Number `json:"exportID"`
	// Applied is what was last given to the root; nil if nothing was yet. A user's
	// chown or chmod of the root holds until its ShareExport asks for something else than this.
	Applied *RootAttributes `json:"applied,omitempty"`
	// RootID is the identity of the share's directory, where parts have identities: another directory of the name has another. It is kept
	// before the directory is made.
	RootID string `json:"rootID,omitempty"`
}

// RootAttributes are the owner, group and permission bits of an export's root.
type RootAttributes struct {
	Owner int64  `json:"owner"`
	Group int64  `json:"group"`
	Mode  string `json:"mode"` // Octal, without leading zeros.
}

// Allocate gives a share IDs on every part, or on none: a share that does not fit must not use up IDs. A share that has IDs keeps them. IDs of
// shares that are in use are not given to others. A share that is not in use loses its ID when its number comes up again.
func (t *Table) Allocate(share string, inUse map[string]bool) error {
	var without []int
	for part := range t.Parts {
		if _, known := t.Parts[part][share]; !known {
			without = append(without, part)
		}
	}
	if len(without) == 0 {
		return nil
	}
	held := map[uint16]bool{}
	for _, shares := range t.Parts {
		for other, entry := range shares {
			if inUse[other] || other == share {
				held[entry.ExportID.ID()] = true
			}
		}
	}
	if len(without) > MaxID-len(held) || t.HighWater > math.MaxUint32-2*MaxID {
		return ErrExhausted
	}
	for _, part := range without {
		for t.HighWater++; t.HighWater.ID() == 0 || held[t.HighWater.ID()]; t.HighWater++ {
		}
		t.forget(t.HighWater.ID())
		held[t.HighWater.ID()] = true
		t.Parts[part][share] = Entry{ExportID: t.HighWater}
	}
	return nil
}

// forget removes an ID from the share that had it.
func (t *Table) forget(id uint16) {
	if t.HighWater.Round() == 0 {
		return // In round 0 every ID is unused.
	}
	for _, shares := range t.Parts {
		maps.DeleteFunc(shares, func(_ string, entry Entry) bool { return entry.ExportID.ID() == id })
	}
}

// Raise makes a number that was reported once count as used: storage that was restored from an older copy has forgotten it.
func (t *Table) Raise(reported int64) {
	if reported > 0 && reported <= math.MaxUint32 {
		t.HighWater = max(t.HighWater, Number(reported))
	}
}

// Rounds are how often each Export_Id was used before, for the signatures of file handles: two bytes for each id.
func (t *Table) Rounds() []byte {
	table := make([]byte, 2*(MaxID+1))
	for _, shares := range t.Parts {
		for _, entry := range shares {
			binary.NativeEndian.PutUint16(table[2*int(entry.ExportID.ID()):], entry.ExportID.Round())
		}
	}
	return table
}

// IDs are the Export_Ids of a share, by part.
func (t *Table) IDs(share string) []int32 {
	if t == nil {
		return nil // The storage was refused unread.
	}
	ids := make([]int32, 0, len(t.Parts))
	for _, shares := range t.Parts {
		ids = append(ids, int32(shares[share].ExportID.ID()))
	}
	return ids
}

// RootIDs are the identities of a share's directories, by part; nil if none is known.
func (t *Table) RootIDs(share string) []string {
	if t == nil {
		return nil
	}
	ids, known := make([]string, 0, len(t.Parts)), false
	for _, shares := range t.Parts {
		ids, known = append(ids, shares[share].RootID), known || shares[share].RootID != ""
	}
	if !known {
		return nil
	}
	return ids
}

// Clone is a copy that can be changed by itself.
func (t *Table) Clone() *Table {
	copied := &Table{HighWater: t.HighWater}
	for _, shares := range t.Parts {
		copied.Parts = append(copied.Parts, maps.Clone(shares))
	}
	return copied
}
