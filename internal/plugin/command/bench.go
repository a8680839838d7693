package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/view"
)

func newBench(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "bench",
		Short: "Run MLPerf Storage's unet3d on a share and show the verdict",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newBenchRun(o), newBenchReport(o))
	return command
}

// benchOptions are the options of a run.
type benchOptions struct {
	name, accelerator, sampleSize            string
	count, clients, samples, epochs, connect int32
	wait                                     bool
	timeout                                  time.Duration
}

func newBenchRun(o *options) *cobra.Command {
	var b benchOptions
	command := &cobra.Command{
		Use:   "run SHARE",
		Short: "Make an MLPerfStorageJob, show its progress, and end with its verdict",
		Long: "Make an MLPerfStorageJob, show its progress, and end with its verdict: exit code 0 for Passed, 3 for Invalid, 4 for Failed.\n" +
			"Options that are not set have the defaults of the kind. If you interrupt the command, the job goes on. The dataset stays in the share.",
		Example: "  # A quick look: small samples\n  kubectl howdah bench run unet3d --accelerators 2 --clients 2 --samples 168 --sample-size 400k --epochs 3\n\n" +
			"  # What docs/use/benchmark.md asks for\n  kubectl howdah bench run unet3d --accelerator H100 --accelerators 8 --clients 4 --samples 28000",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete(view.ResourceFileShares),
		RunE: func(command *cobra.Command, arguments []string) error {
			share, err := shareName(arguments[0])
			if err != nil {
				return err
			}
			job, err := b.job(share)
			if err != nil {
				return err
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			if err := one(namespace); err != nil {
				return err
			}
			// The operator waits for a share that does not exist, as it may come. Who types a name wrong would wait without end.
			var exists fileShare
			if err := get(command.Context(), c, view.ResourceFileShares, namespace, share, &exists); err != nil {
				return err
			}
			return o.bench(command.Context(), c, namespace, job, &b)
		},
	}
	flags := command.Flags()
	flags.StringVar(&b.name, "name", "", "name of the job; default: the share's name with a random suffix")
	flags.StringVar(&b.accelerator, "accelerator", string(v1alpha1.AcceleratorA100), "A100 or H100")
	flags.Int32Var(&b.count, "accelerators", 1, "number of accelerators that all clients emulate together")
	flags.Int32Var(&b.clients, "clients", 1, "number of client pods, each on its own node")
	flags.Int32Var(&b.samples, "samples", 0, "number of files in the dataset")
	flags.StringVar(&b.sampleSize, "sample-size", "", "mean size of a file, for example 400k or 1Mi")
	flags.Int32Var(&b.epochs, "epochs", 0, "number of times that the dataset is read")
	flags.Int32Var(&b.connect, "nconnect", 0, "TCP connections of each client to each server")
	flags.BoolVar(&b.wait, "wait", true, "wait for the verdict")
	flags.DurationVar(&b.timeout, "timeout", 0, "how long to wait for the verdict; 0: no limit")
	return command
}

func (b *benchOptions) job(share string) (*v1alpha1.MLPerfStorageJob, error) {
	job := &v1alpha1.MLPerfStorageJob{Spec: v1alpha1.MLPerfStorageJobSpec{
		FileShareRef: v1alpha1.FileShareReference{Name: share},
		Accelerator:  v1alpha1.Accelerator{Type: v1alpha1.AcceleratorType(b.accelerator), Count: b.count},
		Clients:      b.clients, Epochs: b.epochs,
	}}
	job.APIVersion, job.Kind = v1alpha1.GroupVersion.String(), "MLPerfStorageJob"
	if job.Name = b.name; b.name == "" {
		job.GenerateName = share[:min(len(share), 44)] + "-" // Names of jobs have at most 50 characters, five of them to come.
	}
	if b.connect > 0 {
		job.Spec.Mount = &v1alpha1.BenchmarkMount{Nconnect: b.connect}
	}
	if b.samples > 0 || b.sampleSize != "" {
		job.Spec.Dataset = &v1alpha1.Dataset{Samples: b.samples}
	}
	if b.sampleSize != "" {
		size, err := resource.ParseQuantity(b.sampleSize)
		if err != nil {
			return nil, usageError("--sample-size is %q; write a number with a unit: 400k, 1Mi", b.sampleSize)
		}
		job.Spec.Dataset.SampleSize = &size
	}
	return job, nil
}

// bench makes the job, waits for its verdict and ends with it.
func (o *options) bench(ctx context.Context, c *cluster.Cluster, namespace string, job *v1alpha1.MLPerfStorageJob, b *benchOptions) error {
	made := &v1alpha1.MLPerfStorageJob{}
	if err := c.Create(ctx, view.ResourceJobs, namespace, job, made); err != nil {
		return cluster.Explain(err)
	}
	fmt.Fprintf(o.err, "mlperfstoragejob/%s made\n", made.Name)
	if !b.wait {
		return nil
	}
	if b.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
	}
	last, begun := "", o.now()
	for {
		report := view.NewBench(made)
		// What it does, and how far it is: people wait.
		if line := report.Line(); line != last && line != "" {
			last = line
			fmt.Fprintf(o.err, "%6s  %s\n", o.now().Sub(begun).Round(time.Second), line)
		}
		if report.Ended() {
			return o.report(report)
		}
		timer := time.NewTimer(2 * time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("stopped waiting; the job goes on. For its result: kubectl howdah bench report %s -n %s (%w)", made.Name, namespace, context.Cause(ctx))
		case <-timer.C:
		}
		err := c.Get(ctx, view.ResourceJobs, namespace, made.Name, made)
		if err != nil && ctx.Err() == nil {
			return cluster.Explain(err)
		}
	}
}

// report prints the report of a job and ends with its verdict.
func (o *options) report(b view.Bench) error {
	if err := o.print(b, b.Text); err != nil {
		return err
	}
	switch {
	case b.Verdict() == v1alpha1.VerdictInvalid:
		return answer(CodeInvalid)
	case b.Verdict() == v1alpha1.VerdictFailed, b.Ended() && b.Health != view.Well:
		return answer(CodeNotWell)
	}
	return nil
}

func newBenchReport(o *options) *cobra.Command {
	of := ""
	command := &cobra.Command{
		Use:   "report [JOB]",
		Short: "Show the report of an MLPerfStorageJob, or of the newest one of a share",
		Example: "  kubectl howdah bench report unet3d\n" +
			"  kubectl howdah bench report --share unet3d -o json | jq .result.auPercent",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete(view.ResourceJobs),
		RunE: func(command *cobra.Command, arguments []string) error {
			if (len(arguments) == 1) == (of != "") {
				return usageError("name a job, or a share with --share")
			}
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			if err := one(namespace); err != nil {
				return err
			}
			var job v1alpha1.MLPerfStorageJob
			if of == "" {
				named, err := parseObject(arguments[0])
				if err == nil && named.resource != "" && named.resource != view.ResourceJobs {
					err = usageError("%q is not an MLPerfStorageJob", arguments[0])
				}
				if err != nil {
					return err
				}
				if err := get(command.Context(), c, view.ResourceJobs, namespace, named.name, &job); err != nil {
					return err
				}
				return o.report(view.NewBench(&job))
			}
			w := o.world(namespace)
			if err := c.Read(command.Context(), w, namespace, view.ResourceJobs); err != nil {
				return err
			}
			if w.IsHidden(view.ResourceJobs, namespace) {
				return errors.New("you may not list mlperfstoragejobs.howdah.io in " + namespace)
			}
			latest := view.Latest(w.Jobs, of)
			if latest == nil {
				return fmt.Errorf("share %[2]q in namespace %[1]s has no MLPerfStorageJob; to make one: kubectl howdah bench run %[3]s", namespace, of, of)
			}
			return o.report(view.NewBench(latest))
		},
	}
	command.Flags().StringVar(&of, "share", "", "show the newest job of this share")
	return command
}
