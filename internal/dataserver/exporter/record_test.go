package exporter

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
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

func TestADataServerIsNotReadyWhileItsNodeLacksTheAddress(t *testing.T) {
	daemon := &losing{t: t, configFile: filepath.Join(t.TempDir(), "ganesha.conf"), exports: map[string]server.FileSystem{}}
	addresses, missing := []string{"10.20.0.11"}, ""
	m := New(Config{Ganesha: daemon, Expected: &server.Expectation{}, NodeAddresses: func() ([]string, string) { return addresses, missing }, Log: quiet})
	m.dataServer, m.storage = dataservertest.DataServer(1), volumes.New(dataservertest.EmptyVolume(t), quiet)
	if seen := m.verdict(nil); !seen.Ready || !slices.Equal(seen.NetworkAddresses, addresses) {
		t.Errorf("at first: %+v", seen)
	}
	addresses, missing = nil, "node node-a has no address in 10.20.0.0/16"
	if seen := m.verdict(nil); seen.Ready || seen.Reason != internalv1.ReasonNodeAddressMissing || seen.Message != missing || len(seen.NetworkAddresses) > 0 || !seen.Loaded {
		t.Errorf("without the address: %+v", seen)
	}
}
