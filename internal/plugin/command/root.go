package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/internal/printable"
)

// Exit codes.
const (
	// CodeWell: everything is Ready, or done.
	CodeWell = 0
	// CodeError: the command could not do its work.
	CodeError = 1
	// CodeUsage: the arguments are wrong.
	CodeUsage = 2
	// CodeInvalid: the benchmark is Invalid and says nothing about the share.
	CodeInvalid = 3
	// CodeNotWell: something is not Ready, a benchmark failed, or a plan is refused.
	CodeNotWell = 4
)

// answer is an exit code other than 0 that is no error; the command has printed its output.
type answer int

func (a answer) Error() string { return fmt.Sprintf("exit code %d", int(a)) }

// usage marks an error in the arguments.
type usage struct{ error }

func usageError(format string, arguments ...any) error {
	return usage{fmt.Errorf(format, arguments...)}
}

// options are common to all commands.
type options struct {
	loading   *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	allSpaces bool
	output    string
	colour    string

	in       io.Reader
	out, err io.Writer
	// terminal is the file behind out; nil if out is not a file.
	terminal *os.File
	now      func() time.Time
}

// New is the root command. All output goes through a writer that escapes control characters, so that names can't control the terminal.
func New(in io.Reader, out, err io.Writer) *cobra.Command {
	return newRoot(&options{in: in, out: out, err: err, now: time.Now})
}

func newRoot(o *options) *cobra.Command {
	o.terminal, _ = o.out.(*os.File)
	o.out, o.err = printable.Terminal(o.out), printable.Terminal(o.err)
	o.loading = clientcmd.NewDefaultClientConfigLoadingRules()
	root := &cobra.Command{
		Use:   "kubectl-howdah",
		Short: "Show and explain Howdah's distributed NFS file services",
		Long: "Show and explain Howdah's distributed NFS file services.\n\n" +
			"Objects that you may not read are left out; a line names the missing right.\n\n" +
			"Exit codes: 0 success, and everything is Ready; 1 the command failed; 2 wrong arguments;\n" +
			"3 a benchmark is Invalid; 4 something is not Ready, a benchmark failed, or a plan would\n" +
			"be refused.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl howdah"},
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(o.in)
	root.SetOut(o.out)
	root.SetErr(o.err)
	flags := root.PersistentFlags()
	flags.StringVar(&o.loading.ExplicitPath, "kubeconfig", "", "path of the kubeconfig")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	// The same as kubectl's: -n, --context, --server, --token, --as and so on.
	clientcmd.BindOverrideFlags(&o.overrides, flags, names)
	flags.BoolVarP(&o.allSpaces, "all-namespaces", "A", false, "read all Kubernetes namespaces")
	flags.StringVarP(&o.output, "output", "o", "", "json or yaml; default: text")
	flags.StringVar(&o.colour, "color", "auto", "auto (in a terminal, unless NO_COLOR is set), always or never")
	keepFew(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		switch {
		case o.output != "" && o.output != "json" && o.output != "yaml":
			return usageError("--output is %q; it can be json or yaml", o.output)
		case o.colour != "auto" && o.colour != "always" && o.colour != "never":
			return usageError("--color is %q; it can be auto, always or never", o.colour)
		}
		return nil
	}
	for _, add := range commands {
		root.AddCommand(add(o))
	}
	namesMistakes(root)
	return root
}

// commands are those below the root.
var commands = []func(*options) *cobra.Command{newStatus, newTree, newCapacity, newTop, newClients, newExplain, newPlan, newMove, newRebalance, newMount, newBench, newBundle}

// keepFew hides rarely used flags from the help. They still work.
func keepFew(root *cobra.Command) {
	shown := map[string]bool{"namespace": true, "context": true, "kubeconfig": true, "all-namespaces": true, "output": true, "color": true, "as": true}
	root.PersistentFlags().VisitAll(func(f *flag) {
		f.Hidden = !shown[f.Name]
	})
}

// Run runs the command and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, errOut io.Writer) int {
	called, err := root.ExecuteContextC(ctx)
	var code answer
	var wrong usage
	switch {
	case err == nil:
		return CodeWell
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &wrong):
		fmt.Fprintf(errOut, "error: %s\n%s --help has examples\n", text.Clean(err.Error()), called.CommandPath())
		return CodeUsage
	}
	fmt.Fprintf(errOut, "error: %s\n", text.Clean(err.Error()))
	return CodeError
}

// connect returns a client of the API server and the Kubernetes namespace to read; "" for all.
func (o *options) connect() (*cluster.Cluster, string, error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.loading, &o.overrides)
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if o.allSpaces {
		namespace = ""
	}
	c, err := cluster.New(config)
	return c, namespace, err
}

// world is an empty World with the current time.
func (o *options) world(namespace string) *view.World {
	return &view.World{Now: o.now(), Namespace: namespace}
}

// page is the width and colours of the output.
func (o *options) page() text.Page {
	page := text.Page{Colour: o.colour == "always"}
	file := o.terminal
	if file == nil || !term.IsTerminal(int(file.Fd())) {
		return page
	}
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
		page.Width = columns
	}
	page.Colour = page.Colour || o.colour == "auto" && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return page
}

// print writes a model as JSON or YAML, or as text.
func (o *options) print(model any, asText func(text.Page) string) error {
	output := ""
	if o.output == "" {
		output = asText(o.page())
	} else {
		var err error
		if output, err = view.Encode(model, o.output); err != nil {
			return err
		}
	}
	_, err := io.WriteString(o.out, output)
	return err
}
