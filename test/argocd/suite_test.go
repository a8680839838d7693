package argocd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
)

const (
	// The ApplicationSet of config/argocd makes one Application for each folder of storage/, in the namespace of that name.
	team       = "team-a"
	storageApp = "storage-" + team
	chartApp   = "howdah"
	gateApp    = "gate"

	argoNamespace = "argocd"
	fileServer    = "training"
	share         = "unet3d"

	root = "../.."
)

var (
	c *cluster.Cluster
	// repositories is the folder that git://127.0.0.1 serves.
	repositories string
	// underLoad is how long everything must stay Synced while pods are killed.
	underLoad = 2 * time.Minute
	// timeoutFactor multiplies every timeout: the lab's nodes share the machine with Argo CD.
	timeoutFactor float64
)

func TestArgoCD(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	repositories = os.Getenv("HOWDAH_ARGOCD_REPOSITORIES")
	if repositories == "" {
		t.Fatal("HOWDAH_ARGOCD_REPOSITORIES is not set; run make test-argocd, which makes a lab and runs Argo CD")
	}
	var err error
	if timeoutFactor, err = spare.TimeoutFactor(4); err != nil {
		t.Fatal(err)
	}
	if text := os.Getenv("HOWDAH_ARGOCD_MINUTES"); text != "" {
		minutes, err := strconv.Atoi(text)
		if err != nil || minutes < 1 {
			t.Fatalf("HOWDAH_ARGOCD_MINUTES=%q: want a whole number of at least 1", text)
		}
		underLoad = time.Duration(minutes) * time.Minute
	}
	SetDefaultEventuallyTimeout(scaled(time.Minute))
	SetDefaultEventuallyPollingInterval(time.Second)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 2*time.Hour + underLoad
	RunSpecs(t, "Argo CD", suite, reporter)
}

// scaled is a timeout on this machine.
func scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * timeoutFactor) }

// figure reports a measured value; the suite ends with a list of all of them.
func figure(what, format string, args ...any) {
	AddReportEntry(what, fmt.Sprintf(format, args...), ReportEntryVisibilityAlways)
}

// seconds since start, for figure.
func seconds(start time.Time) string { return fmt.Sprintf("%.1f s", time.Since(start).Seconds()) }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	c, err = cluster.ConnectTo(ctx, team)
	Expect(err).NotTo(HaveOccurred())
	makeRepositories(ctx)
	kubectl(ctx, "-n", argoNamespace, "apply", "--server-side", "--field-manager=howdah", "-k", filepath.Join(root, "config/argocd/customizations"))
}, NodeTimeout(5*time.Minute))

var _ = ReportAfterEach(func(report SpecReport) {
	if !report.Failed() || c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const applications = `jsonpath={range .items[*]}{.metadata.name}: {.status.sync.status} {.status.health.status}; ` +
		`{.status.operationState.phase} {.status.operationState.message}{"\n"}{range .status.conditions[*]}  {.type}: {.message}{"\n"}{end}` +
		`{range .status.resources[?(@.status!="Synced")]}  {.kind} {.namespace}/{.name} {.status}{"\n"}{end}{end}`
	for _, args := range [][]string{
		{"-n", argoNamespace, "get", "applications", "-o", applications},
		{"get", "nfs,pods", "-A"},
	} {
		output, err := c.Kubectl(ctx, args...)
		fmt.Fprintf(GinkgoWriter, "--- kubectl %v (%v)\n%s\n", args, err, output)
	}
})

// The figures of docs/use/gitops.md.
var _ = ReportAfterSuite("figures", func(report Report) {
	for _, spec := range report.SpecReports {
		for _, entry := range spec.ReportEntries {
			fmt.Printf("%-90s %s\n", entry.Name, entry.StringRepresentation())
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	fmt.Printf("load of the machine: %s (%v); %s\n", load, err, time.Now().UTC().Format(time.DateTime))
})

// kubectl runs kubectl and fails the spec if that fails.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := c.Kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// image splits the reference of an image, of an environment variable, into repository and tag.
func image(variable, otherwise string) (repository, tag string) {
	name := cmp.Or(os.Getenv(variable), otherwise)
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == ':' {
			return name[:i], name[i+1:]
		}
	}
	return name, "latest"
}
