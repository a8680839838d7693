package kernels

import (
	"slices"
	"strconv"
	"strings"
)

// numbers are those of a kernel's version: 6.1.176.
func numbers(version string) (out []int) {
	for _, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

func older(a, b string) bool { return slices.Compare(numbers(a), numbers(b)) < 0 }

func sortVersions(versions []string) {
	slices.SortFunc(versions, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })
}

// firstWithAMX is the first Linux that starts in User-mode Linux on a processor with AMX without testdata/registers.c.
const firstWithAMX = "7.2"
