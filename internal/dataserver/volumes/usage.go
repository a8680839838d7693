package volumes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/fill"
)

// What ganesha keeps of each file system for records, beyond the reach of clients
// (internal/ganesha/build/patches/0421-room-for-records.patch).
const (
	keptPart       = 128
	keptBytesLeast = 1 << 20
	keptBytesMost  = 64 << 20
	keptFilesMost  = 16384
)

func readUsage(path string) (backend.Usage, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return backend.Usage{}, fmt.Errorf("measuring %s: %w", path, err)
	}
	return backend.Usage{Usage: usageOf(&stat)}, nil
}

// usageOf takes nothing on trust: file systems report free blocks that they don't have (a remote one, one that is being
// resized), and some have no table of inodes.
func usageOf(stat *unix.Statfs_t) fill.Usage {
	block := stat.Frsize
	if block <= 0 {
		block = stat.Bsize
	}
	bytes := func(blocks uint64) int64 {
		if block <= 0 || blocks > math.MaxInt64/uint64(block) {
			return 0
		}
		return int64(blocks) * block
	}
	total := bytes(stat.Blocks)
	kept := min(max(total/keptPart, keptBytesLeast), keptBytesMost)
	used := total - min(bytes(stat.Bfree), total)
	usage := fill.Usage{Bytes: fill.Amount{Total: total, Used: used, Free: max(0, min(bytes(stat.Bavail), total)-kept)}}
	if stat.Files > 0 && stat.Files <= math.MaxInt64 {
		files := int64(stat.Files)
		free := int64(min(stat.Ffree, stat.Files))
		usage.Files = fill.Amount{Total: files, Used: files - free, Free: max(0, free-min(files/keptPart, keptFilesMost))}
	}
	return usage
}

// bootIDFile has the ID of the kernel's start.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// fileSystemID is the same for what is on the same file system, in all pods of a node: a device number means something
// until the kernel starts again. The node's name would not do: nodes of kind have one kernel and its disk.
func fileSystemID(device string) string {
	boot, err := os.ReadFile(bootIDFile)
	if err != nil || device == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(boot)) + " " + device))
	return hex.EncodeToString(sum[:8])
}
