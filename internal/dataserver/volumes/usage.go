package volumes

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/dataserver/backend"
)

func readUsage(path string) (backend.Usage, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return backend.Usage{}, fmt.Errorf("measuring %s: %w", path, err)
	}
	block := stat.Bsize
	return backend.Usage{Total: int64(stat.Blocks) * block, Used: int64(stat.Blocks-stat.Bfree) * block}, nil
}
