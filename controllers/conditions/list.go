package conditions

import (
	"fmt"
	"strings"
)

// List joins items for a message: at most limit of them, and how many more there are.
// The caller sorts, so that equal findings give equal messages.
func List(items []string, limit int) string {
	if len(items) <= limit {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), len(items)-limit)
}
