package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An operator that looks after one namespace, with the rights that the chart gives it and no other: it works there, a share that names a
// FileServer elsewhere says so, and the API server warns users who apply something elsewhere.
func TestAnOperatorOfOneNamespace(t *testing.T) {
	c := start(t)
	for _, name := range []string{"howdah-system", "team-a", "storage"} {
		if output, err := c.apply(namespace(name)); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	kubectl := func(args ...string) string {
		return strings.TrimSpace(string(run(t, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)))
	}
	rendered := run(t, tool(t, "HELM", "helm"), "template", "howdah", filepath.Join(root, "charts", "howdah"), "--namespace", "howdah-system",
		"--set", "watchNamespaces={team-a}", "--set", "provisioning.enabled=true")
	if output, err := c.apply(rendered, "--server-side"); err != nil {
		t.Fatalf("installing the chart: %v\n%s", err, output)
	}
	kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	// Volumes have no Kubernetes namespace, so the operator sees those of another one.
	if output, err := c.apply([]byte(volumesOfAnotherOperator)); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	runOperator(t, c, kubectl("-n", "howdah-system", "create", "token", "howdah"), "team-a")

	share := func(namespace, name, server string) []byte {
		return []byte("apiVersion: howdah.io/v1alpha1\nkind: FileShare\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec:\n  fileServerRef: " +
			server + "\n  path: /" + name + "\n")
	}
	server := func(namespace string) []byte {
		return []byte("apiVersion: howdah.io/v1alpha1\nkind: FileServer\nmetadata: {name: fs, namespace: " + namespace +
			"}\nspec:\n  replicas: 1\n  allowedNamespaces: {from: All}\n  storage: {volumes: {size: 1Gi, storageClassName: none}}\n")
	}
	const warning = `Howdah (howdah in namespace howdah-system) does not watch namespace storage`
	for what, tc := range map[string]struct {
		manifest []byte
		warned   bool
	}{
		"a FileServer in an unwatched namespace": {server("storage"), true},
		"a share in an unwatched namespace":      {share("storage", "lost", "{name: fs}"), true},
		"a FileServer":                           {server("team-a"), false},
		"a share of it":                          {share("team-a", "near", "{name: fs}"), false},
		"a share of one elsewhere":               {share("team-a", "far", "{name: fs, namespace: storage}"), false},
	} {
		// The API server knows a policy some moments after it was made.
		var output string
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			var err error
			if output, err = c.apply(tc.manifest); err != nil {
				t.Fatalf("%s: %v\n%s", what, err, output)
			}
			if strings.Contains(output, warning) == tc.warned || time.Now().After(deadline) {
				break
			}
			kubectl("delete", "-f", writeFile(t, tc.manifest), "--wait=false")
		}
		if strings.Contains(output, warning) != tc.warned {
			t.Errorf("%s: %s", what, output)
		}
	}

	expect := func(name, reason, text string) {
		t.Helper()
		const ready = `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`
		var got string
		for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if got = kubectl("-n", "team-a", "get", "fileshare", name, "-o", ready); strings.HasPrefix(got, reason+": ") && strings.Contains(got, text) {
				return
			}
		}
		t.Errorf("share %s says %q, not %s", name, got, reason)
	}
	expect("far", "NamespaceNotWatched", `does not watch namespace "storage", where FileServer "fs" is to be`)
	expect("near", "ExportsPending", "fs-0")
	if got := kubectl("-n", "team-a", "get", "fileshare", "far", "-o", `jsonpath={.status.conditions[?(@.type=="Stalled")].status}`); got != "True" {
		t.Errorf("a share that needs an action is not Stalled: %q", got)
	}
	if got := kubectl("-n", "storage", "get", "fileserver", "fs", "-o", "jsonpath={.status}"); got != `{"observedGeneration":0}` {
		t.Errorf("an operator wrote the status in namespace storage: %s", got)
	}
	// No server has it while it waits, so it can be deleted.
	kubectl("-n", "team-a", "delete", "fileshare", "far", "--timeout=60s")
}

// volumesOfAnotherOperator are those of a share, of a claim and of a benchmark.
const volumesOfAnotherOperator = `
apiVersion: v1
kind: PersistentVolume
metadata:
  name: howdah-storage-theirs
  labels: {app.kubernetes.io/managed-by: howdah}
  annotations: {howdah.io/owner: FileShare/storage/theirs}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  nfs: {server: 192.0.2.1, path: /theirs}
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-1
  labels: {app.kubernetes.io/managed-by: howdah}
  annotations: {pv.kubernetes.io/provisioned-by: howdah.io/share, howdah.io/provisioned-share: storage/pvc-1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  claimRef: {namespace: storage, name: theirs, uid: "1"}
  nfs: {server: 192.0.2.1, path: /pvc-1}
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: howdah-benchmark-storage-theirs
  labels: {app.kubernetes.io/managed-by: howdah}
  annotations: {howdah.io/owner: MLPerfStorageJob/storage/theirs}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  nfs: {server: 192.0.2.1, path: /theirs}
`

func writeFile(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runOperator runs the operator as a process with the rights of a token.
func runOperator(t *testing.T, c cluster, token, namespaces string) {
	t.Helper()
	howdah := filepath.Join(t.TempDir(), "howdah")
	run(t, "go", "build", "-o", howdah, filepath.Join(root, "cmd", "howdah"))
	config := filepath.Join(t.TempDir(), "kubeconfig")
	view := run(t, c.kubectl, "--kubeconfig", c.kubeconfig, "config", "view", "--raw", "--minify", "-o",
		`jsonpath={.clusters[0].cluster.server} {.clusters[0].cluster.certificate-authority-data}`)
	server, authority, _ := strings.Cut(string(view), " ")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {server: " + server + ", certificate-authority-data: " + authority +
		"}\nusers:\n- name: u\n  user: {token: " + token + "}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	operator := exec.Command(howdah, "operator", "--server-image=s", "--howdah-image=h", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--watch-namespaces="+namespaces, "--provision-claims")
	operator.Env = append(os.Environ(), "KUBECONFIG="+config)
	operator.Stdout, operator.Stderr = &log, &log
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = operator.Process.Kill()
		_ = operator.Wait()
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "is forbidden") || strings.Contains(line, "unknown namespace") || t.Failed() && !strings.Contains(line, "EventSource") {
				t.Errorf("the operator logged: %s", line)
			}
		}
	})
}
