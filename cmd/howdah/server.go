package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newServerCommand() *cobra.Command {
	return &cobra.Command{
		Use:  "server",
		RunE: func(*cobra.Command, []string) error { return errors.New("this role is not built yet") },
	}
}
