package namespace

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"k8s.io/utils/ptr"
	k8s "sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/exposition"
)

// What a namespace server exposes is what the catalogue says, all of it, and nothing that a client names is a label.
func TestTheMetricsOfANamespaceServer(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	owner := &internalv1.DataServer{}
	if err := w.api.Get(t.Context(), k8s.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, 0)}, owner); err != nil {
		t.Fatal(err)
	}
	owner.Status.ObservedGeneration = ptr.To(owner.Generation)
	if err := w.api.Status().Update(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	server := w.serve("a")
	c := w.mount(server)
	if err := c.Mkdir(t.Context(), client.Credentials{UID: 4711}, "/data/made-by-a-client", client.MkdirOptions{Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if v := <-waitThere(t, server.waitingRoom); !errors.Is(v.err, syscall.ECONNRESET) || v.took < comingTime || v.took > 10*waitingTime {
		t.Errorf("who waits for a data server: %v after %s", v.err, v.took)
	}
	identity := fmt.Sprintf("file_server=%q,namespace=%q", fileServer, w.namespace)
	var text string
	w.eventually("the leader knows its data server", func() bool {
		text = metricsOf(t, server)
		return strings.Contains(text, "howdah_namespace_data_server_reachable{")
	})
	if err := exposition.Check(text, metrics.NamespaceServer); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, sample := range []string{
		`howdah_namespace_ready{%s} 1`, `howdah_namespace_leader{%s} 1`, `howdah_namespace_leader_elections_total{%s} 1`, `howdah_namespace_shares{%s} 1`,
		`howdah_namespace_operations_total{%s,operation="OP_CREATE",status="NFS4_OK"} 1`,
		`howdah_namespace_operation_duration_seconds_count{%s,operation="OP_CREATE"} 1`,
		`howdah_namespace_mkdir_duration_seconds_count{%s,status="NFS4_OK"} 1`,
		`howdah_namespace_connections_refused_total{%s} 0`, `howdah_namespace_waiting_room_connections_total{%s} 1`,
	} {
		if sample = fmt.Sprintf(sample, identity); !strings.Contains(text, sample+"\n") {
			t.Errorf("there is no %s in\n%s", sample, text)
		}
	}
	if strings.Contains(text, "made-by-a-client") || strings.Contains(text, "127.0.0.1") {
		t.Errorf("a name or an address is a label:\n%s", text)
	}
}
