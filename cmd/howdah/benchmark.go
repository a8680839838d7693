package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newBenchmarkCommand() *cobra.Command {
	return &cobra.Command{
		Use:  "benchmark",
		RunE: func(*cobra.Command, []string) error { return errors.New("this role is not built yet") },
	}
}
