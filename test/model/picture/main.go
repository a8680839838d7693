// Command picture makes the picture of a result of make bench-model that is kept: docs/pictures/NAME.json becomes NAME.svg beside it.
//
//	go run ./test/model/picture docs/pictures/model.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/howdah/howdah/test/model"
)

func main() {
	if len(os.Args) != 2 || !strings.HasSuffix(os.Args[1], ".json") {
		fmt.Fprintln(os.Stderr, "usage: picture RESULT.json")
		os.Exit(2)
	}
	picture, err := of(os.Args[1])
	if err == nil {
		err = os.WriteFile(strings.TrimSuffix(os.Args[1], ".json")+".svg", []byte(picture), 0o644) //nolint:gosec // who runs this names it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// of is the picture of a result.
func of(file string) (string, error) {
	data, err := os.ReadFile(file) //nolint:gosec // who runs this names it
	if err != nil {
		return "", err
	}
	var run model.Run
	if err := json.Unmarshal(data, &run); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if len(run.Figures) == 0 {
		return "", fmt.Errorf("%s has no figures: take .test-results/model/run.json of make bench-model", file)
	}
	return draw(&run), nil
}
