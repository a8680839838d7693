package placement

import (
	"cmp"
	"strings"
)

// CompareNatural orders names as people number them: "train/2" before "train/10".
// Neighbours in this order go to different servers, so that clients that take
// consecutive numbers each reach all servers. It is a total order: only equal strings compare equal.
func CompareNatural(a, b string) int {
	left, right := a, b
	for left != "" && right != "" {
		if isDigit(left[0]) && isDigit(right[0]) {
			x, y := digits(left), digits(right)
			left, right = left[len(x):], right[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if order := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); order != 0 {
				return order
			}
			continue
		}
		if left[0] != right[0] {
			return cmp.Compare(left[0], right[0])
		}
		left, right = left[1:], right[1:]
	}
	return cmp.Or(cmp.Compare(len(left), len(right)), cmp.Compare(a, b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits is the run of digits that s starts with.
func digits(s string) string {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return s[:end]
}
