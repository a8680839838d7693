// Command cephshares makes in a Ceph cluster what storage.ceph.external of a FileServer needs, with the commands that docs/operate/ceph.md
// describes: an account for recovery records, and for each share a directory and an account that is good for it alone. It ends with the
// Secret that data servers read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

const help = `Usage: cephshares [flags] spec NAME              prints a FileServer for that Ceph; kubectl apply -f - takes it
       cephshares [flags] secret NAME SHARE...   makes the accounts and directories of shares of a FileServer that exists, and its Secret

A share is named as its FileShare; one of another Kubernetes namespace is NAMESPACE.NAME. What exists stays, so that secret can be
run again for more shares.

`

func main() {
	options := options{}
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), help); flag.PrintDefaults() }
	flag.StringVar(&options.namespace, "n", "default", "Kubernetes namespace of the FileServer")
	flag.StringVar(&options.fileSystem, "file-system", "fs1", "Ceph file system; of spec")
	flag.StringVar(&options.pool, "pool", "howdah", "RADOS pool for recovery records; of spec")
	flag.StringVar(&options.secret, "secret", "ceph-shares", "name of the Secret; of spec")
	ceph := flag.String("ceph", "kubectl -n ceph exec ceph-mon-0 --", "what runs the command ceph with an administrator's rights; empty: nothing is needed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, options, flag.Args(), commands(strings.Fields(*ceph)), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cephshares:", err)
		os.Exit(1)
	}
}

// runner runs a command, with an input, and gives what it prints.
type runner func(ctx context.Context, input string, words ...string) (string, error)

// commands runs ceph where that is, and everything else here.
func commands(ceph []string) runner {
	return func(ctx context.Context, input string, words ...string) (string, error) {
		if words[0] == "ceph" {
			words = append(append([]string{}, ceph...), words...)
		}
		command := exec.CommandContext(ctx, words[0], words[1:]...)
		command.Stdin = strings.NewReader(input)
		output, err := command.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return "", fmt.Errorf("%s: %s", strings.Join(words, " "), strings.TrimSpace(string(exit.Stderr)))
		}
		return string(output), err
	}
}
