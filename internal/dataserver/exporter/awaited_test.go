package exporter

import (
	"context"
	"errors"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
)

// writtenConfig is ganesha's configuration as it is in its file.
func writtenConfig(t *testing.T, m *Exporter) ganesha.Config {
	t.Helper()
	text, err := os.ReadFile(m.ConfigFile)
	mustWork(t, "read the configuration", err)
	config, err := ganeshatest.Parse(string(text))
	mustWork(t, "parse the configuration", err)
	return config
}

// asks returns how ganesha has the export of a share: as one to serve, as one whose clients wait, or not at all.
func asks(t *testing.T, m *Exporter, pseudo string) (served, awaited bool, id uint16) {
	t.Helper()
	for _, export := range writtenConfig(t, m).Exports {
		if export.Pseudo == pseudo {
			return !export.Awaited, export.Awaited, export.ID
		}
	}
	return false, false, 0
}

// A client of a share that is left out got ESTALE, and lost what it had open. It mounts "hard", so it waits until the share is back or deleted.
func TestClientsOfAShareThatIsLeftOutWait(t *testing.T) {
	m, daemon, storage, now, pass := newRevoking(t)
	pass()
	_, _, id := asks(t, m, "/a/0")
	daemon.shutOut["/a/0"], storage.revoked["a"] = true, true
	*now = now.Add(lookEvery)
	for range 3 {
		pass()
	}
	if _, awaited, now := asks(t, m, "/a/0"); !awaited || now != id {
		t.Errorf("the share that is left out has id %d, not %d, or is not awaited: %+v", now, id, writtenConfig(t, m).Exports)
	}
	if served, _, _ := asks(t, m, "/b/0"); !served {
		t.Error("the other share is not served")
	}
	delete(storage.revoked, "a")
	*now = now.Add(lookEvery)
	for range 4 {
		pass()
	}
	if served, _, back := asks(t, m, "/a/0"); !served || back != id {
		t.Errorf("the share is not served again: %+v", writtenConfig(t, m).Exports)
	}
	storage.revoked["a"], daemon.shutOut["/a/0"] = true, true
	*now = now.Add(lookEvery)
	for range 3 {
		pass()
	}
	m.exports[0].DeletionTimestamp = &metav1.Time{Time: *now}
	for range 2 {
		pass()
	}
	if served, awaited, _ := asks(t, m, "/a/0"); served || awaited {
		t.Errorf("clients wait for a share that is deleted: %+v", writtenConfig(t, m).Exports)
	}
	if !m.removed[m.exports[0].UID] {
		t.Error("the deletion does not end")
	}
}

// A rule that this version does not know gives no client access. The clients that were let in before wait, as they do while the server is away.
func TestClientsOfAShareWithAnUnknownRuleWait(t *testing.T) {
	m, _, _, _, pass := newRevoking(t)
	pass()
	m.exports[0].Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.0/8"}, AccessType: "Append"}}
	pass()
	if _, awaited, _ := asks(t, m, "/a/0"); !awaited {
		t.Errorf("%+v", writtenConfig(t, m).Exports)
	}
	for _, export := range writtenConfig(t, m).Exports {
		if export.Awaited && len(export.Clients) != len(loopbackClients(m.Own)) {
			t.Errorf("clients that the rules do not name: %+v", export.Clients)
		}
	}
}

// refusing are volumes that are not the data server's any more.
type refusing struct{ *revoking }

func (r *refusing) Judge(context.Context, *internalv1.DataServer) error {
	return errors.New("another file system is mounted")
}

// Nothing is served from storage that is refused, and nothing of it is deleted.
func TestClientsOfStorageThatIsRefusedWait(t *testing.T) {
	m, _, storage, _, pass := newRevoking(t)
	pass()
	m.storage = &refusing{storage}
	pass()
	config := writtenConfig(t, m)
	if len(config.Exports) != 2 || len(config.Served()) != 0 {
		t.Errorf("%+v", config.Exports)
	}
}
