package instance

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// usageSteps is in how many steps the use of a volume is reported.
const usageSteps = 64

// volumeUsage is how full a volume is, in bytes.
type volumeUsage struct {
	total, used int64
	// shared says what else is on its file system, "" for nothing.
	shared string
}

func readUsage(path string) (volumeUsage, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return volumeUsage{}, fmt.Errorf("measuring %s: %w", path, err)
	}
	block := stat.Bsize
	return volumeUsage{total: int64(stat.Blocks) * block, used: int64(stat.Blocks-stat.Bfree) * block}, nil
}

// coarse rounds the use up to a step of 1/64 of the size. It keeps what was reported
// before while the real use is in that step or the upper quarter of the one below, so that
// writes and deletes around a border do not change the status each time.
func coarse(real, reported volumeUsage) volumeUsage {
	step := real.total / usageSteps
	if step == 0 {
		return real
	}
	if reported.total == real.total && reported.used%step == 0 &&
		real.used <= reported.used && real.used > reported.used-step-step/4 {
		return reported
	}
	steps := (real.used + step - 1) / step
	return volumeUsage{total: real.total, used: min(steps*step, real.total)}
}
