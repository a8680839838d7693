package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/internal/load/engine"
	"github.com/howdah/howdah/internal/printable"
)

const loadHelp = `Load directories and check what is in them, while servers fail or are upgraded.

In each directory it makes files, writes and syncs them, reads them back around the client's cache and compares
every byte, renames, lists and removes them, and holds a lock that it proves to be its own. It runs until --for is
over or it gets SIGINT or SIGTERM, and then prints, for each directory: the longest stall and when it was, the
operations, the errors by number, bad blocks, stolen locks, and names that are lost or should not be there.
An operation that fails is counted and tried again. A stall is the time until an operation was done.

  howdah load --for 10m /data/a /data/b
  howdah load --do random --threads 8 --for 5m /data/a     # 8 KiB, 70 % reads, operations per second
  howdah load --audit /data/a /data/b                      # then, on another client

The parts of --do:
  files    make, sync, read, rename, list and remove files
  records  write and sync blocks of a file that stays open, and read them
  opens    open a file for writing, and close it
  lock     hold a lock, write through it, and read what is there. With --rival NAME on another client, which tries to
           take the lock of the run NAME in the same directory
  random   read and write blocks of a file in random order, 70 % reads, each write synced
  tree     make, rename and remove directories right in the directory (in a share each has an owner)

SIGUSR1 marks an event. The result then has, for the random load, the operations per second before it, the depth of
the dip, and the seconds until the load was back above 90 %.

A run writes only into a directory with its own --name in each directory (and for tree into directories whose names
begin with it), leaves its files there with a ledger of what was synced, and never uses more than --bytes.
--audit compares the directories with the ledgers.

The exit status is 0 if there were no errors and no wrong data. Stalls alone are no error, unless over --max-stall.`

// loadOptions are the flags of howdah load.
type loadOptions struct {
	engine.Options
	length, maxStall         time.Duration
	bytes, locks             string
	json, audit, nothingElse bool
	ledgers                  []string
}

func newLoadCommand() *cobra.Command {
	o := &loadOptions{}
	command := &cobra.Command{
		Use:   "load DIRECTORY...",
		Short: "Load directories, measure stalls, and prove that no data is lost",
		Long:  loadHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(command *cobra.Command, args []string) error { return o.run(command, args) },
	}
	host, _ := os.Hostname() // without a host name there is the time
	flags := command.Flags()
	flags.DurationVar(&o.length, "for", 0, "how long to run; 0: until SIGINT or SIGTERM")
	flags.StringVar(&o.Name, "name", "", "name of the run, and of its own directory in each directory (default the host's name with the time)")
	flags.StringSliceVar(&o.Parts, "do", engine.DefaultParts, "what to do: any of "+strings.Join(engine.Parts, ", "))
	flags.StringVar(&o.bytes, "bytes", "64Mi", "size of all files of the run in each directory, at most")
	flags.DurationVar(&o.Pause, "pause", 50*time.Millisecond, "pause between the steps of each thread, except those of random")
	flags.DurationVar(&o.RandomPause, "random-pause", 0, "pause between the steps of each thread of random")
	flags.IntVar(&o.Threads, "threads", 1, "threads of random in each directory")
	flags.StringVar(&o.locks, "locks", string(engine.Flock), "kind of lock: flock or fcntl")
	flags.StringSliceVar(&o.Rivals, "rival", nil, "name of another run whose lock to try (can be repeated)")
	flags.StringVar(&o.Contest, "contest", "", "begin of directory names that all runs of tree with the same value try to make; each may be made once")
	flags.StringSliceVar(&o.ledgers, "ledger", nil, "file for the ledger; with --audit, ledgers to read (can be repeated; - is standard input)")
	flags.DurationVar(&o.StopWait, "stop-wait", 30*time.Second, "how long to wait at the end for operations that are under way")
	flags.DurationVar(&o.maxStall, "max-stall", 0, "fail if a directory stalls for longer; 0: never")
	flags.BoolVar(&o.json, "json", false, "print the result as JSON")
	flags.BoolVar(&o.audit, "audit", false, "compare the directories with the ledgers of runs, and write nothing")
	flags.BoolVar(&o.nothingElse, "nothing-else", false, "with --audit: names right in the directories that are in no ledger are wrong")
	command.PreRun = func(*cobra.Command, []string) {
		if o.Name == "" {
			// Always another one: a run never meets what an earlier one has left.
			stamp := time.Now().UTC().Format("20060102-150405")
			o.Name = strings.Trim(host[:min(len(host), load.MaxName-len(stamp)-1)]+"-"+stamp, "-")
		}
	}
	return command
}

func (o *loadOptions) run(command *cobra.Command, directories []string) error {
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	result, err := o.result(ctx, command, directories)
	if err != nil {
		return err
	}
	text := result.Text()
	if o.json {
		encoded, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		text = string(encoded) + "\n"
	}
	if _, err := fmt.Fprint(printable.Terminal(command.OutOrStdout()), text); err != nil {
		return err
	}
	return result.Verdict(o.maxStall)
}

func (o *loadOptions) result(ctx context.Context, command *cobra.Command, directories []string) (load.Result, error) {
	if o.audit {
		return engine.Audit(ctx, engine.AuditOptions{Directories: directories, Ledgers: o.ledgers, NothingElse: o.nothingElse})
	}
	quantity, err := resource.ParseQuantity(o.bytes)
	if err != nil {
		return load.Result{}, fmt.Errorf("--bytes: %w", err)
	}
	switch {
	case len(o.ledgers) > 1 || slices.Contains(o.ledgers, "-"):
		return load.Result{}, errors.New("--ledger names one file, except with --audit")
	case len(o.ledgers) == 1:
		o.Ledger = o.ledgers[0]
	}
	if o.length > 0 {
		timed, stop := context.WithTimeout(ctx, o.length)
		defer stop()
		ctx = timed
	}
	o.Directories, o.Bytes, o.Locks = directories, quantity.Value(), engine.Locks(o.locks)
	marks := make(chan os.Signal, 16)
	signal.Notify(marks, syscall.SIGUSR1)
	defer signal.Stop(marks)
	o.Marks = marks
	terminal := printable.Terminal(command.ErrOrStderr())
	o.Report = func(line string) {
		fmt.Fprintf(terminal, "%s %s\n", time.Now().UTC().Format("15:04:05"), line)
	}
	return engine.Run(ctx, o.Options)
}
