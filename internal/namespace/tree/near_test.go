package tree

import (
	"net/netip"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
)

func TestClientsAreNearByTheNewestListsOfADataServer(t *testing.T) {
	tr := New("fs")
	set := func(fileServer string, node, zone []string) {
		o := &internalv1.DataServer{Spec: internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer}, NodeAddresses: node, ZoneNetworks: zone,
		}}
		o.Name = "fs-0"
		tr.SetServer(o)
	}
	clients := []string{"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "fd00::1%eth0", "10.0.0.3"}
	const far, zone, node = hotdirectories.Far, hotdirectories.SameZone, hotdirectories.SameNode
	for _, step := range []struct {
		when   string
		change func()
		want   [5]hotdirectories.Nearness
	}{
		{"nothing is known", func() {}, [5]hotdirectories.Nearness{}},
		{
			"a node, which is in the zone", func() { set("fs", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.0/30"}) },
			[5]hotdirectories.Nearness{node, node, zone, node, zone},
		},
		{
			"of another FileServer", func() { set("another", []string{"10.0.0.3"}, nil) },
			[5]hotdirectories.Nearness{node, node, zone, node, zone},
		},
		{
			"another zone", func() { set("fs", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.3/32"}) },
			[5]hotdirectories.Nearness{node, node, far, node, zone},
		},
		{
			"another node", func() { set("fs", []string{"10.0.0.2"}, []string{"10.0.0.3/32"}) },
			[5]hotdirectories.Nearness{far, far, node, far, zone},
		},
		{"nothing is hot any more", func() { set("fs", nil, nil) }, [5]hotdirectories.Nearness{}},
		{"the data server is gone", func() { set("fs", []string{"10.0.0.1"}, nil); tr.DeleteServer("fs-0") }, [5]hotdirectories.Nearness{}},
	} {
		step.change()
		for i, client := range clients {
			if got := tr.Nearness("fs-0", netip.MustParseAddr(client)); got != step.want[i] {
				t.Errorf("%s: %s is %d, want %d", step.when, client, got, step.want[i])
			}
		}
	}
}
