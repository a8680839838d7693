package instance

import (
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

// errExportIDsExhausted tells that every Export_Id has been used once.
var errExportIDsExhausted = errors.New("every Export_Id from 1 to 65535 has been used: " +
	"a data server can export at most 65535 different share names times volumes in its life; use another FileServer")

// exportIDTable is what a data server remembers of its exports. Each volume keeps a
// copy of its own part, and all keep the high-water mark, so that a volume that
// was lost and made anew can't bring an id back.
type exportIDTable struct {
	highWater uint16
	volumes   []map[string]exportIDEntry // by volume, then by share
}

// exportIDEntry is what is remembered of a share on a volume. It stays for ever: a share
// that is made again with the same name gets its data, its id and so its file handles back.
type exportIDEntry struct {
	ExportID uint16 `json:"exportID"`
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
	HighWater uint16                   `json:"highWater"`
	Shares    map[string]exportIDEntry `json:"shares"`
}

// allocate gives a share ids on every volume, or on none: a share that does not fit must take nothing from one that does.
// A share that has ids keeps them.
func (t *exportIDTable) allocate(share string) error {
	var without []int
	for volume := range t.volumes {
		if _, known := t.volumes[volume][share]; !known {
			without = append(without, volume)
		}
	}
	if len(without) > maxExportID-int(t.highWater) {
		return errExportIDsExhausted
	}
	for _, volume := range without {
		t.highWater++
		t.volumes[volume][share] = exportIDEntry{ExportID: t.highWater}
	}
	return nil
}

// raise makes ids that were reported once count as used: a volume that was restored from an older copy has forgotten them.
func (t *exportIDTable) raise(reported []int32) {
	for _, id := range reported {
		if id > 0 && id <= maxExportID {
			t.highWater = max(t.highWater, uint16(id))
		}
	}
}

// ids are the Export_Ids of a share, by volume.
func (t *exportIDTable) ids(share string) []int32 {
	if t == nil {
		return nil // The volumes were refused unread.
	}
	ids := make([]int32, 0, len(t.volumes))
	for _, shares := range t.volumes {
		ids = append(ids, int32(shares[share].ExportID))
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
	owners := map[uint16]string{}
	for volume := range volumes {
		part, err := readExportIDsPart(where.meta(volume, exportIDsFile))
		if err != nil {
			return nil, err
		}
		joined.highWater = max(joined.highWater, part.HighWater)
		for share, entry := range part.Shares {
			here := where.share(share, volume)
			if entry.ExportID == 0 {
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
