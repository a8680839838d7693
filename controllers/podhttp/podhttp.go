// Package podhttp asks the pods of servers over HTTP.
package podhttp

import (
	"context"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// httpClient asks pods directly: without proxy and without following redirects.
var httpClient = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Get asks a pod for a path (internal/serverpod). The caller closes the body and bounds what it reads of it.
func Get(ctx context.Context, pod *corev1.Pod, path string) (*http.Response, error) {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(fleet.PortOf(pod, naming.PortManager, v1alpha1.ManagerPort)))) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return httpClient.Do(request)
}

// IsEndpoint reports whether Services send connections to the pod.
func IsEndpoint(pod *corev1.Pod) bool {
	return fleet.PodOf(pod) == fleet.PodReady && pod.Status.PodIP != ""
}
