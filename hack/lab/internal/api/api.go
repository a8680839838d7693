// Package api is the few calls to the API server that the lab itself needs; a
// client library would be most of the tool's size and build time.
package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Config says where the API server is and who asks.
type Config struct {
	Server        string
	NetNS         string
	CA, Cert, Key string
}

// Client sends requests.
type Client struct {
	server string
	http   *http.Client
}

// New makes a client whose connections are opened inside the lab.
func New(config Config) (*Client, error) {
	pem, err := os.ReadFile(config.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", config.CA)
	}
	pair, err := tls.LoadX509KeyPair(config.Cert, config.Key)
	if err != nil {
		return nil, err
	}
	dial := func(_ context.Context, network, address string) (conn net.Conn, err error) {
		err = sys.InNetNS(config.NetNS, func() (err error) {
			conn, err = net.DialTimeout(network, address, 2*time.Second)
			return err
		})
		return conn, err
	}
	return &Client{server: config.Server, http: &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DialContext:       dial,
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
			DisableKeepAlives: true,
		},
	}}, nil
}

// Get reads a path; into may be nil.
func (c *Client) Get(path string, into any) error {
	response, err := c.http.Get(c.server + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %.200s", path, response.Status, strings.TrimSpace(string(body)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

type condition struct {
	Type, Status string
}

// ReadyNodes lists the nodes that are Ready.
func (c *Client) ReadyNodes() ([]string, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Conditions []condition }
		}
	}
	if err := c.Get("/api/v1/nodes", &list); err != nil {
		return nil, err
	}
	var ready []string
	for _, node := range list.Items {
		for _, state := range node.Status.Conditions {
			if state.Type == "Ready" && state.Status == "True" {
				ready = append(ready, node.Metadata.Name)
			}
		}
	}
	return ready, nil
}

// Workload is how far a Deployment or DaemonSet has come.
type Workload struct {
	Metadata struct{ Generation int64 }
	Spec     struct{ Replicas *int }
	Status   struct {
		ObservedGeneration     int64
		AvailableReplicas      int
		NumberAvailable        int
		DesiredNumberScheduled int
	}
}

// Available reports whether a Deployment or DaemonSet has all its pods.
func (c *Client) Available(kind, namespace, name string, nodes int) (bool, error) {
	var w Workload
	if err := c.Get(fmt.Sprintf("/apis/apps/v1/namespaces/%s/%s/%s", namespace, kind, name), &w); err != nil {
		return false, err
	}
	if w.Status.ObservedGeneration < w.Metadata.Generation {
		return false, nil
	}
	if kind == "daemonsets" {
		return w.Status.DesiredNumberScheduled >= nodes && w.Status.NumberAvailable >= nodes, nil
	}
	return w.Spec.Replicas != nil && w.Status.AvailableReplicas >= *w.Spec.Replicas, nil
}
