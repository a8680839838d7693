package kernels

import (
	"slices"
	"strconv"
	"strings"
	"testing"
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

// firstWithAMX is the first Linux that starts in User-mode Linux on a processor with AMX: in older ones the state of that
// processor's registers is larger than what they make room for.
const firstWithAMX = "7.2"

// startable leaves out the kernels that do not start on a processor, given the text of /proc/cpuinfo, and says which and why.
func startable(versions []string, processor string) (start []string, reason string) {
	if !slices.Contains(strings.Fields(processor), "amx_tile") {
		return versions, ""
	}
	var left []string
	for _, version := range versions {
		if older(version, firstWithAMX) {
			left = append(left, version)
		} else {
			start = append(start, version)
		}
	}
	if len(left) == 0 {
		return start, ""
	}
	return start, "SKIPPED: this processor has AMX, and kernels older than " + firstWithAMX + " do not start in User-mode Linux on it: " +
		strings.Join(left, ", ") + ". Run them on a machine with another processor."
}

func TestKernelsThatDoNotStartAreLeftOutAndNamed(t *testing.T) {
	all := []string{"5.10.0", "6.12.1", "7.2.0"}
	if start, reason := startable(all, "flags\t\t: fpu sse2 avx"); len(start) != 3 || reason != "" {
		t.Errorf("without AMX: %v, %q", start, reason)
	}
	start, reason := startable(all, "flags\t\t: fpu amx_tile avx")
	if !slices.Equal(start, all[2:]) || !strings.Contains(reason, "5.10.0, 6.12.1") {
		t.Errorf("with AMX: %v, %q", start, reason)
	}
}
