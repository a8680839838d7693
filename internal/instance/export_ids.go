package instance

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
)

const (
	// exportIDsFile is the part of MetaDir that remembers Export_Ids and the attributes last given to export roots.
	exportIDsFile    = "exports.json"
	exportIDsVersion = 1
	// maxExportID is the largest Export_Id of ganesha, which has 16 bits of a file handle for it.
	maxExportID = math.MaxUint16
)

// errExportIDsExhausted tells that every Export_Id is that of an export that exists.
var errExportIDsExhausted = errors.New("every Export_Id from 1 to 65535 is in use: " +
	"a data server can have at most 65535 exports, one for each share and volume; delete shares, or use another FileServer")

// exportNumber counts the exports of a data server, and never comes back. Ganesha's Export_Id is what 16 bits hold of it; the
// rest, its round, tells how often they were all spent before. File handles are signed with the round, so that
// one of an earlier export of the same id is refused (internal/ganesha/handles).
type exportNumber uint32

func (n exportNumber) id() uint16    { return uint16(n) }
func (n exportNumber) round() uint16 { return uint16(n >> 16) }

// exportIDTable is what a data server remembers of its exports. Each volume keeps a
// copy of its own part, and all keep the high-water mark, so that a volume that
// was lost and made anew can't bring a number back.
type exportIDTable struct {
	highWater exportNumber
	volumes   []map[string]exportIDEntry // by volume, then by share
}

// exportIDEntry is what is remembered of a share on a volume. It stays until its id is given to another, which
// happens after 65,535 others: a share that is made again with the same name gets its data, its id and so its file handles back.
type exportIDEntry struct {
	ExportID exportNumber `json:"exportID"`
	// Applied is what was last given to the root; nil if nothing was yet. A user's
	// chown or chmod of the root holds until its ShareExport asks for something else than this.
	Applied *rootAttributes `json:"applied,omitempty"`
}

// rootAttributes are the owner, group and permission bits of an export's root.
type rootAttributes struct {
	Owner int64  `json:"owner"`
	Group int64  `json:"group"`
	Mode  string `json:"mode"` // Octal, without leading zeros.
}

// exportIDsOnVolume is the form on a volume.
type exportIDsOnVolume struct {
	Version   int                      `json:"version"`
	HighWater exportNumber             `json:"highWater"`
	Shares    map[string]exportIDEntry `json:"shares"`
}

// allocate gives a share ids on every volume, or on none: a share that does not fit must take nothing from one that does.
// A share that has ids keeps them. Those of shares that are in use are not given to others; one that is not loses its own
// when the ids come round to it.
func (t *exportIDTable) allocate(share string, inUse map[string]bool) error {
	var without []int
	for volume := range t.volumes {
		if _, known := t.volumes[volume][share]; !known {
			without = append(without, volume)
		}
	}
	if len(without) == 0 {
		return nil
	}
	held := map[uint16]bool{}
	for _, shares := range t.volumes {
		for other, entry := range shares {
			if inUse[other] || other == share {
				held[entry.ExportID.id()] = true
			}
		}
	}
	if len(without) > maxExportID-len(held) || t.highWater > math.MaxUint32-2*maxExportID {
		return errExportIDsExhausted
	}
	for _, volume := range without {
		for t.highWater++; t.highWater.id() == 0 || held[t.highWater.id()]; t.highWater++ {
		}
		t.forget(t.highWater.id())
		held[t.highWater.id()] = true
		t.volumes[volume][share] = exportIDEntry{ExportID: t.highWater}
	}
	return nil
}

// forget takes an id from whoever had it.
func (t *exportIDTable) forget(id uint16) {
	if t.highWater.round() == 0 {
		return // Nobody had it.
	}
	for _, shares := range t.volumes {
		maps.DeleteFunc(shares, func(_ string, entry exportIDEntry) bool { return entry.ExportID.id() == id })
	}
}

// raise makes a number that was reported once count as used: a volume that was restored from an older copy has forgotten it.
func (t *exportIDTable) raise(reported int64) {
	if reported > 0 && reported <= math.MaxUint32 {
		t.highWater = max(t.highWater, exportNumber(reported))
	}
}

// rounds are how often each Export_Id was used before, for the library that signs file handles: two bytes for each id.
func (t *exportIDTable) rounds() []byte {
	table := make([]byte, 2*(maxExportID+1))
	for _, shares := range t.volumes {
		for _, entry := range shares {
			binary.NativeEndian.PutUint16(table[2*int(entry.ExportID.id()):], entry.ExportID.round())
		}
	}
	return table
}

// ids are the Export_Ids of a share, by volume.
func (t *exportIDTable) ids(share string) []int32 {
	if t == nil {
		return nil // The volumes were refused unread.
	}
	ids := make([]int32, 0, len(t.volumes))
	for _, shares := range t.volumes {
		ids = append(ids, int32(shares[share].ExportID.id()))
	}
	return ids
}

func (t *exportIDTable) clone() *exportIDTable {
	copied := &exportIDTable{highWater: t.highWater}
	for _, shares := range t.volumes {
		copied.volumes = append(copied.volumes, maps.Clone(shares))
	}
	return copied
}

// readExportIDs joins the volumes' parts. An unreadable or contradicting one is an
// error, not a fresh start: a guess could give an id to another directory.
func readExportIDs(where layout, volumes int32) (*exportIDTable, error) {
	joined := &exportIDTable{}
	owners := map[exportNumber]string{}
	for volume := range volumes {
		part, err := readExportIDsPart(where.meta(volume, exportIDsFile))
		if err != nil {
			return nil, err
		}
		joined.highWater = max(joined.highWater, part.HighWater)
		for share, entry := range part.Shares {
			here := where.share(share, volume)
			if entry.ExportID.id() == 0 {
				return nil, fmt.Errorf("%s: share %q has no Export_Id; restore the file from a backup of the volume",
					where.meta(volume, exportIDsFile), share)
			}
			if other, taken := owners[entry.ExportID]; taken {
				return nil, fmt.Errorf("Export_Id %d belongs to %s and to %s: one of the volumes was copied from another; "+
					"remove the copy's %s", entry.ExportID, other, here, exportIDsFile)
			}
			owners[entry.ExportID] = here
			joined.highWater = max(joined.highWater, entry.ExportID)
		}
		joined.volumes = append(joined.volumes, part.Shares)
	}
	return joined, nil
}

func readExportIDsPart(path string) (exportIDsOnVolume, error) {
	empty := exportIDsOnVolume{Version: exportIDsVersion, Shares: map[string]exportIDEntry{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("reading the Export_Ids: %w", err)
	}
	part := empty
	if err := json.Unmarshal(text, &part); err != nil {
		return empty, fmt.Errorf("%s is damaged; restore it from a backup of the volume: %w", path, err)
	}
	if part.Version != exportIDsVersion {
		return empty, fmt.Errorf("%s has version %d and this howdah knows %d; run the newer howdah that wrote it",
			path, part.Version, exportIDsVersion)
	}
	if part.Shares == nil {
		part.Shares = map[string]exportIDEntry{}
	}
	return part, nil
}

// write makes the export ID table durable on every volume whose copy differs.
func (t *exportIDTable) write(where layout) error {
	for volume, shares := range t.volumes {
		text, err := json.MarshalIndent(exportIDsOnVolume{exportIDsVersion, t.highWater, shares}, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding the Export_Ids: %w", err)
		}
		if err := writeDurably(where.meta(int32(volume), exportIDsFile), append(text, '\n')); err != nil {
			return fmt.Errorf("keeping the Export_Ids of volume %d: %w", volume, err)
		}
	}
	return nil
}
