package namespaceprobe

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// listen takes the port of health at a loopback address of this test alone.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(v1alpha1.ManagerPort)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestWhatCountsAsAnAnswer(t *testing.T) {
	const healthy, unhealthy, silent, refusing = "127.31.7.1", "127.31.7.2", "127.31.7.3", "127.31.7.4"
	for address, code := range map[string]int{healthy: http.StatusOK, unhealthy: http.StatusInternalServerError} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		server.Listener = listen(t, address)
		server.Start()
		t.Cleanup(server.Close)
	}
	listen(t, silent) // The kernel accepts the connection, and nothing reads it.
	for address, want := range map[string]bool{healthy: true, unhealthy: true, silent: false, refusing: true} {
		ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
		if got := Answers(ctx, &corev1.Pod{Status: corev1.PodStatus{PodIP: address}}); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
		cancel()
	}
}
