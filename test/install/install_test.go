package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
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
	environment := &envtest.Environment{}
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

func namespace(name string) []byte {
	return []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n")
}

func TestWhatIsInstalledIsAccepted(t *testing.T) {
	helm, kustomize := tool(t, "HELM", "helm"), tool(t, "KUSTOMIZE", "kustomize")
	chart := filepath.Join(root, "charts", "howdah")
	c := start(t)
	for _, name := range []string{"howdah-system", "team-a", "team-b", "storage", "tenant-a"} {
		if output, err := c.apply(namespace(name)); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	template := []string{"template", "howdah", chart, "--namespace", "howdah-system"}
	for name, manifests := range map[string][]byte{
		"the chart as it is": run(t, helm, template...),
		"the chart for two namespaces, with every value set": run(t, helm, append(template,
			"--set", "watchNamespaces={team-a,team-b}", "--set", "replicas=2", "--set", "logLevel=debug",
			"--set", "imagePullSecrets={one}", "--set-string", "nodeSelector.role=infra",
			"--set", "tolerations[0].key=infra", "--set", "tolerations[0].operator=Exists")...),
		"the kustomize base": run(t, kustomize, "build", filepath.Join(root, "config", "default")),
	} {
		t.Run(name, func(t *testing.T) {
			output, err := c.apply(manifests, "--dry-run=server", "--server-side")
			if err != nil {
				t.Errorf("%v\n%s", err, output)
			}
			if !strings.Contains(output, "deployment.apps/howdah") {
				t.Errorf("no operator:\n%s", output)
			}
		})
	}

	crds := run(t, kustomize, "build", filepath.Join(root, "config", "crd"))
	if output, err := c.apply(crds, "--server-side"); err != nil {
		t.Fatalf("installing the CRDs: %v\n%s", err, output)
	}
	run(t, c.kubectl, "--kubeconfig", c.kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
	samples, err := filepath.Glob(filepath.Join(root, "config", "samples", "*.yaml"))
	if err != nil || len(samples) < 3 {
		t.Fatalf("samples: %v, %v", samples, err)
	}
	tenants, err := filepath.Glob(filepath.Join(root, "config", "samples", "tenants", "*.yaml"))
	if err != nil || len(tenants) < 2 {
		t.Fatalf("samples for tenants: %v, %v", tenants, err)
	}
	samples = append(samples, tenants...)
	for _, sample := range samples {
		t.Run("the sample "+filepath.Base(sample), func(t *testing.T) {
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
