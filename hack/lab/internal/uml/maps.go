package uml

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mapCountFile has how many mappings a process of the host may have.
const mapCountFile = "/proc/sys/vm/max_map_count"

// mapCount is how many mappings a guest's process may need: a page of 4 KiB whose neighbours are elsewhere in the guest's memory
// is a mapping of its own in the host. This many are 4 GiB of such pages. The host's usual 65,530 are 256 MiB, and there the
// kernel (7.2) does not notice that a page could not be mapped: the thread faults on it endlessly, half a core busy, and its
// registers are not what they were. OSDs of Ceph came to that within the hour.
const mapCount = 1 << 20

// allowMappings raises the host's limit in file to mapCount, and never lowers it. The limit is the whole host's, and stays.
func allowMappings(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if now >= mapCount {
		return nil
	}
	return os.WriteFile(file, []byte(strconv.Itoa(mapCount)), 0)
}
