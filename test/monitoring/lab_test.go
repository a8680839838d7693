package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/internal/metrics"
)

const (
	// envToken is a file with a token of an account that may read the operator's metrics (hack/test-prometheus.sh).
	envToken = "HOWDAH_PROMETHEUS_TOKEN"
	// labTimeout is how long a lab may take to have data for all expressions; a benchmark must finish in it.
	labTimeout = 9 * time.Minute
)

// discovered are the containers' ports of pods, with the labels that Prometheus' own discovery gives them.
func discovered(ctx context.Context) ([]byte, error) {
	output, err := exec.CommandContext(ctx, "kubectl", "get", "pods", "-A", "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl get pods: %w", err)
	}
	var pods corev1.PodList
	if err := json.Unmarshal(output, &pods); err != nil {
		return nil, err
	}
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	list := []target{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				labels := map[string]string{
					"__meta_kubernetes_namespace": pod.Namespace, "__meta_kubernetes_pod_name": pod.Name,
					"__meta_kubernetes_pod_container_port_name": port.Name,
				}
				for key, value := range pod.Labels {
					labels["__meta_kubernetes_pod_label_"+strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(key)] = value
				}
				list = append(list, target{[]string{fmt.Sprintf("%s:%d", pod.Status.PodIP, port.ContainerPort)}, labels})
			}
		}
	}
	return json.Marshal(list)
}

// discover keeps the file with targets up to date, which Prometheus reads again when it changes: pods come and go.
func discover(t *testing.T, file string) {
	t.Helper()
	write := func() error {
		targets, err := discovered(t.Context())
		if err != nil {
			return err
		}
		// Not in place, or a half of it is read.
		if err := os.WriteFile(file+".new", targets, 0o600); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(5 * time.Second):
				_ = write() // Expressions without data are reported later.
			}
		}
	}()
}

// ofLab is the configuration that users get, but for discovery, intervals and where the token is.
func ofLab(t *testing.T) string {
	t.Helper()
	config := string(read(t, top+"/config/prometheus/scrape.yaml"))
	for before, after := range map[string]string{
		"kubernetes_sd_configs:\n  - role: pod\n":             "file_sd_configs:\n  - files: [targets.json]\n",
		"scrape_interval: 15s":                                "scrape_interval: 5s\n  evaluation_interval: 5s",
		"/var/run/secrets/kubernetes.io/serviceaccount/token": os.Getenv(envToken),
	} {
		if !strings.Contains(config, before) {
			t.Fatalf("config/prometheus/scrape.yaml has no %q any more", before)
		}
		config = strings.ReplaceAll(config, before, after)
	}
	return config
}

// Needs a lab with the samples (a FileServer, a share, a benchmark) and an object that is being deleted, and to run where the pods' addresses are.
func TestEveryExpressionHasDataInALab(t *testing.T) {
	if os.Getenv(envToken) == "" {
		t.Skip("make test-prometheus runs it on a lab")
	}
	missing := wanted(t)
	for _, metric := range metrics.All() {
		name := metric.Name
		if metric.Type == metrics.Histogram {
			name += "_count"
		}
		missing["metric "+metric.Name] = name
	}
	// Nothing keeps shares on volumes to a size, counts what they take, makes snapshots of them, or moves directories; test/ceph sees all that.
	ofCeph := []string{
		metrics.FileShareUsed.Name, metrics.FileShareQuota.Name, "howdah:file_share_quota_used",
		metrics.FileShareSnapshots.Name, metrics.FileShareNewestSnapshot.Name, `kind="FileShareSnapshotSchedule"`,
		metrics.DirectoriesMoving.Name, metrics.DirectoriesMoved.Name,
	}
	maps.DeleteFunc(missing, func(_, expr string) bool {
		return slices.ContainsFunc(ofCeph, func(name string) bool { return strings.Contains(expr, name) })
	})
	folder := t.TempDir()
	discover(t, filepath.Join(folder, "targets.json"))
	address := startPrometheus(t, folder, ofLab(t))
	findData(t, address, missing, labTimeout)
	if up, err := ask(t.Context(), address, `up{job=~"howdah.+"}`); err != nil || up < 5 {
		t.Errorf("%d targets, want an operator, two namespace servers and data servers (%v)", up, err)
	}
	if down, err := ask(t.Context(), address, `up{job=~"howdah.+"} == 0`); err != nil || down > 0 {
		t.Errorf("%d targets are down (%v)", down, err)
	}
	series, err := ask(t.Context(), address, `{job=~"howdah.+"}`)
	t.Logf("FIGURE %d series (%v)", series, err)
}
