package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy has the API server note every request that the operator ends, without what it carries.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: [` + operatorUser + `]
- level: None
`

// apiServer is the API server that is measured beside the operator: it does most of the work that the operator causes.
type apiServer struct {
	client *http.Client
	url    string
	// audit is the path of its audit log.
	audit string
	read  int64
	// profiles is the folder for CPU profiles of it and of the operator; empty means none.
	profiles string
}

// configureAudit must be called before the API server starts.
func configureAudit(environment *envtest.Environment, folder string) (log string, err error) {
	policy, log := filepath.Join(folder, "audit.yaml"), filepath.Join(folder, "audit.log")
	environment.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", log)
	return log, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

func newAPIServer(config *rest.Config, audit, profiles string) (*apiServer, error) {
	client, err := rest.HTTPClientFor(config)
	return &apiServer{client: client, url: "https://" + strings.Trim(strings.TrimPrefix(config.Host, "https://"), "/"), audit: audit, profiles: profiles}, err
}

func (s *apiServer) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return get(ctx, s.client, s.url+path)
}

// cpu is how many CPU seconds the API server has used so far, for whomever.
func (s *apiServer) cpu(ctx context.Context) (time.Duration, error) {
	body, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, _, value, ok := parseMetric(lines.Text()); ok && name == "process_cpu_seconds_total" {
			return time.Duration(value * float64(time.Second)), nil
		}
	}
	return 0, errors.Join(errors.New("the API server does not tell its CPU seconds"), lines.Err())
}

// auditSize grows with each request of the operator.
func (s *apiServer) auditSize() (int64, error) {
	info, err := os.Stat(s.audit)
	if errors.Is(err, os.ErrNotExist) { // Until the first one.
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// requests are the operator's since the last call, by what they did: "patch fileshares/status", "get pods: 404".
func (s *apiServer) requests() (map[string]int, error) {
	file, err := os.Open(s.audit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(s.read, io.SeekStart); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) { // What comes after the last end of a line is written yet.
			return counts, nil
		}
		if err != nil {
			return nil, err
		}
		s.read += int64(len(line))
		var event struct {
			Verb      string `json:"verb"`
			ObjectRef struct {
				Resource, Subresource string
			} `json:"objectRef"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, fmt.Errorf("the audit log has %q: %w", line, err)
		}
		what := event.Verb + " " + event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}
		if event.ResponseStatus.Code >= http.StatusBadRequest {
			what += fmt.Sprintf(": %d", event.ResponseStatus.Code)
		}
		counts[what]++
	}
}

// describeRequests lists what was requested for each of the times that something was done, the most frequent first.
func describeRequests(counts map[string]int, times int) string {
	var names []string
	for name := range counts {
		if !strings.HasPrefix(name, "watch ") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "    %8.1f  %s\n", float64(counts[name])/float64(times), name)
	}
	return text.String()
}
