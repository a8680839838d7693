package fileserver

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/directorymoves"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// inCeph is a FileServer of three data servers that have the same storage.
func inCeph(directories ...*internalv1.ShareDirectory) *observed {
	o := &observed{now: noon, fileServer: builders.FileServer("ns", "fs").Replicas(3).Ceph().Build(), dataServers: map[string]internalv1.DataServer{}, pods: map[string]corev1.Pod{}}
	for ordinal := range int32(3) {
		name := naming.DataServer("fs", ordinal)
		o.dataServers[name], o.pods[name] = dataServer(1, 1, true, ""), *pod(corev1.PodRunning, true)
	}
	return o.knows(directories...)
}

// onVolumes is inCeph with volumes, whose directories may move.
func onVolumes(directories ...*internalv1.ShareDirectory) *observed {
	o := inCeph()
	o.fileServer.Spec.Storage = builders.FileServer("ns", "fs").Build().Spec.Storage
	o.fileServer.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
	o.shares = []fleet.Share{{Key: "s"}}
	return o.knows(directories...)
}

// knows gives a FileServer its directories.
func (o *observed) knows(directories ...*internalv1.ShareDirectory) *observed {
	items := make([]internalv1.ShareDirectory, 0, len(directories))
	for _, d := range directories {
		items = append(items, *d)
	}
	o.knowDirectories(items)
	return o
}

// empty says that a data server has owned nothing for so long, and how many connections it has.
func (o *observed) empty(server string, since time.Duration, connections int32) *observed {
	o.fileServer.Status.Servers = append(o.fileServer.Status.Servers, v1alpha1.FileServerServerStatus{
		Name: server, Drain: v1alpha1.ServerDrain{State: v1alpha1.DrainWaiting, EmptySinceTime: ptr.To(metav1.NewTime(noon.Add(-since)))},
	})
	dataServer := o.dataServers[server]
	dataServer.Status.Connections = internalv1.Connections{Used: &connections, Limit: 100}
	o.dataServers[server] = dataServer
	return o
}

func TestAServerIsKeptUntilItIsIdle(t *testing.T) {
	gone := func(o *observed) *observed {
		delete(o.pods, "fs-2")
		return o
	}
	never := func(o *observed) *observed {
		o.dataServers["fs-2"] = dataServer(1, 0, false, "")
		return o
	}
	limit := func(o *observed, seconds int32) *observed {
		if o.fileServer.Spec.Drain == nil {
			o.fileServer.Spec.Drain = &v1alpha1.Drain{}
		}
		o.fileServer.Spec.Drain.TimeoutSeconds = &seconds
		return o
	}
	for name, tc := range map[string]struct {
		o       *observed
		state   v1alpha1.DrainState
		again   time.Duration
		message string
	}{
		"it owns directories":                              {inCeph(builders.ShareDirectory("ns", "fs", "s", "a", "fs-2")), v1alpha1.DrainEmptying, 0, "fs-2 has 1 directory to move"},
		"it is empty since this moment":                    {inCeph(), v1alpha1.DrainWaiting, time.Hour, "until 2026-11-21T13:00:00Z at most"},
		"no client is connected, and one was a moment ago": {inCeph().empty("fs-2", 30*time.Second, 0), v1alpha1.DrainWaiting, time.Minute, "waits for clients"},
		"no client has been connected for long":            {inCeph().empty("fs-2", settled, 0), v1alpha1.DrainDone, 0, ""},
		"a client is connected":                            {inCeph().empty("fs-2", 20*time.Minute, 3), v1alpha1.DrainWaiting, 40 * time.Minute, "until 2026-11-21T12:40:00Z at most"},
		"a client is connected for too long":               {inCeph().empty("fs-2", time.Hour, 3), v1alpha1.DrainDone, 0, ""},
		"it is empty since a time in the future":           {inCeph().empty("fs-2", -1000*time.Hour, 3), v1alpha1.DrainWaiting, time.Hour, "until 2026-11-21T13:00:00Z at most"},
		"it does not answer, its clients wait":             {gone(inCeph().empty("fs-2", 20*time.Minute, 0)), v1alpha1.DrainWaiting, 40 * time.Minute, "waits for clients"},
		"it never served, so it has no clients":            {never(inCeph().empty("fs-2", settled, 0)), v1alpha1.DrainDone, 0, ""},
		"a limit of its own":                               {limit(inCeph().empty("fs-2", time.Minute, 3), 120), v1alpha1.DrainWaiting, time.Minute, "until 2026-11-21T12:01:00Z at most"},
		"no limit at all is some seconds, to be sure":      {limit(inCeph().empty("fs-2", 5*time.Second, 3), 0), v1alpha1.DrainWaiting, 10 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.fileServer.Spec.Replicas = 2
			existing := int32(3)
			tc.o.statefulSet = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &existing}}
			replicas, refused := decideReplicas(tc.o, 3)
			if refused != nil {
				t.Fatalf("refused: %s", refused.Message)
			}
			want := int32(3)
			if tc.state == v1alpha1.DrainDone {
				want = 2
			}
			if got := tc.o.drainOf("fs-2").State; got != tc.state || replicas != want {
				t.Errorf("%s, %d data servers; want %s, %d", got, replicas, tc.state, want)
			}
			if got := tc.o.drainAgain(3); got != tc.again {
				t.Errorf("again in %s, want %s", got, tc.again)
			}
			condition := tc.o.drainCondition(replicas, directorymoves.Plan{})
			if tc.state == v1alpha1.DrainDone {
				if condition != nil {
					t.Errorf("done, and it says %s", condition.Message)
				}
				return
			}
			if condition == nil || condition.Reason != v1alpha1.ReasonDraining || !strings.Contains(condition.Message, tc.message) ||
				!strings.Contains(condition.Message, "spec.replicas is 2, and there are 3; ") {
				t.Errorf("it says %+v", condition)
			}
		})
	}
}

func TestServersGoFromTheHighestNumberDownAsTheyGetIdle(t *testing.T) {
	existing := int32(3)
	scaledIn := func(o *observed) int32 {
		o.fileServer.Spec.Replicas = 1
		o.statefulSet = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &existing}}
		replicas, _ := decideReplicas(o, 3)
		return replicas
	}
	if got := scaledIn(inCeph(builders.ShareDirectory("ns", "fs", "s", "a", "fs-1")).empty("fs-2", settled, 0)); got != 2 {
		t.Errorf("fs-2 is idle, fs-1 is not: %d", got)
	}
	if got := scaledIn(inCeph(builders.ShareDirectory("ns", "fs", "s", "a", "fs-2")).empty("fs-1", settled, 0)); got != 3 {
		t.Errorf("fs-1 is idle, fs-2 is not: %d", got)
	}
	if got := scaledIn(inCeph().empty("fs-1", settled, 0).empty("fs-2", settled, 0)); got != 1 {
		t.Errorf("both are idle: %d", got)
	}
}

func TestAServerInMaintenanceIsKeptAndTellsWhenItIsIdle(t *testing.T) {
	o := inCeph().empty("fs-1", settled, 0)
	o.fileServer.Spec.Drain = &v1alpha1.Drain{Servers: []string{"fs-1"}}
	if got := o.drainOf("fs-1").State; got != v1alpha1.DrainDone || o.drainCondition(3, directorymoves.Plan{}) != nil {
		t.Errorf("it is %s", got)
	}
	if got := o.drainOf("fs-0"); got.State != "" {
		t.Errorf("another is %s", got.State)
	}
	if got := o.toBeIdle(3); len(got) != 1 || got[0] != "fs-1" {
		t.Errorf("to be idle: %v", got)
	}
	o.directories["fs-1"] = 4
	condition := o.drainCondition(3, directorymoves.Plan{Homeless: 2})
	if condition == nil || condition.Message != "data servers are made idle: fs-1 has 4 directories to move; no other data server serves the shares of 2 of those directories at present" {
		t.Errorf("it says %+v", condition)
	}
}

// On volumes a data server that had nothing is idle at once, and one that had something waits for its clients as in Ceph.
func TestOnVolumesAServerThatHadNothingIsIdleAtOnce(t *testing.T) {
	drained := func(o *observed) v1alpha1.ServerDrain {
		o.fileServer.Spec.Drain = &v1alpha1.Drain{Servers: []string{"fs-2"}}
		return o.drainOf("fs-2")
	}
	if drain := drained(onVolumes()); drain.State != v1alpha1.DrainDone {
		t.Errorf("it had nothing, and is %s", drain.State)
	}
	if drain := drained(onVolumes(builders.ShareDirectory("ns", "fs", "s", "a", "fs-2"))); drain.State != v1alpha1.DrainEmptying {
		t.Errorf("it has a directory, and is %s", drain.State)
	}
	single := onVolumes(builders.ShareDirectory("ns", "fs", "s", ".", "fs-2"))
	drained(single)
	if condition := single.drainCondition(3, directorymoves.Plan{}); condition == nil || !strings.Contains(condition.Message, "fs-2 keeps what can't move on volumes, roots of Single shares and directories of deleted shares (s:.)") {
		t.Errorf("it has the root of a Single share, and the condition is %+v", condition)
	}
	leaving := builders.ShareDirectory("ns", "fs", "s", "a", "fs-1")
	leaving.Spec.Move = internalv1.DirectoryMove{
		ID: "move-a", Source: internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: "fs-2"}},
		Target: internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: "fs-1"}}, Step: internalv1.MoveLeaving,
	}
	o := onVolumes(leaving)
	if drain := drained(o); drain.State != v1alpha1.DrainEmptying {
		t.Errorf("it has to put a directory into its trash, and is %s", drain.State)
	}
	if drain := drained(onVolumes().empty("fs-2", 30*time.Second, 1)); drain.State != v1alpha1.DrainWaiting {
		t.Errorf("a client is connected, and it is %s", drain.State)
	}
}

// spec.drain.servers can ask for what is not done. Then the FileServer does not say that everything is as specified.
func TestADrainThatIsNotDoneIsACaveat(t *testing.T) {
	forbidden := func(o *observed) *observed {
		o.fileServer.Spec.Moves.Copying = v1alpha1.MoveCopyingForbid
		o.moves.FileServer = o.fileServer
		return o
	}
	a, b := builders.ShareDirectory("ns", "fs", "s", "a", "fs-1"), builders.ShareDirectory("ns", "fs", "s", "b", "fs-1")
	for name, tc := range map[string]struct {
		o       *observed
		servers []string
		want    string
	}{
		"copying is forbidden": {
			forbidden(onVolumes(a, b)),
			[]string{"fs-1"},
			"fs-1 keeps 2 directories (s:a, s:b), because directories move between volumes only with spec.moves.copying: Allow",
		},
		"copying is forbidden, and there is one":   {forbidden(onVolumes(a)), []string{"fs-1"}, "fs-1 keeps 1 directory (s:a), because"},
		"copying is forbidden, and there are none": {forbidden(onVolumes(a)), []string{"fs-2"}, ""},
		"copying is allowed":                       {onVolumes(a), []string{"fs-1"}, ""},
		"in Ceph nothing is copied":                {forbidden(inCeph(a)), []string{"fs-1"}, ""},
		"a data server that there is not":          {onVolumes(), []string{"fs-3", "fs-1"}, "fs-3 is no data server of this FileServer, which has fs-0 to fs-2"},
		"one of another FileServer":                {inCeph(), []string{"other-0"}, "other-0 is no data server of this FileServer"},
		"nothing is to be drained":                 {forbidden(onVolumes(a)), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.fileServer.Spec.Drain = &v1alpha1.Drain{Servers: tc.servers}
			notDrained := tc.o.notDrained(3)
			if got := strings.Join(notDrained, "; "); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Fatalf("it says %q, want %q", got, tc.want)
			}
			condition := serversCondition(decision{notDrained: notDrained}, []serverReport{{status: v1alpha1.FileServerServerStatus{Name: "fs-0", State: v1alpha1.ServerServing}}}, "")
			if want := map[bool]string{true: v1alpha1.ReasonReady, false: v1alpha1.ReasonNotDrained}[tc.want == ""]; condition.Reason != want ||
				condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, tc.want) {
				t.Errorf("%+v", condition)
			}
		})
	}
}

// A server above that has a directory which can move stays, though the scale-in is refused because of another one.
func TestAServerIsEmptiedBeforeItGoesThoughTheScaleInIsRefused(t *testing.T) {
	o := onVolumes(builders.ShareDirectory("ns", "fs", "s", ".", "fs-1"), builders.ShareDirectory("ns", "fs", "s", "a", "fs-2"))
	o.fileServer.Spec.Drain = &v1alpha1.Drain{Servers: []string{"fs-1", "fs-2"}}
	o.fileServer.Spec.Replicas, o.statefulSet = 1, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3))}}
	replicas, refused := decideReplicas(o, 3)
	if replicas != 3 || refused == nil || refused.Reason != v1alpha1.ReasonScaleInRefused {
		t.Errorf("%d data servers, %+v", replicas, refused)
	}
}

// The data servers serve, so the condition stays True.
func TestDirectoriesThatStayFrozenAreInACondition(t *testing.T) {
	d := decision{frozen: []string{"fs-1: c of share s is frozen"}}
	condition := serversCondition(d, []serverReport{{status: v1alpha1.FileServerServerStatus{Name: "fs-1", State: v1alpha1.ServerServing}}}, "")
	if condition.Reason != v1alpha1.ReasonDirectoriesFrozen || condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "; fs-1: c of share s is frozen. It ends by itself") {
		t.Errorf("%+v", condition)
	}
}
