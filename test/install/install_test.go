package install

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// cluster is an API server with kubectl, and the folder where its kubeconfig is.
type cluster struct{ kubectl, kubeconfig string }

func start(t *testing.T) cluster {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS must name a folder with etcd, kube-apiserver and kubectl; make test-integration sets it")
	}
	// The default of 20 s is not enough on a machine that does other things as well.
	environment := &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	_, err := environment.Start()
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return cluster{kubectl: filepath.Join(assets, "kubectl"), kubeconfig: kubeconfig}
}

// apply runs kubectl apply with manifests on its standard input.
func (c cluster) apply(manifests []byte, args ...string) (string, error) {
	command := exec.Command(c.kubectl, append([]string{"--kubeconfig", c.kubeconfig, "apply", "--validate=strict", "-f", "-"}, args...)...)
	command.Stdin = bytes.NewReader(manifests)
	output, err := command.CombinedOutput()
	return string(output), err
}

// tool is the path of a pinned tool: from the environment variable, as the Makefile sets it, or built.
func tool(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return strings.TrimSpace(string(run(t, filepath.Join(root, "hack", "tools", "build.sh"), name)))
}

func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var problems bytes.Buffer
	command := exec.Command(name, args...)
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, problems.String())
	}
	return output
}

// examples is a file with those that Artifact Hub shows of the chart.
func examples(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "charts", "howdah", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	var objects []any
	if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/crdsExamples"]), &objects); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "---\n"...), document...)
	}
	path := filepath.Join(t.TempDir(), "examples.yaml")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func namespace(name string) []byte {
	return []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n")
}

// accepted applies all manifests but those of prometheus-operator, whose kinds this API server hasn't.
func accepted(t *testing.T, c cluster, name string, manifests []byte) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var ours [][]byte
		for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
			if !bytes.Contains(document, []byte("apiVersion: monitoring.coreos.com/")) {
				ours = append(ours, document)
			}
		}
		output, err := c.apply(bytes.Join(ours, []byte("\n---\n")), "--dry-run=server", "--server-side")
		if err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		if !strings.Contains(output, "deployment.apps/") {
			t.Errorf("no operator:\n%s", output)
		}
	})
}

func TestWhatIsInstalledIsAccepted(t *testing.T) {
	helm, kustomize := tool(t, "HELM", "helm"), tool(t, "KUSTOMIZE", "kustomize")
	chart := filepath.Join(root, "charts", "howdah")
	c := start(t)
	for _, name := range []string{"howdah-system", "team-a", "team-b", "storage", "tenant-a", "rook-ceph"} {
		if output, err := c.apply(namespace(name)); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	template := []string{"template", "howdah", chart, "--namespace", "howdah-system"}
	for name, manifests := range map[string][]byte{
		"the chart as it is":             run(t, helm, template...),
		"the chart with every value set": run(t, helm, append(template, "--values", filepath.Join("..", "chart", "testdata", "everything.values.yaml"))...),
		"the chart with a share to test": run(t, helm, append(template, "--set", "test.share.name=data")...),
		"the kustomize base":             run(t, kustomize, "build", filepath.Join(root, "config", "default")),
	} {
		accepted(t, c, name, manifests)
	}
	overlays, err := filepath.Glob(filepath.Join(root, "config", "overlays", "*"))
	if err != nil || len(overlays) < 6 {
		t.Fatalf("overlays: %v, %v", overlays, err)
	}
	for _, overlay := range overlays {
		accepted(t, c, "overlay "+filepath.Base(overlay), run(t, kustomize, "build", overlay))
	}

	crds := run(t, kustomize, "build", filepath.Join(root, "config", "crd"))
	if output, err := c.apply(crds, "--server-side"); err != nil {
		t.Fatalf("installing the CRDs: %v\n%s", err, output)
	}
	run(t, c.kubectl, "--kubeconfig", c.kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
	var samples []string
	if err := filepath.WalkDir(filepath.Join(root, "config", "samples"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".yaml" {
			samples = append(samples, path)
		}
		return err
	}); err != nil || len(samples) < 14 {
		t.Fatalf("samples: %v, %v", samples, err)
	}
	samples = append(samples, examples(t), filepath.Join(root, "config", "argocd", "gate.yaml"))
	for _, sample := range samples {
		t.Run("the sample "+filepath.Base(filepath.Dir(sample))+"/"+filepath.Base(sample), func(t *testing.T) {
			manifest, err := os.ReadFile(sample)
			if err != nil {
				t.Fatal(err)
			}
			if output, err := c.apply(manifest, "--dry-run=server"); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
			misspelt := bytes.Replace(manifest, []byte("\nspec:\n"), []byte("\nspec:\n  noSuchField: 1\n"), 1)
			if output, err := c.apply(misspelt, "--dry-run=server"); err == nil || !strings.Contains(output, "noSuchField") {
				t.Errorf("a field that does not exist is accepted: %v\n%s", err, output)
			}
		})
	}
}
