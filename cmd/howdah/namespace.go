package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newNamespaceCommand() *cobra.Command {
	return &cobra.Command{
		Use:  "namespace",
		RunE: func(*cobra.Command, []string) error { return errors.New("this role is not built yet") },
	}
}
