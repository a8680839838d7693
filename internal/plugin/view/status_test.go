package view

import (
	"fmt"
	"strings"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/test/builders"
)

func TestStatusIsATree(t *testing.T) {
	foreign := wellWorld()
	foreign.Attachments = []internalv1.ShareAttachment{{Spec: internalv1.ShareAttachmentSpec{
		FileServerRef: internalv1.FileServerReference{Name: "training"}, FileShareRef: internalv1.FileShareReference{Name: "team-a.data"}, Path: "/team-a",
	}}}
	foreign.Attachments[0].Namespace = "default"
	foreign.FileShares = append(foreign.FileShares, *builders.FileShare("default", "far", "other").OnNamespace("infra").Build())
	outside := wellWorld()
	outside.FileServers[0].Status.OutsideAddresses = []string{"192.0.2.9", "2001:db8::9"}
	outside.FileServers[0].Status.Servers[1].OutsideAddresses = []string{"lb-1.example.com"}
	missing := wellWorld()
	missing.FileServers = nil
	tenant := &World{Now: now, Namespace: "default", FileShares: foreign.FileShares[len(foreign.FileShares)-1:]}
	everywhere := &World{Now: now, FileShares: tenant.FileShares, Hidden: []Hidden{{Resource: ResourceFileServers, Right: "list"}}}
	powerless := &World{Now: now, Namespace: "team-a"}
	for _, resource := range []string{ResourceFileServers, ResourceFileShares, ResourceDataServers} {
		powerless.Hidden = append(powerless.Hidden, Hidden{Resource: resource, Namespace: "team-a", Right: "list"})
	}
	for name, test := range map[string]struct {
		world *World
		page  text.Page
		all   bool
		well  bool
	}{
		"well":            {wellWorld(), text.Page{}, false, true},
		"all-directories": {wellWorld(), text.Page{}, true, true},
		"broken":          {brokenWorld(), text.Page{}, false, false},
		"narrow":          {brokenWorld(), text.Page{Width: 60}, false, false},
		"colours":         {brokenWorld(), text.Page{Width: 100, Colour: true}, false, false},
		"viewer":          {viewersWorld(brokenWorld()), text.Page{Width: 100}, false, false},
		"other-namespace": {foreign, text.Page{}, false, false},
		"outside":         {outside, text.Page{}, false, true},
		"missing":         {missing, text.Page{}, false, false},
		"tenant":          {tenant, text.Page{}, false, false},
		"hidden":          {everywhere, text.Page{}, false, false},
		"powerless":       {powerless, text.Page{}, false, true},
		"nothing":         {&World{Now: now}, text.Page{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			status := NewStatus(test.world, test.all)
			printed := status.Text(test.page, test.all)
			golden(t, "status-"+name+".txt", printed)
			if status.IsWell() != test.well {
				t.Errorf("IsWell is %v", status.IsWell())
			}
			if strings.Contains(printed, "\x1b") != test.page.Colour {
				t.Error("colours are for pages that have them, and only those")
			}
			for _, line := range strings.Split(printed, "\n") {
				if n := len([]rune(line)); test.page.Width > 0 && !test.page.Colour && n > test.page.Width && !strings.Contains(line, "howdah.io") {
					t.Errorf("a line has %d columns of %d: %s", n, test.page.Width, line)
				}
			}
		})
	}
	encoded, err := Encode(NewStatus(brokenWorld(), false), "yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "status-broken.yaml", encoded)
}

func TestTenThousandDirectoriesAreCounted(t *testing.T) {
	w := wellWorld()
	w.Directories = nil
	for i := range 10_000 {
		d := builders.ShareDirectory("default", "training", "unet3d", fmt.Sprintf("train/%d", i), naming.DataServer("training", int32(i%3)))
		if i < 30 {
			d.Status.State = internalv1.DirectoryCreating
		}
		w.Directories = append(w.Directories, *d)
	}
	printed := NewStatus(w, false).Text(text.Page{}, false)
	golden(t, "status-ten-thousand.txt", printed)
	if lines := strings.Count(NewStatus(w, true).Text(text.Page{}, true), "\n"); lines < 10_000 {
		t.Errorf("all directories take %d lines", lines)
	}
}

func TestNamesOfDirectoriesDoNotControlTheTerminal(t *testing.T) {
	w := wellWorld()
	w.Directories[0].Spec.Path = "train/\x1b]0;gotcha\a\u202e\u009b31m"
	printed := NewStatus(w, true).Text(text.Page{Colour: false}, true)
	if strings.ContainsAny(printed, "\x1b\a\u202e\u009b") || !strings.Contains(printed, "gotcha") {
		t.Errorf("%q", printed)
	}
}
