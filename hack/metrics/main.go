// Command metrics writes what is made from the catalogue of metrics: the reference page, and Grafana's dashboards.
//
//	go run ./hack/metrics reference >docs/reference/metrics.md
//	go run ./hack/metrics dashboards config/prometheus/dashboards
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/howdah/howdah/internal/metrics"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "reference":
		fmt.Print(metrics.Reference())
		return nil
	case len(args) == 2 && args[0] == "dashboards":
		return writeDashboards(args[1])
	}
	return errors.New("say reference, or dashboards and a folder")
}

func writeDashboards(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, d := range dashboards {
		text, err := json.MarshalIndent(d.grafana(), "", "  ")
		if err != nil {
			return err
		}
		if err := root.WriteFile(d.name+".json", append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	return nil
}
