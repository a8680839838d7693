package fileshare

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/test/builders"
)

var decideTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// passOf is what a pass knows of a share on a FileServer of two data servers, none of which serves yet.
func passOf(share *v1alpha1.FileShare) *observed {
	two := int32(2)
	o := &observed{now: decideTime, share: share, fileServer: builders.FileServer("ns", "fs").Build(), directories: map[string]*internalv1.ShareDirectory{}}
	o.fileServer.Status.Replicas = &two
	for _, name := range []string{"fs-0", "fs-1"} {
		o.dataServers = append(o.dataServers, internalv1.DataServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: internalv1.DataServerSpec{Volumes: 1},
			Status: internalv1.DataServerStatus{Shares: ptr.To("")},
		})
	}
	return o
}

// put adds a declared directory of the share in a state, as an earlier pass and a namespace server left it.
func (o *observed) put(path, server string, state internalv1.DirectoryState, edit ...func(*internalv1.ShareDirectory)) {
	var owner *placement.Owner
	if server != "" {
		owner = &placement.Owner{Server: server}
	}
	directory := desired.ShareDirectory(o.share, path, owner)
	directory.Status.State = state
	directory.CreationTimestamp = metav1.NewTime(decideTime)
	for _, e := range edit {
		e(directory)
	}
	o.directories[path] = directory
}

func goesWhenEmpty(r *internalv1.ShareDirectory) { r.Spec.Removal = internalv1.RemovalWhenEmpty }

func holdsData(r *internalv1.ShareDirectory) {
	at := metav1.NewTime(decideTime)
	r.Status.RemovalRefusedTime = &at
}

func madeByClient(r *internalv1.ShareDirectory) { r.Annotations = nil }

func leftBehind(r *internalv1.ShareDirectory) {
	r.Labels[v1alpha1.RetainedLabel] = v1alpha1.RetainedTrue
}

// whatIsDecided is a decision in lines.
func whatIsDecided(d decision) []string {
	var lines []string
	if d.blocked != nil {
		lines = append(lines, "blocked "+d.blocked.reason)
	}
	if fault := d.directories.fault; fault != nil {
		lines = append(lines, "fault "+fault.reason)
	}
	for _, r := range d.directories.create {
		lines = append(lines, strings.TrimSpace("create "+r.Spec.Path+" "+r.Spec.DataServerRef.Name))
	}
	for _, c := range d.directories.change {
		declared := c.after.Annotations[v1alpha1.DeclaredAnnotation] == v1alpha1.DeclaredTrue
		lines = append(lines, fmt.Sprintf("change %s: %s, removal %q, declared %v, retained %v",
			c.after.Spec.Path, c.after.State(), c.after.Spec.Removal, declared, isRetained(c.after)))
	}
	for _, r := range d.directories.forget {
		lines = append(lines, "forget "+r.Spec.Path)
	}
	if len(d.directories.refused) > 0 {
		lines = append(lines, "refused "+strings.Join(d.directories.refused, " "))
	}
	return lines
}

func TestDecide(t *testing.T) {
	const ready, creating, removing = internalv1.DirectoryReady, internalv1.DirectoryCreating, internalv1.DirectoryRemoving
	declaring := func(patterns ...string) *v1alpha1.FileShare {
		return builders.FileShare("ns", "s", "fs").Created(decideTime).Directories(patterns...).Build()
	}
	for name, tc := range map[string]struct {
		share  *v1alpha1.FileShare
		change func(*observed)
		want   []string
	}{
		"no FileServer": {declaring("a"), func(o *observed) { o.fileServer = nil }, []string{"blocked FileServerNotFound"}},
		"an older share has the path": {declaring("a"), func(o *observed) {
			o.conflicts = append(o.conflicts, fleet.Share{Key: "older", Path: "/s", Created: decideTime.Add(-time.Hour)})
		}, []string{"blocked PathConflict"}},
		"a younger share has the path": {declaring("a"), func(o *observed) {
			o.conflicts = append(o.conflicts, fleet.Share{Key: "younger", Path: "/s", Created: decideTime.Add(time.Hour)})
		}, []string{"create a fs-0"}},
		"new directories are spread": {declaring("{a,b,c}"), nil, []string{"create a fs-0", "create b fs-1", "create c fs-0"}},
		"directories above come first, without an owner": {
			builders.FileShare("ns", "s", "fs").Created(decideTime).Depth(2).Directories("p/{a,b}").Build(), nil,
			[]string{"create p", "create p/a fs-0", "create p/b fs-1"},
		},
		"a Single share is one directory": {
			builders.FileShare("ns", "s", "fs").Created(decideTime).Single().Build(), nil, []string{"create . fs-0"},
		},
		"not before all data servers are known": {
			declaring("a"), func(o *observed) { o.dataServers = o.dataServers[:1] }, []string{"fault FileServerNotReady"},
		},
		"a list that can't be expanded makes nothing and removes nothing": {
			declaring("a/b"), func(o *observed) { o.put("old", "fs-0", ready) }, []string{"fault InvalidDirectories"},
		},
		"what is there stays where it is": {
			declaring("{a,b}"), func(o *observed) { o.put("a", "fs-1", ready) }, []string{"create b fs-0"},
		},
		"a client was faster": {
			declaring("a"), func(o *observed) { o.put("a", "fs-1", ready, madeByClient) },
			[]string{`change a: Ready, removal "", declared true, retained false`},
		},
		"a client's own directory is left alone": {declaring(), func(o *observed) { o.put("x", "fs-0", ready, madeByClient) }, nil},
		"one leaves the list": {
			declaring(), func(o *observed) { o.put("a", "fs-0", ready) },
			[]string{`change a: Ready, removal "WhenEmpty", declared true, retained false`},
		},
		"one leaves the list while a client removes it": {declaring(), func(o *observed) { o.put("a", "fs-0", removing) }, nil},
		"one that left the list is being looked at":     {declaring(), func(o *observed) { o.put("a", "fs-0", ready, goesWhenEmpty) }, nil},
		"one that left the list holds data": {
			declaring(), func(o *observed) { o.put("a", "fs-0", ready, goesWhenEmpty, holdsData) }, []string{"refused a"},
		},
		"one that left the list is back": {
			declaring("a"), func(o *observed) { o.put("a", "fs-0", ready, goesWhenEmpty, holdsData) },
			[]string{`change a: Ready, removal "", declared true, retained false`},
		},
		"a directory above goes after what is in it": {
			builders.FileShare("ns", "s", "fs").Created(decideTime).Depth(2).Build(),
			func(o *observed) { o.put("p", "", ""); o.put("p/a", "fs-0", ready) },
			[]string{`change p/a: Ready, removal "WhenEmpty", declared true, retained false`},
		},
		"what a deleted share of the name left is used again once it is found": {
			declaring("a"), func(o *observed) { o.put("a", "fs-1", ready, leftBehind) },
			[]string{`change a: Missing, removal "", declared true, retained false`},
		},
		"what was being removed or renamed when the share was deleted still is": {
			declaring("{a,b}"), func(o *observed) {
				o.put("a", "fs-1", removing, leftBehind)
				o.put("b", "fs-1", internalv1.DirectoryRenaming, leftBehind)
			},
			[]string{`change a: Removing, removal "", declared true, retained false`, `change b: Renaming, removal "", declared true, retained false`},
		},
		"what it left on a data server that is no more waits for that one": {
			declaring("a"), func(o *observed) { o.put("a", "fs-7", ready, leftBehind) }, nil,
		},
		"what it left on a data server whose data is given up is forgotten": {
			declaring(), func(o *observed) {
				o.put("a", "fs-7", ready, leftBehind)
				o.share.Spec.IgnoreDataOn = []string{"fs-7"}
			}, []string{"forget a"},
		},
		"one on its way needs nothing": {declaring("a"), func(o *observed) { o.put("a", "fs-0", creating) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := passOf(tc.share)
			if tc.change != nil {
				tc.change(o)
			}
			if got := whatIsDecided(decide(o)); !slices.Equal(got, tc.want) {
				t.Errorf("decided:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestAPassComesBackWhenAMkdirThatIsUnderWayCountsAsStuck(t *testing.T) {
	o := passOf(builders.FileShare("ns", "s", "fs").Created(decideTime).Build())
	o.put("x", "fs-0", internalv1.DirectoryCreating, madeByClient)
	o.now = decideTime.Add(10 * time.Second)
	if got := decide(o).again; got != 5*time.Second {
		t.Errorf("again in %s", got)
	}
}

func TestDirectoriesGoToDataServersThatServeOrAreAboutTo(t *testing.T) {
	for name, tc := range map[string]struct {
		loaded, silent bool
		ready          metav1.ConditionStatus
		since          time.Duration
		state          v1alpha1.ServerState
		want           bool
	}{
		"it never served":              {ready: metav1.ConditionFalse, state: v1alpha1.ServerStarting, want: true},
		"it has not reported yet":      {state: v1alpha1.ServerPending, want: true},
		"it never served, and is lost": {silent: true, state: v1alpha1.ServerUnavailable},
		"it serves":                    {loaded: true, ready: metav1.ConditionTrue, since: time.Hour, state: v1alpha1.ServerServing, want: true},
		// The kubelet's probe comes after the server's own word, and ObservedGeneration makes its state Unavailable.
		"it serves, and the kubelet does not know yet": {loaded: true, ready: metav1.ConditionTrue, since: 5 * time.Second, state: v1alpha1.ServerUnavailable, want: true},
		"its last word was Ready, long ago":            {loaded: true, ready: metav1.ConditionTrue, since: time.Hour, state: v1alpha1.ServerUnavailable},
		"it has just served, and does not answer":      {loaded: true, silent: true, ready: metav1.ConditionTrue, since: 5 * time.Second, state: v1alpha1.ServerUnavailable},
		"it restarts":                 {loaded: true, ready: metav1.ConditionFalse, since: 5 * time.Second, state: v1alpha1.ServerUnavailable, want: true},
		"it has been down for longer": {loaded: true, ready: metav1.ConditionFalse, since: time.Minute, state: v1alpha1.ServerUnavailable},
	} {
		o := passOf(builders.FileShare("ns", "share", "fs").Build())
		server := &o.dataServers[1]
		if tc.loaded {
			server.Status.ObservedGeneration = ptr.To(int64(1))
		}
		if tc.silent {
			server.Status.Unreachable.SeenBy = "fs-namespace-1"
		}
		if tc.ready != "" {
			server.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: tc.ready, LastTransitionTime: metav1.NewTime(decideTime.Add(-tc.since)),
			}}
		}
		o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: server.Name, State: tc.state}}
		if got := fleet.Soon(o.fileServer, server, o.now).Serves; got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
