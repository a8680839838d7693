package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

func TestWhichServersMayTakeNewDirectories(t *testing.T) {
	serving := Server{Name: "fs-1", Serves: true}
	for name, tc := range map[string]struct {
		server Server
		ignore []string
		want   Obstacle
	}{
		"serves":                     {server: serving, want: None},
		"another is ignored":         {server: serving, ignore: []string{"fs-0", "fs-10"}, want: None},
		"ignored":                    {server: serving, ignore: []string{"fs-1"}, want: Ignored},
		"leaving":                    {server: Server{Name: "fs-1", Serves: true, Leaving: true}, want: Leaving},
		"does not answer":            {server: Server{Name: "fs-1"}, want: NotServing},
		"leaving, does not answer":   {server: Server{Name: "fs-1", Leaving: true}, want: Leaving},
		"ignored, does not answer":   {server: Server{Name: "fs-1"}, ignore: []string{"fs-1"}, want: Ignored},
		"leaving, ignored, no reply": {server: Server{Name: "fs-1", Leaving: true}, ignore: []string{"fs-1"}, want: Leaving},
	} {
		if got := MayTake(tc.server, tc.ignore); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestCandidates(t *testing.T) {
	type edit = func(*internalv1.DataServer, *v1alpha1.FileServer)
	drain := func(servers ...string) edit {
		return func(_ *internalv1.DataServer, fs *v1alpha1.FileServer) {
			fs.Spec.Drain = &v1alpha1.Drain{Servers: servers}
		}
	}
	unavailable := func(_ *internalv1.DataServer, fs *v1alpha1.FileServer) {
		fs.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-1", State: v1alpha1.ServerUnavailable}}
	}
	for name, tc := range map[string]struct {
		edits              []edit
		leaving, now, soon bool
	}{
		"serves":               {now: true, soon: true},
		"never started":        {edits: []edit{func(s *internalv1.DataServer, _ *v1alpha1.FileServer) { s.Status = internalv1.DataServerStatus{} }}, soon: true},
		"restarts":             {edits: []edit{report(metav1.ConditionFalse, time.Second)}, soon: true},
		"down":                 {edits: []edit{report(metav1.ConditionFalse, RestartAllowance)}},
		"its pod is not ready": {edits: []edit{unavailable}, now: true},
		"its pod is not ready yet": {
			edits: []edit{report(metav1.ConditionTrue, time.Second), unavailable}, now: true, soon: true,
		},
		"unreachable":                {edits: []edit{func(s *internalv1.DataServer, _ *v1alpha1.FileServer) { s.Status.Unreachable.SeenBy = "fs-namespace-1" }}},
		"in maintenance":             {edits: []edit{drain("fs-0", "fs-1")}, leaving: true, now: true, soon: true},
		"another is in maintenance":  {edits: []edit{drain("fs-0")}, now: true, soon: true},
		"the FileServer was reduced": {edits: []edit{func(_ *internalv1.DataServer, fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 }}, leaving: true, now: true, soon: true},
		"its DataServer takes none": {edits: []edit{func(s *internalv1.DataServer, _ *v1alpha1.FileServer) {
			s.Spec.NewDirectories = internalv1.NewDirectoriesForbid
		}}, leaving: true, now: true, soon: true},
		"being deleted": {edits: []edit{func(s *internalv1.DataServer, _ *v1alpha1.FileServer) {
			s.DeletionTimestamp = &metav1.Time{Time: noon}
		}}, leaving: true},
	} {
		fs, server := newFileServer(), newServer()
		for _, change := range tc.edits {
			change(server, fs)
		}
		if got, want := Now(fs, server, noon), (Server{"fs-1", tc.leaving, tc.now}); got != want {
			t.Errorf("%s, now: %+v, want %+v", name, got, want)
		}
		if got, want := Soon(fs, server, noon), (Server{"fs-1", tc.leaving, tc.soon}); got != want {
			t.Errorf("%s, soon: %+v, want %+v", name, got, want)
		}
	}
}

func TestServersToBeIdle(t *testing.T) {
	fs := newFileServer()
	fs.Spec.Replicas = 1
	for server, want := range map[string]bool{"fs-0": false, "fs-1": true, "fs-x": false, "fs-01": false, "other-7": false} {
		if got := IsToBeIdle(fs, server); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
	fs.Spec.Replicas = 0 // One for each node: none is too many.
	if IsToBeIdle(fs, "fs-7") {
		t.Error("without spec.replicas fs-7 is to be idle")
	}
}
