package volumes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/uuid"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/durable"
)

// markerFile is the file in MetaDir with the marker.
const markerFile = "volume.json"

// marker says to which data server a volume belongs.
type marker struct {
	FileServerUID string `json:"fileServerUID"`
	Namespace     string `json:"namespace"`
	FileServer    string `json:"fileServer"`
	DataServer    string `json:"dataServer"`
	Index         int32  `json:"index"`
	// ID is the volume's identity; "" in markers of versions that gave none.
	ID string `json:"id,omitempty"`
}

func markerOf(server *internalv1.DataServer, index int32) marker {
	return marker{
		FileServerUID: server.Spec.ServerScope,
		Namespace:     server.Namespace,
		FileServer:    server.Spec.FileServerRef.Name,
		DataServer:    server.Name,
		Index:         index,
	}
}

// claimVolume marks a volume as this data server's. Before anything is written to it, it refuses a volume that belongs
// to another data server, and a volume that is not the one that has the server's data according to the status. It
// returns the volume's identity. With an error it is the identity of the missing volume. If an earlier version wrote
// the status, the missing volume has no identity: it gets a new one, so that the user can give it up.
//
// A volume is accepted if its marker differs in the FileServer's UID only. A FileServer that was deleted and created
// again with the same name gets the kept claims, which have the same names. If they were refused, the kept data could
// not be reached. Two FileServers of a namespace can't have the same name, and a bound claim belongs to one namespace,
// so no other existing server's volume is accepted.
func claimVolume(where layout, server *internalv1.DataServer, index int32, log *slog.Logger) (id string, err error) {
	volume, err := where.open(index)
	if err != nil {
		return "", fmt.Errorf("volume %d is not mounted: %w", index, err)
	}
	defer func() { _ = volume.Close() }()
	path := where.meta(index, markerFile)
	wanted, expected := markerOf(server, index), expectationOf(server, index)
	found, err := readMarker(volume)
	if err != nil {
		return "", err
	}
	if found != nil {
		wanted.ID = found.ID
		renewed := *found
		renewed.FileServerUID = wanted.FileServerUID
		if renewed != wanted {
			return "", fmt.Errorf("claim %s: volume %d holds data of volume %d of data server %s/%s; nothing was changed on it: "+
				"give this server its own volume, or remove %s to hand the data over", claimOf(server, index), index, found.Index, found.Namespace,
				found.DataServer, path)
		}
	}
	if unfit := expected.unfit(found != nil, wanted.ID); unfit != "" {
		missing := cmp.Or(expected.id, string(uuid.NewUUID()))
		return missing, differentVolume(server, index, unfit, missing)
	}
	if found != nil && found.ID == "" && !expected.lost {
		wanted.ID = expected.id // The volume is an old copy from before it had an identity.
	}
	wanted.ID = cmp.Or(wanted.ID, string(uuid.NewUUID()))
	if expected.id != "" && expected.id != wanted.ID {
		log.Warn("using another volume instead of one whose data is given up", "volume", index, "lost", expected.id, "now", wanted.ID)
	}
	if found != nil && *found == wanted {
		return wanted.ID, ensureMetaDirs(where, index, volume)
	}
	if found != nil && found.FileServerUID != wanted.FileServerUID {
		log.Info("taking over the volume of an earlier FileServer of the same name",
			"volume", index, "earlierUID", found.FileServerUID, "uid", wanted.FileServerUID)
	}
	if err := ensureMetaDirs(where, index, volume); err != nil {
		return "", err
	}
	where.about("mark volume " + path)
	text, err := json.MarshalIndent(wanted, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the marker of volume %d: %w", index, err)
	}
	return wanted.ID, durable.WriteIn(volume, metaName(markerFile), append(text, '\n'))
}

func readMarker(volume *os.Root) (*marker, error) {
	text, err := volume.ReadFile(metaName(markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the marker of the volume: %w", err)
	}
	var found marker
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%s is damaged, so it is not known to which data server the volume belongs; restore it from a backup: %w", filepath.Join(volume.Name(), metaName(markerFile)), err)
	}
	return &found, nil
}

// ensureMetaDirs makes Howdah's own directories on a volume, which only root may access.
func ensureMetaDirs(where layout, index int32, volume *os.Root) error {
	names := []string{metaName(), metaName(TrashDir)}
	if index == 0 {
		names = append(names, metaName(RecoveryDir))
	}
	for _, name := range names {
		where.about("make " + filepath.Join(where.volume(index), name))
		if err := volume.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("preparing volume %d: %w", index, err)
		}
	}
	return nil
}
