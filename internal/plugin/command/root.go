package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
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
	// CodeWell: all is well, or done.
	CodeWell = 0
	// CodeError: the command could not do its work.
	CodeError = 1
	// CodeUsage: the arguments are wrong.
	CodeUsage = 2
	// CodeInvalid: a benchmark that says nothing about the share, as in make demo.
	CodeInvalid = 3
	// CodeNotWell: the answer is no: something is not Ready, a benchmark failed, a plan is refused.
	CodeNotWell = 4
)

// answer is an exit code that is no error: what there is to say has been said.
type answer int

func (a answer) Error() string { return fmt.Sprintf("exit code %d", int(a)) }

// usage marks an error of the arguments.
type usage struct{ error }

func usageError(format string, arguments ...any) error {
	return usage{fmt.Errorf(format, arguments...)}
}

// options are what all commands take.
type options struct {
	loading   *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	allSpaces bool
	output    string
	colour    string

	in       io.Reader
	out, err io.Writer
	// terminal is the file behind out, nil if it is none.
	terminal *os.File
	now      func() time.Time
}

// New is the command with all below it. What it says goes through a writer that lets nothing steer a terminal, wherever it came from.
func New(in io.Reader, out, err io.Writer) *cobra.Command {
	return newRoot(&options{in: in, out: out, err: err, now: time.Now})
}

func newRoot(o *options) *cobra.Command {
	o.terminal, _ = o.out.(*os.File)
	o.out, o.err = printable.Terminal(o.out), printable.Terminal(o.err)
	o.loading = clientcmd.NewDefaultClientConfigLoadingRules()
	root := &cobra.Command{
		Use:   "kubectl-howdah",
		Short: "See and explain Howdah's distributed NFS file services",
		Long: "See and explain Howdah's distributed NFS file services.\n\n" +
			"What you may not read is left out, with a line that says which right is missing.\n\n" +
			"Exit codes: 0 all is well; 1 the command could not do its work; 2 wrong arguments;\n" +
			"3 a benchmark that says nothing about the share; 4 the answer is no: something is not\n" +
			"Ready, a benchmark failed, or a plan would be refused.",
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
	// As kubectl has them: -n, --context, --server, --token, --as and the rest.
	clientcmd.BindOverrideFlags(&o.overrides, flags, names)
	flags.BoolVarP(&o.allSpaces, "all-namespaces", "A", false, "look into all Kubernetes namespaces")
	flags.StringVarP(&o.output, "output", "o", "", "json or yaml; unset: text for people")
	flags.StringVar(&o.colour, "color", "auto", "auto (in a terminal, unless NO_COLOR is set), always or never")
	keepFew(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage{err} })
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
	return root
}

// commands are those below the root.
var commands = []func(*options) *cobra.Command{newStatus, newTree, newClients, newExplain, newPlan, newMove, newRebalance, newMount, newBench, newBundle}

// keepFew hides what nearly nobody gives here from the help; it works all the same.
func keepFew(root *cobra.Command) {
	shown := map[string]bool{"namespace": true, "context": true, "kubeconfig": true, "all-namespaces": true, "output": true, "color": true, "as": true}
	root.PersistentFlags().VisitAll(func(f *flag) {
		f.Hidden = !shown[f.Name]
	})
}

// Run does what the arguments ask for and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, errOut io.Writer) int {
	called, err := root.ExecuteContextC(ctx)
	var code answer
	var wrong usage
	switch {
	case err == nil:
		return CodeWell
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &wrong), strings.HasPrefix(err.Error(), "unknown command"), strings.Contains(err.Error(), "arg(s), "):
		fmt.Fprintf(errOut, "error: %s\n%s --help has examples\n", text.Clean(err.Error()), called.CommandPath())
		return CodeUsage
	}
	fmt.Fprintf(errOut, "error: %s\n", text.Clean(err.Error()))
	return CodeError
}

// connect gives the API server and the Kubernetes namespace to look into; "" is all.
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

// world is an empty one of this moment.
func (o *options) world(namespace string) *view.World {
	return &view.World{Now: o.now(), Namespace: namespace}
}

// page is how text is to look where the command writes to.
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

// say writes a model as JSON or YAML, or as text.
func (o *options) say(model any, asText func(text.Page) string) error {
	said := ""
	if o.output == "" {
		said = asText(o.page())
	} else {
		var err error
		if said, err = view.Encode(model, o.output); err != nil {
			return err
		}
	}
	_, err := io.WriteString(o.out, said)
	return err
}
