package install

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// helm install, and helm test in a cluster whose kubelet is this test: it says how the pod ended.
func TestHelmTest(t *testing.T) {
	c := start(t)
	helm := func(args ...string) (string, error) {
		output, err := exec.CommandContext(t.Context(), tool(t, "HELM", "helm"), append(args, "--kubeconfig", c.kubeconfig, "--namespace", "howdah-system")...).CombinedOutput()
		return string(output), err
	}
	kubectl := func(args ...string) string {
		return strings.TrimSpace(string(run(t, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)))
	}
	install := func(args ...string) {
		t.Helper()
		if output, err := helm(append([]string{"upgrade", "--install", "--create-namespace", "howdah", filepath.Join(root, "charts", "howdah")}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	// ends tells helm, which waits for a pod, that the pod has ended so; it gives what helm says.
	ends := func(namespace, pod, phase string) (string, error) {
		t.Helper()
		type outcome struct {
			output string
			err    error
		}
		done := make(chan outcome, 1)
		go func() {
			output, err := helm("test", "howdah", "--timeout", "1m")
			done <- outcome{output, err}
		}()
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if kubectl("-n", namespace, "get", "pod", pod, "--ignore-not-found", "-o", "name") != "" {
				kubectl("-n", namespace, "patch", "pod", pod, "--subresource=status", "--type=merge", "-p", `{"status": {"phase": "`+phase+`"}}`)
				break
			}
		}
		result := <-done
		return result.output, result.err
	}

	install()
	if output, err := ends("howdah-system", "howdah-test-names-no-share", "Failed"); err == nil || !strings.Contains(output, "names-no-share") {
		t.Errorf("without the name of a share helm test passes, or does not say why: %v\n%s", err, output)
	}
	if output, err := c.apply(namespace("team-a")); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	install("--set", "test.share.name=data,test.share.namespace=team-a")
	if output, err := ends("team-a", "howdah-test-share", "Succeeded"); err != nil {
		t.Errorf("the pod succeeded, and helm test says %v\n%s", err, output)
	}
	if left := kubectl("-n", "team-a", "get", "pods", "-o", "name"); left != "" {
		t.Errorf("helm test leaves %s, which keeps the share mounted", left)
	}

	// What is not the release's to remove stays, and installing again takes it back.
	kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	samples := filepath.Join(root, "config", "samples")
	kubectl("apply", "-n", "team-a", "-f", filepath.Join(samples, "fileserver.yaml"), "-f", filepath.Join(samples, "fileshare.yaml"))
	uid := kubectl("-n", "team-a", "get", "fileserver", "training", "-o", "jsonpath={.metadata.uid}")
	if output, err := helm("uninstall", "howdah"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if left := kubectl("-n", "howdah-system", "get", "deployments,serviceaccounts,services", "-l", "app.kubernetes.io/name=howdah", "-o", "name"); left != "" {
		t.Errorf("helm uninstall leaves %s", left)
	}
	install()
	if again := kubectl("-n", "team-a", "get", "fileserver", "training", "-o", "jsonpath={.metadata.uid}"); uid == "" || again != uid {
		t.Errorf("FileServer %q became %q by uninstalling and installing again", uid, again)
	}
}
