package steward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// place is what data servers need for a share: the path of its subvolume, the Ceph user and the key.
type place struct {
	path, user, key string
}

// maxSecret is the maximum size of a Secret's data in bytes (corev1.MaxSecretSize).
const maxSecret = 1 << 20

// contents returns the data of the Secret for data servers. Each share has an entry <key>.json with its path and user, and
// each user has a keyring: the format of sharesSecretRef. recovery has the keys of the recovery users.
func contents(places map[string]place, recovery map[string]string) (map[string][]byte, error) {
	entries := map[string][]byte{}
	for share, at := range places {
		text, err := json.Marshal(map[string]string{"path": at.path, "user": at.user})
		if err != nil {
			return nil, err // Strings can always be encoded.
		}
		entries[share+".json"] = text
		entries[keyringName(at.user)] = []byte(keyring(at.user, at.key))
	}
	for user, key := range recovery {
		entries[keyringName(user)] = []byte(keyring(user, key))
	}
	size := 0
	for name, entry := range entries {
		size += len(name) + len(entry)
	}
	if size > maxSecret {
		return nil, fmt.Errorf("the %d shares need %d bytes of the Secret, which can have %d: use another FileServer for some of them", len(places), size, maxSecret)
	}
	return entries, nil
}

func keyringName(user string) string { return "client." + user + ".keyring" }

func keyring(user, key string) string { return "[client." + user + "]\n\tkey = " + key + "\n" }

func sameContents(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
