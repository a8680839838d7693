package steward

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// fencing is a fencer with a fake Ceph, whose clock the test sets, and a data server that runs on node n2.
type fencing struct {
	*world
	fencer *fencer
	server *internalv1.DataServer
	clock  time.Time
}

func newFencing(t *testing.T) *fencing {
	t.Helper()
	x := &fencing{world: newWorld(t), server: serverNamed("training-0"), clock: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	x.server.Status.NodeName = "n2"
	x.server.Status.Unreachable.SeenBy = "training-namespace-a"
	user := ceph.RecoveryUser(uid, 0)
	x.answers["mon auth get client."+user] = out(`[{"entity":"client.` + user + `","key":"AQ=="}]`)
	x.watch(ended)
	x.newFencer()
	return x
}

func (x *fencing) newFencer() {
	x.fencer = &fencer{
		api:       x.steward.api,
		connector: &connector{helper: os.Args[0], credential: x.steward.connector.credential, directory: x.TempDir()},
		log:       slog.New(slog.DiscardHandler), seen: map[string]sighting{}, answered: map[string]string{},
		podFences: map[string]internalv1.PodFenceAnswer{}, tried: map[string]time.Time{}, lookAt: map[string]time.Time{}, now: func() time.Time { return x.clock },
	}
	x.Cleanup(x.fencer.connector.close)
}

// watch sets who watches the recovery records now.
func (x *fencing) watch(addresses ...string) {
	list := make([]string, 0, len(addresses))
	for _, address := range addresses {
		list = append(list, `{"address":"`+address+`"}`)
	}
	x.answers["watchers"] = `{"code":0,"result":[` + strings.Join(list, ",") + `]}`
}

// block sets for how long addresses are in the blocklist from now on.
func (x *fencing) block(entries map[string]time.Duration) {
	list := make([]string, 0, len(entries))
	for address, left := range entries {
		list = append(list, fmt.Sprintf(`{"addr":%q,"until":%q}`, address, x.clock.Add(left).Format("2006-01-02T15:04:05.000000-0700")))
	}
	x.answers["mon osd blocklist ls"] = out("[" + strings.Join(list, ",") + "]\n[]")
}

func (x *fencing) object() *internalv1.Steward {
	x.Helper()
	object := &internalv1.Steward{}
	if err := x.api.Get(x.Context(), client.ObjectKey{Namespace: "ml", Name: "training"}, object); err != nil {
		x.Fatal(err)
	}
	return object
}

// ask changes the requests of the operator.
func (x *fencing) ask(requests ...internalv1.PodFence) {
	x.Helper()
	object := x.object()
	object.Spec.Fences = requests
	if err := x.api.Update(x.Context(), object); err != nil {
		x.Fatal(err)
	}
}

func (x *fencing) request(second int) internalv1.PodFence {
	return internalv1.PodFence{
		PodUID: "pod-1", DataServerName: "training-0", NodeName: "n2", RequestTime: &metav1.Time{Time: time.Unix(1_800_000_000+int64(second), 0)},
	}
}

// carryOut is a pass for pods; it returns the answers, and when the next one is due.
func (x *fencing) carryOut() ([]internalv1.PodFenceAnswer, time.Duration) {
	x.Helper()
	x.world.pass() // Writes what Ceph answers.
	w := request{steward: x.object(), servers: []*internalv1.DataServer{x.server}}
	connection, err := x.fencer.connector.connected(x.Context(), &w.steward.Spec.Ceph)
	next := x.fencer.fencePods(x.Context(), connection, w, err)
	return x.object().Status.Fences, next
}

func TestTheClientsOfALostPodAreBlocklisted(t *testing.T) {
	x := newFencing(t)
	x.fencer.seen["training-0"] = sighting{addresses: []string{"10.0.0.1:0/6"}, at: x.clock}
	x.ask(x.request(0))
	if !x.fencer.hasPodFences(x.object(), x.clock) {
		t.Fatal("a new request is not due")
	}
	got, next := x.carryOut()
	if len(got) != 1 || got[0].Fault != "" || got[0].Time == nil || !slices.Equal(got[0].Addresses, []string{ended, "10.0.0.1:0/6"}) || next != firstLook {
		t.Fatalf("%+v, next %s", got, next)
	}
	if x.fencer.hasPodFences(x.object(), x.clock) {
		t.Error("it is due again at once")
	}

	// The next pod watches now, and the metadata servers have blocked what had shares. That stays blocked, and the next pod is not.
	x.watch("10.0.0.2:0/9")
	x.block(map[string]time.Duration{ended: 700 * time.Hour, "10.0.0.1:0/77": time.Hour, "10.0.0.1:0/0": time.Hour, "10.0.0.8:0/1": time.Hour})
	for _, steward := range []string{"this one", "another"} {
		x.clock = x.clock.Add(lookAtPodFence)
		fenced := got[0].Time
		got, next = x.carryOut()
		if want := []string{ended, "10.0.0.1:0/6", "10.0.0.1:0/77"}; len(got) != 1 || !slices.Equal(got[0].Addresses, want) || !got[0].Time.Equal(fenced) || next != lookAtPodFence {
			t.Errorf("after a look of %s: %+v, next %s", steward, got, next)
		}
		x.newFencer()
	}

	x.ask()
	if !x.fencer.hasPodFences(x.object(), x.clock) {
		t.Error("the answer to a request that is gone stays")
	}
	if got, _ = x.carryOut(); len(got) != 0 || len(x.fencer.podFences) != 0 {
		t.Errorf("after the request is gone: %+v", got)
	}

	x.ask(x.request(60)) // The same pod again: its ganesha has another client.
	if got, _ = x.carryOut(); len(got) != 1 || !slices.Contains(got[0].Addresses, "10.0.0.2:0/9") {
		t.Errorf("requested again: %+v", got)
	}
	x.ask(x.request(120)) // The steward has not seen that the request was gone meanwhile.
	x.watch("10.0.0.3:0/1")
	x.clock = x.clock.Add(retryPodFence)
	if got, _ = x.carryOut(); len(got) != 1 || !slices.Contains(got[0].Addresses, "10.0.0.3:0/1") || !got[0].RequestTime.Equal(x.request(120).RequestTime) {
		t.Errorf("requested once more: %+v", got)
	}
}

func TestALostPodWhoseClientsCannotBeBlocklistedIsNotFenced(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fencing)
		want   string
	}{
		"the watchers can't be read":     {func(x *fencing) { x.answers["watchers"] = refusing(-110, "timed out") }, "timed out"},
		"no client is known":             {func(x *fencing) { x.watch() }, "no Ceph client"},
		"Ceph refuses":                   {func(x *fencing) { x.answers["mon osd blocklist"] = refusing(-13, "access denied") }, "adding to Ceph's blocklist " + ended},
		"the data server runs elsewhere": {func(x *fencing) { x.server.Status.NodeName = "n1" }, "runs on node n1"},
		"the data server answers": {func(x *fencing) {
			x.server.Status.Unreachable = internalv1.Unreachable{} // From the same node, by now.
		}, "data server training-0 answers"},
		"the data server is gone": {func(x *fencing) { x.server = serverNamed("training-7") }, "no data server training-0"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFencing(t)
			tc.change(x)
			x.ask(x.request(0))
			got, next := x.carryOut()
			if len(got) != 1 || got[0].Time != nil || !strings.Contains(got[0].Fault, tc.want) || next != retryPodFence {
				t.Fatalf("%+v, next %s", got, next)
			}
			if x.clock = x.clock.Add(retryPodFence); !x.fencer.hasPodFences(x.object(), x.clock) {
				t.Error("it is not tried again")
			}
		})
	}
}

// Ceph ends a watch 30 s after its client is lost, and the steward may have been lost with it.
func TestClientsThatAnEarlierStewardSawAreBlocklisted(t *testing.T) {
	x := newFencing(t)
	x.watch()
	object := x.object()
	servers := []*internalv1.DataServer{x.server}
	seen := seenClients(servers, map[string]sighting{"training-0": {addresses: []string{ended}}}, nil)
	if err := x.fencer.api.reportClients(x.Context(), object, seen); err != nil {
		t.Fatal(err)
	}
	x.ask(x.request(0))
	if got, _ := x.carryOut(); len(got) != 1 || got[0].Time == nil || !slices.Equal(got[0].Addresses, []string{ended}) {
		t.Errorf("%+v", got)
	}
	if kept := seenClients(servers, map[string]sighting{"training-0": {}}, seen); len(kept) != 1 || !slices.Equal(kept[0].Addresses, []string{ended}) {
		t.Errorf("they are forgotten while the next ones are not known: %+v", kept)
	}
	if kept := seenClients(nil, nil, seen); len(kept) != 0 {
		t.Errorf("those of a removed data server stay: %+v", kept)
	}
}

func TestTheClientsOfAFencedPodStayBlocked(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	until := map[string]time.Time{
		"10.0.0.1:0/1": now.Add(time.Hour), "10.0.0.1:0/2": now.Add(20 * time.Hour),
		"10.0.0.1:0/0": now.Add(time.Second), "10.0.0.2:0/1": now.Add(time.Second),
	}
	fenced := []string{"10.0.0.1:0/2", "10.0.0.1:0/7"}
	all, missing, next := judgeBlocklist(fenced, until, now)
	if !slices.Equal(all, []string{"10.0.0.1:0/1", "10.0.0.1:0/2", "10.0.0.1:0/7"}) || !slices.Equal(missing, []string{"10.0.0.1:0/7"}) || next != lookAtPodFence {
		t.Errorf("%v, missing %v, next %s", all, missing, next)
	}
	until["10.0.0.1:0/1"] = now.Add(time.Minute)
	if _, _, next := judgeBlocklist(fenced, until, now); next != time.Minute {
		t.Errorf("an entry that ends in a minute is looked at after %s", next)
	}
	until["10.0.0.1:0/1"] = now.Add(-time.Second)
	if all, missing, next := judgeBlocklist(fenced, until, now); next != retryPodFence || len(missing) != 1 || len(all) != 3 {
		t.Errorf("an entry that has ended and is still there: %v, missing %v, next %s", all, missing, next)
	}
	delete(until, "10.0.0.1:0/1")
	if _, missing, _ := judgeBlocklist(all, until, now); !slices.Equal(missing, []string{"10.0.0.1:0/1", "10.0.0.1:0/7"}) {
		t.Errorf("after Ceph has taken it out: missing %v", missing)
	}
	for i := range 2 * maxAdded {
		fenced = append(fenced, fmt.Sprintf("10.0.0.1:0/1%d", i))
	}
	if _, missing, next := judgeBlocklist(fenced, until, now); len(missing) != maxAdded || next != retryPodFence {
		t.Errorf("many at once: %d, next %s", len(missing), next)
	}
}

// The API server takes no object of more than 1.5 MB (etcd's limit of a request). A status that it does not take has no answer to the next request either.
func TestTheAnswersOfManyFencedPodsFitIntoAnObject(t *testing.T) {
	answers := map[string]internalv1.PodFenceAnswer{}
	newest := ""
	for i := range 9 { // As many as stay without their Node, and one more.
		at := metav1.NewTime(time.Unix(int64(1_700_000_000+i), 0))
		answer := internalv1.PodFenceAnswer{PodUID: fmt.Sprintf("uid-%d", 9-i), RequestTime: &at, Time: &at}
		for n := range maxPodClients {
			answer.Addresses = append(answer.Addresses, fmt.Sprintf("v2:[fd00:1234:5678:9abc:def0:1234:5678:%04x]:0/%d", i, 4_000_000_000+n))
		}
		answers[answer.PodUID], newest = answer, answer.PodUID
	}
	reported := reportable(answers)
	text, err := json.Marshal(reported)
	if err != nil || len(text) > 1_200_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if len(reported) != len(answers) || !slices.IsSortedFunc(reported, func(a, b internalv1.PodFenceAnswer) int { return strings.Compare(a.PodUID, b.PodUID) }) {
		t.Errorf("%d of %d answers", len(reported), len(answers))
	}
	for _, answer := range reported {
		if len(answer.Addresses) == 0 || answer.PodUID == newest && len(answer.Addresses) != maxPodClients {
			t.Errorf("%s has %d clients", answer.PodUID, len(answer.Addresses))
		}
		if len(answers[answer.PodUID].Addresses) != maxPodClients {
			t.Errorf("the steward forgets clients of %s", answer.PodUID)
		}
	}
	if few := reportable(map[string]internalv1.PodFenceAnswer{"uid": {PodUID: "uid", Addresses: []string{"a", "b"}}}); len(few) != 1 || len(few[0].Addresses) != 2 {
		t.Errorf("%+v", few)
	}
	if none := reportable(nil); none != nil {
		t.Errorf("%+v", none)
	}
}

// A pod's own clients are those by which others of its host are found.
func TestTheClientsThatWereFencedStayAmongTheMostThatAreKept(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	fenced, until := []string{"10.0.0.9:0/9"}, map[string]time.Time{}
	for n := range maxPodClients + 100 {
		until[fmt.Sprintf("10.0.0.9:0/1%07d", n)] = now.Add(time.Hour)
	}
	all, missing, _ := judgeBlocklist(fenced, until, now)
	if len(all) != maxPodClients || !slices.Contains(all, fenced[0]) || !slices.Equal(missing, fenced) {
		t.Errorf("%d clients, missing %v", len(all), missing)
	}
}
