package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const operatorUser = "howdah-operator"

// memoryLimit is what the garbage collector keeps the operator within in a pod with the chart's limit of 512 MiB (internal/memory).
const memoryLimit = "460MiB"

// allow makes a user with the operator's generated role and returns its kubeconfig.
func allow(ctx context.Context, admin client.Client, environment *envtest.Environment) (string, error) {
	text, err := os.ReadFile(filepath.Join("config", "rbac", "role.yaml"))
	if err != nil {
		return "", err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		return "", err
	}
	if err := admin.Create(ctx, &role); err != nil {
		return "", err
	}
	if err := admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: operatorUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}); err != nil {
		return "", err
	}
	user, err := environment.AddUser(envtest.User{Name: operatorUser}, nil)
	if err != nil {
		return "", err
	}
	access, err := user.KubeConfig()
	return string(access), err
}

// writeAccess puts the kubeconfig into a file and returns its path.
func writeAccess(folder, access string) (string, error) {
	path := filepath.Join(folder, "kubeconfig")
	return path, os.WriteFile(path, []byte(access), 0o600)
}

// process is a running operator.
type process struct {
	command *exec.Cmd
	metrics string
	server  *apiServer
	// profiles is the URL of its CPU profiles; empty means none.
	profiles string
}

func startOperator(ctx context.Context, server *apiServer, binary, kubeconfig string) (*process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	profiles := "0"
	if server.profiles != "" {
		if profiles, err = freeAddress(ctx); err != nil {
			return nil, err
		}
	}
	logs, err := os.Create(filepath.Join(filepath.Dir(kubeconfig), "operator.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = logs.Close() }()
	command := exec.CommandContext(ctx, binary, "operator", "--server-image", "registry.invalid/server:load", "--howdah-image",
		"registry.invalid/howdah:load", "--metrics-bind-address", address, "--metrics-secure=false", "--health-probe-bind-address", "0",
		"--pprof-bind-address", profiles)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GOMEMLIMIT="+memoryLimit)
	command.Stdout, command.Stderr = logs, logs
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &process{server: server, command: command, metrics: "http://" + address + "/metrics"}
	if profiles != "0" {
		started.profiles = "http://" + profiles
	}
	return started, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// stop ends the operator and waits for it.
func (p *process) stop() {
	_ = p.command.Process.Signal(os.Interrupt)
	_ = p.command.Wait()
}

// reading is what the operator has done so far.
type reading struct {
	cpu                  time.Duration // Not from its metrics: to answer with them costs CPU, too.
	writes, passes       float64
	waiting              float64 // Requests in queues and passes under way.
	resident, peak, heap float64
}

// read asks the operator's metrics and the kernel.
func (p *process) read(ctx context.Context) (reading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return reading{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reading{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return reading{}, fmt.Errorf("%s: %s", p.metrics, response.Status)
	}
	var r reading
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r.add(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return reading{}, err
	}
	r.peak, err = peakMemory(p.command.Process.Pid)
	return r, err
}

// add takes one line of the metrics.
func (r *reading) add(line string) {
	name, labels, value, ok := parseMetric(line)
	if !ok {
		return
	}
	switch name {
	case "process_resident_memory_bytes":
		r.resident = value
	case "go_memstats_heap_inuse_bytes":
		r.heap = value
	case "rest_client_requests_total":
		if !strings.Contains(labels, `method="GET"`) {
			r.writes += value
		}
	case "controller_runtime_reconcile_total":
		r.passes += value
	case "workqueue_depth", "controller_runtime_active_workers":
		r.waiting += value
	}
}

// parseMetric reads a line of Prometheus' text format.
func parseMetric(line string) (name, labels string, value float64, ok bool) {
	if strings.HasPrefix(line, "#") {
		return "", "", 0, false
	}
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return "", "", 0, false
	}
	name, labels, _ = strings.Cut(line[:at], "{")
	value, err := strconv.ParseFloat(line[at+1:], 64)
	return name, labels, value, err == nil
}

// clockTick is the unit of times in /proc/PID/stat: USER_HZ is 100 on all architectures (getconf CLK_TCK).
const clockTick = time.Second / 100

// cpuSeconds is what a process has used of CPUs so far: utime and stime of proc_pid_stat(5).
func cpuSeconds(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, can have spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %q", pid, text)
	}
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat has %q: %w", pid, text, err)
		}
		ticks += time.Duration(n)
	}
	return ticks * clockTick, nil
}

// peakMemory is the most that a process had resident, in bytes.
func peakMemory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmHWM", pid)
}
