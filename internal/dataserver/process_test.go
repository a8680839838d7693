package dataserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/serverpod"
)

func TestAGaneshaThatEndsAtOnceIsReportedAndStartedAgain(t *testing.T) {
	root := dataservertest.EmptyVolume(t)
	key := filepath.Join(t.TempDir(), "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
	asked, status := make(chan kubeapi.Desired, 1), &dataservertest.Statuses{}
	options := Options{
		DataServer: "training-0", VolumesRoot: root, RunDir: t.TempDir(), GaneshaBinary: "/bin/false", HandleKey: key, Log: quiet, own: server.OwnAddress(),
	}
	p, err := newProcess(options, parts{
		reporter: status, desired: asked, isDeleted: func() bool { return false },
		storage: func(dataServer *internalv1.DataServer) backend.Backend { return storageOf(dataServer, options, nil) },
	})
	mustWork(t, "make the process", err)
	defer p.supervisor.Release()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.exporter.Run(ctx) }()
	asked <- kubeapi.Desired{Server: dataservertest.DataServer(1)}
	for deadline := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		seen, _ := status.Get()
		condition := meta.FindStatusCondition(seen.Conditions, v1alpha1.ConditionReady)
		if condition != nil && condition.Reason == internalv1.ReasonServerDown && strings.Contains(condition.Message, "exit status 1") &&
			p.supervisor.State().Starts > 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain; the status is %+v", seen)
		}
	}
	for path, want := range map[string]int{serverpod.HealthPath: http.StatusOK, serverpod.ReadyPath: http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		p.handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	cancel()
	mustWork(t, "the exporter", <-ended)
}
