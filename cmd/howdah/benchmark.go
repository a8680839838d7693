package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/benchmark/engine"
	"github.com/howdah/howdah/internal/printable"
)

// benchmarkTokenVariable is the environment variable with the token of a run. It is not an argument because every user of a machine can
// read the arguments of its processes.
const benchmarkTokenVariable = "HOWDAH_BENCHMARK_TOKEN"

// benchmarkOptions are common to both commands of the load engine.
type benchmarkOptions struct {
	plan, data, terminationLog               string
	client                                   int
	journalNamespace, journal, journalFolder string
}

func newBenchmarkCommand() *cobra.Command {
	o := &benchmarkOptions{}
	command := &cobra.Command{
		Use:   "benchmark",
		Short: "Generate the dataset of an MLPerf Storage workload, or run it",
		Long: "The load engine of MLPerfStorageJobs. The operator starts it in client pods; by hand it needs a plan,\n" +
			"a directory and a journal directory that all clients see.",
	}
	flags := command.PersistentFlags()
	flags.StringVar(&o.plan, "plan", "/etc/howdah/plan.json", "file of the plan")
	flags.StringVar(&o.data, "data", "/data", "directory where the share is mounted")
	flags.IntVar(&o.client, "client", 0, "number of this client, from 0")
	flags.StringVar(&o.journal, "journal", "", "name of the ConfigMap for progress and result")
	flags.StringVar(&o.journalNamespace, "journal-namespace", "", "Kubernetes namespace of that ConfigMap")
	flags.StringVar(&o.journalFolder, "journal-directory", "", "directory for progress and result, instead of a ConfigMap")
	flags.StringVar(&o.terminationLog, "termination-log", "/dev/termination-log", "file for the reason of a failure, if the file exists")
	command.AddCommand(newGenerateCommand(o), newRunCommand(o))
	return command
}

func newGenerateCommand(o *benchmarkOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "generate",
		Short: "Write this client's part of the dataset; keep files that exist",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.do(command, func(ctx context.Context, plan benchmark.Plan, journal engine.Journal, log *slog.Logger) error {
				g := &engine.Generator{Plan: plan, Client: o.client, Data: o.data, Journal: journal, Log: log}
				return g.Generate(ctx)
			})
		},
	}
}

func newRunCommand(o *benchmarkOptions) *cobra.Command {
	var id, name, node, address string
	var port int
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the workload together with the other clients; client 0 coordinates and prints the verdict",
		Long: "Run the workload together with the other clients; client 0 coordinates and prints the verdict.\n" +
			benchmarkTokenVariable + " must be the same in all clients; with a single client it may be unset.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.do(command, func(ctx context.Context, plan benchmark.Plan, journal engine.Journal, log *slog.Logger) error {
				token := os.Getenv(benchmarkTokenVariable)
				if token == "" && plan.Clients == 1 {
					token = rand.Text()
				}
				r := &engine.Runner{
					Plan: plan, ID: id, Client: o.client, Name: name, NodeName: node, Data: o.data,
					Address: address, Port: port, Token: token, Journal: journal, Log: log,
				}
				result, err := r.Run(ctx)
				if err == nil && result != nil {
					_, err = fmt.Fprint(printable.Terminal(command.OutOrStdout()), "\n", benchmark.Table(plan, result))
				}
				return err
			})
		},
	}
	host, _ := os.Hostname() // without a host name the name is empty
	command.Flags().StringVar(&id, "run", "", "ID of this run, to distinguish it from others in the same journal")
	command.Flags().StringVar(&name, "name", host, "name of this client in the result")
	command.Flags().StringVar(&node, "node", "", "node of this client in the result")
	command.Flags().StringVar(&address, "address", "127.0.0.1", "address at which the other clients reach this one")
	command.Flags().IntVar(&port, "port", 0, "TCP port of the coordinator; 0: any free port")
	return command
}

// do reads the plan, opens the journal, and works until a signal. It writes the reason of a failure to the termination log, where the
// operator reads it.
func (o *benchmarkOptions) do(command *cobra.Command, work func(context.Context, benchmark.Plan, engine.Journal, *slog.Logger) error) error {
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(printable.Terminal(command.ErrOrStderr()), nil))
	err := o.prepared(ctx, log, work)
	if err == nil {
		return nil
	}
	if file, openErr := os.OpenFile(o.terminationLog, os.O_WRONLY|os.O_TRUNC, 0); openErr == nil {
		_, writeErr := file.WriteString(err.Error())
		err = errors.Join(err, writeErr, file.Close())
	}
	return err
}

func (o *benchmarkOptions) prepared(ctx context.Context, log *slog.Logger, work func(context.Context, benchmark.Plan, engine.Journal, *slog.Logger) error) error {
	text, err := os.ReadFile(o.plan)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	plan, err := benchmark.ParsePlan(text)
	if err != nil {
		return err
	}
	if o.client < 0 || o.client >= plan.Clients {
		return fmt.Errorf("--client is %d; the plan has clients 0 to %d", o.client, plan.Clients-1)
	}
	journal, err := o.openJournal()
	if err != nil {
		return err
	}
	return work(ctx, plan, journal, log)
}

func (o *benchmarkOptions) openJournal() (engine.Journal, error) {
	switch {
	case o.journalFolder != "" && o.journal == "":
		return engine.NewDirectoryJournal(o.journalFolder), nil
	case o.journal != "" && o.journalFolder == "" && o.journalNamespace != "":
		return engine.NewConfigMapJournal(o.journalNamespace, o.journal)
	default:
		return nil, errors.New("give either --journal with --journal-namespace, or --journal-directory")
	}
}
