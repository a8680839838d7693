package exporter

import (
	"net/netip"
	"slices"
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

// A network in which a machine may have any number of addresses is one client, whoever it is of.
func TestNodesAndSingleAddressesOfIPv6CountAlone(t *testing.T) {
	ids := &exportids.Table{Parts: []map[string]exportids.Entry{{}}}
	mustWork(t, "allocate", ids.Allocate("a", nil))
	dataServer := dataservertest.DataServer(1)
	dataServer.Spec.NodeNetworks = []string{"fd00:7::2/127", "fd00:8::/112", "fd00:9::/64", "192.168.7.2/32", "::ffff:192.168.7.3/128"}
	served := dataservertest.NewExport(dataservertest.ShareSpec("a", v1alpha1.AccessRule{Clients: []string{"fd00:a::1", "fd00:a::/64", "10.0.0.1", v1alpha1.ClientNodes}}))
	awaited := dataservertest.NewExport(dataservertest.ShareSpec("b", v1alpha1.AccessRule{Clients: []string{"fd00:b::1/128", "fd00:b::/127"}}))
	mustWork(t, "allocate", ids.Allocate("b", nil))
	config, err := desiredConfig(dataServer, []*internalv1.ShareExport{served}, []*internalv1.ShareExport{awaited}, ids, volumes.New("/volumes", quiet),
		server.OwnAddress(), 0, netip.MustParseAddr("fd00:c::1"), netip.MustParseAddr("10.0.0.9"))
	mustWork(t, "the configuration", err)
	var got []string
	for _, network := range config.CountedAlone {
		got = append(got, network.String())
	}
	want := []string{"fd00:7::2/127", "fd00:8::/112", "fd00:c::1/128", "fd00:a::1/128", "fd00:b::1/128"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
