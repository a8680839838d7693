package exporter

import (
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

func TestTheOwnerComesFromTheNameAndTheUID(t *testing.T) {
	dataServer := dataservertest.DataServer(1)
	dataServer.Spec.FileServerRef.Name, dataServer.Name = "a-1", "a-1-12"
	if owner, err := serverOwner(dataServer); err != nil || owner != dataServer.Spec.ServerScope+"-12" {
		t.Errorf("%q, %v", owner, err)
	}
	for _, name := range []string{"a-1", "a-1-", "a-1-x", "a-1--1", "b-1-0", "a-1-99999999999"} {
		dataServer.Name = name
		if owner, err := serverOwner(dataServer); err == nil {
			t.Errorf("%s is owner %s", name, owner)
		}
	}
}

func TestAValueOfALaterVersionLetsNoClientIn(t *testing.T) {
	for name, rule := range map[string]v1alpha1.AccessRule{
		"an accessType": {Clients: []string{"10.0.0.0/8"}, AccessType: "Append"},
		"ports":         {Clients: []string{"10.0.0.0/8"}, SourcePorts: "High"},
		"a squash":      {Clients: []string{"10.0.0.0/8"}, Squash: "Some"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := &exportids.Table{Parts: []map[string]exportids.Entry{{}}}
			mustWork(t, "allocate", ids.Allocate("a", nil))
			exports := []*internalv1.ShareExport{dataservertest.NewExport(dataservertest.ShareSpec("a", rule))}
			if config, err := desiredConfig(dataservertest.DataServer(1), exports, nil, ids, volumes.New("/volumes", quiet), server.OwnAddress(), 0); err == nil {
				t.Errorf("%+v", config)
			}
		})
	}
}
