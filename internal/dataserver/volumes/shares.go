package volumes

import (
	"fmt"
	"os"
)

// sharesOnVolumes returns the names of all directories on the volumes that may belong to shares, each once.
func sharesOnVolumes(where layout, volumes int32) ([]string, error) {
	seen := map[string]bool{}
	var names []string
	for index := range volumes {
		entries, err := os.ReadDir(where.volume(index)) // The volume itself is no link: it is a mount.
		if err != nil {
			return nil, fmt.Errorf("looking for the shares on volume %d: %w", index, err)
		}
		for _, entry := range entries {
			if name := entry.Name(); entry.IsDir() && name != MetaDir && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, nil
}
