package docs

import (
	"fmt"
	"os"
	"strings"
)

// Table gives the rows of the table in a file whose first header cell is so, each with its cells; tests compare them
// with what the code does.
func Table(file, header string) ([][]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		switch {
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		case cells[0] == header:
			inside = true
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no table that begins with %q, or it is empty", file, header)
	}
	return rows, nil
}
