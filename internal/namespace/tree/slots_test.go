package tree

import (
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/test/builders"
)

func TestAMkdirGoesToNoServerThatTakesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		server func(*internalv1.DataServer)
		share  func(*v1alpha1.FileShareSpec)
		ready  bool
	}{
		"it serves":                 {ready: true},
		"it is to be idle":          {server: func(s *internalv1.DataServer) { s.Spec.NewDirectories = internalv1.NewDirectoriesForbid }},
		"it is not reachable":       {server: func(s *internalv1.DataServer) { s.Status.Unreachable.SeenBy = "x" }},
		"the share has given it up": {share: func(s *v1alpha1.FileShareSpec) { s.IgnoreDataOn = []string{"fs-0"} }},
		"another was given up":      {share: func(s *v1alpha1.FileShareSpec) { s.IgnoreDataOn = []string{"fs-1"} }, ready: true},
	} {
		tr := New("fs")
		tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, tc.share)))
		server := &internalv1.DataServer{Spec: internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: "10.0.0.1:2049", Volumes: 1}}
		server.Name, server.Status.Conditions = "fs-0", builders.ReadyConditions()
		if tc.server != nil {
			tc.server(server)
		}
		tr.SetServer(server)
		tr.SetExport(builders.ShareExport("ns", "fs", "s", "fs-0"))
		slots := tr.Slots("s")
		if len(slots) != 1 || slots[0].Ready != tc.ready {
			t.Errorf("%s: %+v", name, slots)
		}
	}
}
