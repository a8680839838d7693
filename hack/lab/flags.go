package main

import (
	"flag"
	"fmt"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// newFlags returns a flag set with --name, which nearly every command has.
func newFlags(command string) (*flag.FlagSet, *string) {
	flags := flag.NewFlagSet("lab "+command, flag.ExitOnError)
	return flags, flags.String("name", plan.DefaultName, "the lab's name; labs of different names run side by side")
}

// parse is for commands with flags alone: what is no flag may be meant as the lab's name, and another lab is not to be taken for it.
func parse(flags *flag.FlagSet, args []string) error {
	_ = flags.Parse(args) // ExitOnError.
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q; a lab is named by --name", flags.Name(), flags.Arg(0))
	}
	return nil
}
