// Command plan prints where Howdah would place the directories of a share. It runs the operator's own
// expansion and placement on figures from a YAML file, so it documents the rule, and answers "why there?".
//
//	go run ./hack/plan hack/plan/testdata/scale-out.yaml
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const help = `Usage: plan [FILE]

Prints which data server and volume would own each directory of a share. FILE is
YAML; without it standard input is read. Nothing is contacted.

  share: unet3d                       # the share to plan for
  depth: 2                            # its spec.depth; unset means 1
  directories: ["{train,valid}/{0..5}"]   # its spec.directories
  servers:
  - name: training-0
    ready: false                      # unset means true
    volumes:                          # unset means one of unknown size
    - {size: 1Ti, used: 300Gi}
  present:                            # directories that exist, of this share and of others
  - {share: unet3d, path: train/0, server: training-0, volume: 0}
  - {share: other, server: training-0, count: 12}   # or only how many

`

func main() {
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), help) }
	flag.Parse()
	if err := run(flag.Args(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(1)
	}
}

func run(arguments []string, standardInput io.Reader, output io.Writer) error {
	text, err := read(arguments, standardInput)
	if err != nil {
		return err
	}
	in, err := parse(text)
	if err != nil {
		return err
	}
	return write(in, output)
}

func read(arguments []string, standardInput io.Reader) ([]byte, error) {
	switch len(arguments) {
	case 0:
		return io.ReadAll(standardInput)
	case 1:
		return os.ReadFile(arguments[0])
	default:
		return nil, fmt.Errorf("one file at most, not %d; see --help", len(arguments))
	}
}
