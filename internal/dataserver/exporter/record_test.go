package exporter

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

func TestAClientThatGaneshaCouldNotRecordIsReported(t *testing.T) {
	now := time.Unix(1e9, 0)
	daemon := &losing{t: t, configFile: filepath.Join(t.TempDir(), "ganesha.conf"), exports: map[string]server.FileSystem{}}
	m := New(Config{Ganesha: daemon, Expected: &server.Expectation{}, Log: quiet})
	m.now, m.dataServer, m.storage = func() time.Time { return now }, dataservertest.DataServer(1), volumes.New(dataservertest.EmptyVolume(t), quiet)
	if seen := m.verdict(nil); !seen.Ready || strings.Contains(seen.Message, "record a client") {
		t.Errorf("at first: %+v", seen)
	}
	daemon.noRecordAt = now
	if seen := m.verdict(nil); !seen.Ready || !strings.Contains(seen.Message, "could not record a client") {
		t.Errorf("after a record that could not be written: %+v", seen)
	}
	now = now.Add(noRecordRemembered + time.Second)
	if seen := m.verdict(nil); strings.Contains(seen.Message, "record a client") {
		t.Errorf("long after it: %+v", seen)
	}
}
