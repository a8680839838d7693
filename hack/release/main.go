// Command release makes the parts of a release that no other program makes: images for several processors in an OCI layout,
// lists of what is in them, and the statement of how all was made. hack/release.sh calls it. Everything that it writes
// depends on its arguments and on the files that they name only, so that two builds are equal.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

const usage = `usage:
  release image --archive FILE... --name NAME:TAG --epoch SECONDS --into FOLDER [--binary PATH --same FILE...]
  release sbom --name NAME --version VERSION --epoch SECONDS [--archive FILE] [BINARY]...       to standard output
  release provenance --version VERSION --commit SHA --epoch SECONDS [--key FILE] FILE...        to standard output
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(strings.TrimSpace(usage))
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	epoch := flags.Int64("epoch", -1, "time of everything, in seconds since 1970")
	var archives, same list
	flags.Var(&archives, "archive", "docker-archive of an image; may be repeated, for other processors")
	name := flags.String("name", "", "name of the image, or of the release")
	version := flags.String("version", "", "version of the release")
	into := flags.String("into", "", "folder for the OCI layout")
	binary := flags.String("binary", "", "path of the program in the image")
	flags.Var(&same, "same", "the program that the image must have at --binary; once for each --archive, in the same order")
	commit := flags.String("commit", "", "commit that it was built from")
	key := flags.String("key", "", "private Ed25519 key (PEM, PKCS #8) to sign with")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *epoch < 0 {
		return errors.New("--epoch is missing")
	}
	at := time.Unix(*epoch, 0).UTC()
	switch args[0] {
	case "image":
		if len(same) != 0 && len(same) != len(archives) {
			return fmt.Errorf("%d --same for %d --archive: want one for each", len(same), len(archives))
		}
		for i := range same {
			if err := hasProgram(archives[i], *binary, same[i]); err != nil {
				return err
			}
		}
		return writeImage(archives, *name, *into, at)
	case "sbom":
		if len(archives) > 1 {
			return errors.New("sbom is of one --archive")
		}
		return writeSBOM(os.Stdout, *name, *version, archives.String(), flags.Args(), at)
	case "provenance":
		return writeProvenance(os.Stdout, *version, *commit, *key, flags.Args(), at)
	}
	return fmt.Errorf("%s: no such thing\n%s", args[0], usage)
}
