package conditions

import (
	"fmt"
	"strings"
)

// List joins at most limit items for a message, and adds the number of the others. The caller sorts the items, so that
// equal findings give equal messages.
func List(items []string, limit int) string {
	if len(items) <= limit {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), len(items)-limit)
}
