package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// namesMistakes makes a command and those below it say what of the arguments is missing or too much, and what to write instead of cobra's
// "accepts 1 arg(s), received 0".
func namesMistakes(command *cobra.Command) {
	command.SuggestionsMinimumDistance = 2 // Two letters that are exchanged.
	if check := command.Args; check != nil {
		command.Args = func(c *cobra.Command, arguments []string) error {
			if check(c, arguments) == nil {
				return nil
			}
			return argumentsError(c, arguments)
		}
	}
	for _, below := range command.Commands() {
		namesMistakes(below)
	}
}

func argumentsError(command *cobra.Command, arguments []string) error {
	if command.HasSubCommands() && len(arguments) > 0 {
		suggestion := ""
		if similar := command.SuggestionsFor(arguments[0]); len(similar) > 0 {
			suggestion = "; did you mean " + strings.Join(similar, " or ") + "?"
		}
		return usageError("unknown command %q for %q%s", arguments[0], command.CommandPath(), suggestion)
	}
	write := "write: " + command.Parent().CommandPath() + " " + command.Use
	var known, needed []string
	for _, word := range strings.Fields(command.Use)[1:] {
		if strings.HasPrefix(word, "-") {
			break // Flags, with their values.
		}
		known = append(known, word)
		if !strings.HasPrefix(word, "[") {
			needed = append(needed, word)
		}
	}
	if len(arguments) < len(needed) {
		return usageError("%s is missing; %s", strings.Join(needed[len(arguments):], ", "), write)
	}
	if kind := strings.ToLower(arguments[0]); len(arguments) == 2 && kinds[kind] != "" {
		return usageError("%s %s: write %s/%s", arguments[0], arguments[1], kind, arguments[1])
	}
	tooMany := "1 argument is"
	if more := len(arguments) - len(known); more > 1 {
		tooMany = fmt.Sprintf("%d arguments are", more)
	}
	return usageError("%s too many; %s", tooMany, write)
}

// flagError says what a flag takes, where pflag has Go's own words.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usage{err}
	}
	takes := map[string]string{
		"duration": "a time with its unit, for example 30s or 2m", "int": "a whole number", "int32": "a whole number", "bool": "true or false",
	}[invalid.GetFlag().Value.Type()]
	if takes == "" {
		return usage{err}
	}
	return usageError("--%s is %q; it must be %s", invalid.GetFlag().Name, invalid.GetValue(), takes)
}
