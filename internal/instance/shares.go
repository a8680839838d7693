package instance

import (
	"context"
	"fmt"
	"os"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// sharesOnVolumes is the digest of the names of all directories that shares may have on the volumes, nil if they are too many.
func sharesOnVolumes(where layout, volumes int32) (*string, error) {
	seen := map[string]bool{}
	var names []string
	for index := range volumes {
		entries, err := os.ReadDir(where.volume(index))
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
	digest, ok := naming.DigestNames(names)
	if !ok {
		return nil, nil
	}
	return &digest, nil
}

// tellShares has the API know which shares are on the volumes before clients can write to a new one: while this server is away,
// what it told last is all that anybody can go by. The same holds for the last number of an export, if the volumes are
// restored from an older copy.
func (m *manager) tellShares(ctx context.Context) error {
	held, err := sharesOnVolumes(m.where, m.dataServer.Spec.Volumes)
	if err != nil {
		return err
	}
	m.shares = held
	last := int64(m.memory.highWater)
	return m.reporter.report(ctx, func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
		earlier.Shares = held
		if last > ptr.Deref(earlier.LastExportNumber, 0) {
			earlier.LastExportNumber = &last
		}
		return earlier
	})
}
