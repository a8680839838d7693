package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestWhatMayTakeNewDirectories(t *testing.T) {
	serving := Server{Name: "fs-1", Serves: true}
	for name, tc := range map[string]struct {
		server Server
		ignore []string
		want   Obstacle
	}{
		"it serves":                         {server: serving, want: None},
		"another is ignored":                {server: serving, ignore: []string{"fs-0", "fs-10"}, want: None},
		"the share has given it up":         {server: serving, ignore: []string{"fs-1"}, want: Ignored},
		"it is to be idle":                  {server: Server{Name: "fs-1", Serves: true, Leaving: true}, want: Leaving},
		"it does not answer":                {server: Server{Name: "fs-1"}, want: NotServing},
		"it leaves, and does not answer":    {server: Server{Name: "fs-1", Leaving: true}, want: Leaving},
		"it is ignored, and does not serve": {server: Server{Name: "fs-1"}, ignore: []string{"fs-1"}, want: Ignored},
	} {
		if got := MayTake(tc.server, tc.ignore); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestWhatADataServerIsLike(t *testing.T) {
	ready := func(status metav1.ConditionStatus, since time.Duration) func(*internalv1.DataServer, *v1alpha1.FileServer) {
		return func(s *internalv1.DataServer, _ *v1alpha1.FileServer) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-since))}}
		}
	}
	for name, tc := range map[string]struct {
		change []func(*internalv1.DataServer, *v1alpha1.FileServer)
		want   Server
	}{
		"it serves":        {want: Server{Serves: true}},
		"it never started": {change: edits(func(s *internalv1.DataServer, _ *v1alpha1.FileServer) { s.Status = internalv1.DataServerStatus{} }), want: Server{Serves: true}},
		"it restarts":      {change: edits(ready(metav1.ConditionFalse, time.Second)), want: Server{Serves: true}},
		"it is out":        {change: edits(ready(metav1.ConditionFalse, RestartAllowance)), want: Server{}},
		"by another clock": {change: edits(ready(metav1.ConditionFalse, -time.Hour)), want: Server{}},
		"nobody reaches it": {change: edits(func(s *internalv1.DataServer, _ *v1alpha1.FileServer) {
			s.Status.Unreachable.SeenBy = "fs-namespace-1"
		}), want: Server{}},
		"its pod is not ready": {change: edits(unavailable), want: Server{}},
		"its pod is not ready yet": {
			change: edits(ready(metav1.ConditionTrue, time.Second), unavailable), want: Server{Serves: true},
		},
		"it is in maintenance": {change: edits(func(_ *internalv1.DataServer, fs *v1alpha1.FileServer) {
			fs.Spec.Drain = &v1alpha1.Drain{Servers: []string{"fs-0", "fs-1"}}
		}), want: Server{Leaving: true, Serves: true}},
		"another is": {change: edits(func(_ *internalv1.DataServer, fs *v1alpha1.FileServer) {
			fs.Spec.Drain = &v1alpha1.Drain{Servers: []string{"fs-0"}}
		}), want: Server{Serves: true}},
		"the FileServer has become smaller": {change: edits(func(_ *internalv1.DataServer, fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 }), want: Server{Leaving: true, Serves: true}},
		"its DataServer says so": {change: edits(func(s *internalv1.DataServer, _ *v1alpha1.FileServer) {
			s.Spec.NewDirectories = internalv1.NewDirectoriesElsewhere
		}), want: Server{Leaving: true, Serves: true}},
		"it is being deleted": {change: edits(func(s *internalv1.DataServer, _ *v1alpha1.FileServer) { s.DeletionTimestamp = &metav1.Time{Time: noon} }), want: Server{Leaving: true}},
	} {
		fs := &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Name: "fs"}, Spec: v1alpha1.FileServerSpec{Replicas: 2}}
		server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: "fs-1"}}
		server.Status.ObservedGeneration = ptr.To(int64(1))
		ready(metav1.ConditionTrue, time.Hour)(server, fs)
		for _, change := range tc.change {
			change(server, fs)
		}
		tc.want.Name = "fs-1"
		if got := Of(fs, server, noon); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		tc.want.Serves = name == "it serves" || name == "its pod is not ready" || name == "its pod is not ready yet" || name == "another is" || tc.want.Serves && tc.want.Leaving
		if got := Now(fs, server); got != tc.want {
			t.Errorf("%s, now: %+v, want %+v", name, got, tc.want)
		}
	}
}

func edits(all ...func(*internalv1.DataServer, *v1alpha1.FileServer)) []func(*internalv1.DataServer, *v1alpha1.FileServer) {
	return all
}

func unavailable(_ *internalv1.DataServer, fs *v1alpha1.FileServer) {
	fs.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-1", State: v1alpha1.ServerUnavailable}}
}

func TestANameThatIsNotTheFileServersIsNotToBeIdle(t *testing.T) {
	fs := &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Name: "fs"}, Spec: v1alpha1.FileServerSpec{Replicas: 1}}
	for server, want := range map[string]bool{"fs-0": false, "fs-1": true, "fs-x": false, "other-7": false} {
		if got := IsToBeIdle(fs, server); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
}
