package steward

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// place is what data servers need for a share: the path of its subvolume, the Ceph user and the key.
type place struct {
	path, user, key string
}

// maxSecret is the maximum size of a Secret's data in bytes (corev1.MaxSecretSize).
const maxSecret = 1 << 20

// roomForShares is what of it new shares may take. The rest is for the recovery users of data servers, so that more of these take no share's room.
const roomForShares = maxSecret - 64<<10

// contents returns the data of the Secret for data servers. Each share has an entry <key>.json with its path and user, and
// each user has a keyring: the format of sharesSecretRef. recovery has the keys of the recovery users.
func contents(places map[string]place, recovery map[string]string) (map[string][]byte, error) {
	entries := map[string][]byte{}
	for share, at := range places {
		own, err := entriesOf(share, at)
		if err != nil {
			return nil, err
		}
		maps.Copy(entries, own)
	}
	for user, key := range recovery {
		entries[keyringName(user)] = []byte(keyring(user, key))
	}
	if size := sizeOf(entries); size > maxSecret {
		return nil, fmt.Errorf("the %d shares need %d bytes of the Secret, which can have %d: use another FileServer for some of them", len(places), size, maxSecret)
	}
	return entries, nil
}

// entriesOf are those of one share.
func entriesOf(share string, at place) (map[string][]byte, error) {
	text, err := json.Marshal(map[string]string{"path": at.path, "user": at.user})
	if err != nil {
		return nil, err // Strings can always be encoded.
	}
	return map[string][]byte{share + ".json": text, keyringName(at.user): []byte(keyring(at.user, at.key))}, nil
}

func sizeOf(entries map[string][]byte) (size int) {
	for name, entry := range entries {
		size += len(name) + len(entry)
	}
	return size
}

// fitting are the places that the Secret has room for. A share that is in it stays. The others follow as they were made, and none before an older one that
// does not fit: it would have to go again when there is room for that.
func fitting(storages []*internalv1.ShareStorage, places map[string]place, written map[string][]byte, room int) (map[string]place, error) {
	fit := map[string]place{}
	var waiting []*internalv1.ShareStorage
	for _, storage := range storages {
		share := storage.Spec.FileShareRef.Name
		at, known := places[share]
		_, isIn := written[share+".json"]
		switch {
		case !known:
		case isIn || written == nil && storage.Status.Path != "" && !isLeftOut(storage): // Or it was before this steward started.
			own, err := entriesOf(share, at)
			if err != nil {
				return nil, err
			}
			fit[share], room = at, room-sizeOf(own)
		default:
			waiting = append(waiting, storage)
		}
	}
	slices.SortFunc(waiting, func(a, b *internalv1.ShareStorage) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, storage := range waiting {
		share := storage.Spec.FileShareRef.Name
		own, err := entriesOf(share, places[share])
		if err != nil {
			return nil, err
		}
		if room -= sizeOf(own); room < 0 {
			break
		}
		fit[share] = places[share]
	}
	return fit, nil
}

// isLeftOut reports whether the last thing that was reported of a share is that the Secret has no room for it.
func isLeftOut(storage *internalv1.ShareStorage) bool {
	ready := meta.FindStatusCondition(storage.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonTooManyShares
}

func keyringName(user string) string { return "client." + user + ".keyring" }

func keyring(user, key string) string { return "[client." + user + "]\n\tkey = " + key + "\n" }

func sameContents(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
