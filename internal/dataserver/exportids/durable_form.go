package exportids

import (
	"encoding/json"
	"fmt"
	"path"
)

// version is that of the durable form.
const version = 1

// durableForm is how a part is kept.
type durableForm struct {
	Version   int              `json:"version"`
	HighWater Number           `json:"highWater"`
	Shares    map[string]Entry `json:"shares"`
}

// Join makes the table of its parts' texts; nil is a part that is new. An unreadable or contradicting one is an error,
// not a fresh start: a guess could give an id to another directory. nameOf says where a part's text is kept, placeOf where
// a share's data is; both are for messages.
func Join(texts [][]byte, nameOf func(part int32) string, placeOf func(share string, part int32) string) (*Table, error) {
	joined := &Table{}
	owners := map[Number]string{}
	for i, text := range texts {
		part := int32(i)
		read, err := parse(text, nameOf(part))
		if err != nil {
			return nil, err
		}
		joined.HighWater = max(joined.HighWater, read.HighWater)
		for share, entry := range read.Shares {
			here := placeOf(share, part)
			if entry.ExportID.ID() == 0 {
				return nil, fmt.Errorf("%s: share %q has no Export_Id; restore the file from a backup of the volume", nameOf(part), share)
			}
			if other, taken := owners[entry.ExportID]; taken {
				return nil, fmt.Errorf("Export_Id %d belongs to %s and to %s: one of the volumes was copied from another; "+
					"remove the copy's %s", entry.ExportID, other, here, path.Base(nameOf(part)))
			}
			owners[entry.ExportID] = here
			joined.HighWater = max(joined.HighWater, entry.ExportID)
		}
		joined.Parts = append(joined.Parts, read.Shares)
	}
	return joined, nil
}

func parse(text []byte, name string) (durableForm, error) {
	part := durableForm{Version: version, Shares: map[string]Entry{}}
	if text == nil {
		return part, nil
	}
	if err := json.Unmarshal(text, &part); err != nil {
		return part, fmt.Errorf("%s is damaged; restore it from a backup of the volume: %w", name, err)
	}
	if part.Version != version {
		return part, fmt.Errorf("%s has version %d and this howdah knows %d; run the newer howdah that wrote it", name, part.Version, version)
	}
	if part.Shares == nil {
		part.Shares = map[string]Entry{}
	}
	return part, nil
}

// Part is the text to keep of a part.
func (t *Table) Part(part int32) ([]byte, error) {
	text, err := json.MarshalIndent(durableForm{version, t.HighWater, t.Parts[part]}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the Export_Ids: %w", err)
	}
	return append(text, '\n'), nil
}
