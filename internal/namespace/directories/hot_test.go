package directories

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// seek has the share look for hot directories, and mark some.
func (w *world) seek(search v1alpha1.HotDirectorySearch, marked ...v1alpha1.HotDirectories) {
	share := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}
	share.Spec = v1alpha1.FileShareSpec{
		FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: "/s", Depth: 2, FindHotDirectories: search, HotDirectories: marked,
	}
	share.Status.Conditions = builders.InventoriedConditions()
	w.leader.Tree.SetShare(fleet.ShareOf(builders.Defaulted(share)))
}

// put makes a ShareDirectory, and gives what the tree has of it.
func (w *world) put(t *testing.T, o *internalv1.ShareDirectory) tree.Entry {
	t.Helper()
	status := o.Status
	if err := w.leader.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Status = status
	if err := w.leader.Client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.leader.Tree.SetDirectory(o)
	e, ok := w.leader.Tree.At("/s/" + o.Spec.Path)
	if !ok {
		t.Fatalf("%s is not in the tree", o.Spec.Path)
	}
	return e
}

// hotTime is what the API and the tree have of a directory; zero: it is not hot.
func (w *world) hotTime(t *testing.T, path string) time.Time {
	t.Helper()
	var o internalv1.ShareDirectory
	if err := w.leader.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: naming.Directory("fs", "s", path)}, &o); err != nil {
		t.Fatal(err)
	}
	if o.Status.State != internalv1.DirectoryReady {
		t.Errorf("%s is %q", path, o.Status.State)
	}
	r, _ := w.leader.Tree.Directory("s", path)
	if o.Status.HotTime == nil {
		if !r.Hot.IsZero() {
			t.Errorf("%s is hot in the tree alone", path)
		}
		return time.Time{}
	}
	if !r.Hot.Equal(o.Status.HotTime.Time) {
		t.Errorf("%s is hot since %s in the API, %s in the tree", path, o.Status.HotTime, r.Hot)
	}
	return o.Status.HotTime.Time
}

// settled waits until nothing is being recorded.
func (w *world) settled(t *testing.T) {
	t.Helper()
	for range 1000 {
		w.leader.heating.mu.Lock()
		running := w.leader.heating.running
		w.leader.heating.mu.Unlock()
		if running == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it is still being recorded")
}

func TestADirectoryThatIsFoundHotIsRecordedAndCoolsDown(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutDistributed, true)
	w.seek(v1alpha1.HotDirectorySearch{Clients: 3, DataServers: 2})
	e := w.put(t, left("p/a", internalv1.DirectoryReady))
	w.put(t, left("p/b", internalv1.DirectoryReady))
	w.leader.FoundHot(e)
	w.settled(t)
	began := w.clock.Now()
	if at := w.hotTime(t, "p/a"); !at.Equal(began) {
		t.Fatalf("recorded: %s", at)
	}
	// A later record, and one that comes too soon after it.
	w.clock.Step(hotdirectories.RenewAfter)
	w.leader.FoundHot(e)
	w.settled(t)
	renewed := w.clock.Now()
	w.clock.Step(recordAgain - time.Second)
	w.leader.FoundHot(e)
	w.settled(t)
	if at := w.hotTime(t, "p/a"); !at.Equal(renewed) {
		t.Errorf("renewed: %s, want %s", at, renewed)
	}
	w.clock.Step(hotdirectories.HotFor - recordAgain + time.Second)
	if w.leader.coolAll(t.Context()); !w.hotTime(t, "p/a").Equal(renewed) {
		t.Error("it has cooled down too early")
	}
	w.clock.Step(time.Second)
	if w.leader.coolAll(t.Context()); !w.hotTime(t, "p/a").IsZero() || !w.hotTime(t, "p/b").IsZero() {
		t.Error("it has not cooled down")
	}
	w.leader.FoundHot(e)
	w.settled(t)
	if at := w.hotTime(t, "p/a"); !at.Equal(w.clock.Now()) {
		t.Errorf("found again: %s", at)
	}
}

func TestWhatIsNotLookedForCoolsDownAtOnce(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"the field is gone": func(w *world) { w.seek(v1alpha1.HotDirectorySearch{}) },
		"it is marked": func(w *world) {
			w.seek(v1alpha1.HotDirectorySearch{Clients: 3, DataServers: 2}, v1alpha1.HotDirectories{Paths: []string{"p/a"}, DataServers: 2})
		},
	} {
		w := newWorld(t, v1alpha1.LayoutDistributed, true)
		w.seek(v1alpha1.HotDirectorySearch{Clients: 3, DataServers: 2})
		w.leader.FoundHot(w.put(t, left("p/a", internalv1.DirectoryReady)))
		w.settled(t)
		if w.leader.coolAll(t.Context()); w.hotTime(t, "p/a").IsZero() {
			t.Fatalf("%s: before", name)
		}
		change(w)
		if w.leader.coolAll(t.Context()); !w.hotTime(t, "p/a").IsZero() {
			t.Errorf("%s: it is still recorded", name)
		}
	}
}

// A record that another namespace server renews while the leader takes it away stays.
func TestOnlyWhatTheLeaderHasSeenCoolsDown(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutDistributed, true)
	w.seek(v1alpha1.HotDirectorySearch{Clients: 3, DataServers: 2})
	o := left("p/a", internalv1.DirectoryReady)
	e := w.put(t, o)
	w.leader.FoundHot(e)
	w.settled(t)
	w.clock.Step(2 * hotdirectories.HotFor)
	seen, _ := w.leader.Tree.Directory("s", "p/a")
	if err := w.leader.recordHot(t.Context(), seen); err != nil { // By another one: this leader's tree is late.
		t.Fatal(err)
	}
	renewed := w.clock.Now()
	old := o.DeepCopy()
	old.Status.HotTime = &metav1.Time{Time: time.Unix(1e9, 0)}
	if err := w.leader.patchHot(t.Context(), tree.NewDirectory(old), nil); !apierrors.IsConflict(err) {
		t.Errorf("of an earlier state: %v", err)
	}
	if at := w.hotTime(t, "p/a"); !at.Equal(renewed) {
		t.Errorf("the new record is gone: %s", at)
	}
}

func TestAnotherDirectoryOfTheNameIsNotRecorded(t *testing.T) {
	for name, edit := range map[string]func(*internalv1.ShareDirectory){
		"another object": func(o *internalv1.ShareDirectory) { o.UID = "another" },
		"it is going":    func(o *internalv1.ShareDirectory) { o.Status.State = internalv1.DirectoryRemoving },
	} {
		w := newWorld(t, v1alpha1.LayoutDistributed, true)
		w.put(t, left("p/a", internalv1.DirectoryReady, edit))
		seen := tree.NewDirectory(left("p/a", internalv1.DirectoryReady))
		if err := w.leader.recordHot(t.Context(), seen); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := w.leader.Tree.Directory("s", "p/a"); !now.Hot.IsZero() {
			t.Errorf("%s: it is hot", name)
		}
	}
}

// Clients set times, and others rename, at the moment when it is recorded.
func TestAChangeOfTheDirectoryDoesNotKeepItFromBeingRecorded(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutDistributed, true)
	w.put(t, left("p/a", internalv1.DirectoryReady))
	seen, _ := w.leader.Tree.Directory("s", "p/a")
	api := w.leader.Client
	w.leader.Client = changing{api, new(int)}
	if err := w.leader.recordHot(t.Context(), seen); err != nil {
		t.Error(err)
	}
	w.leader.Client = api
	if w.hotTime(t, "p/a").IsZero() {
		t.Error("it is not recorded")
	}
}

// changing is an API in which an object changes before the first write to its status.
type changing struct {
	client.Client
	writes *int
}

func (c changing) Status() client.SubResourceWriter { return changedStatus{c.Client.Status(), c} }

type changedStatus struct {
	client.SubResourceWriter
	api changing
}

func (s changedStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if *s.api.writes++; *s.api.writes == 1 {
		var now internalv1.ShareDirectory
		if err := s.api.Get(ctx, client.ObjectKeyFromObject(o), &now); err != nil {
			return err
		}
		now.Annotations["changed"] = "yes"
		if err := s.api.Update(ctx, &now); err != nil {
			return err
		}
	}
	return s.SubResourceWriter.Patch(ctx, o, patch, options...)
}

func TestTriesToRecordAreBounded(t *testing.T) {
	var h heating
	now := time.Unix(1e9, 0)
	for i := range recordsAtATime {
		if !h.begin(string(rune('a'+i)), now) {
			t.Fatalf("the %d. is refused", i+1)
		}
	}
	if h.begin("z", now) {
		t.Error("one more at a time")
	}
	h.end()
	if h.begin("a", now.Add(recordAgain-time.Second)) {
		t.Error("the same again at once")
	}
	if !h.begin("a", now.Add(recordAgain)) || len(h.tried) != 1 {
		t.Errorf("the same a while later, of %d", len(h.tried))
	}
}

func TestADirectoryIsRecordedLaterIfTheAPIDoesNotAnswer(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutDistributed, true)
	w.seek(v1alpha1.HotDirectorySearch{Clients: 3, DataServers: 2})
	e := w.put(t, left("p/a", internalv1.DirectoryReady))
	api := w.leader.Client
	w.leader.Client = refusing{api}
	w.leader.FoundHot(e)
	w.settled(t)
	w.leader.Client = api
	if !w.hotTime(t, "p/a").IsZero() {
		t.Fatal("it is recorded")
	}
	w.clock.Step(recordAgain)
	w.leader.FoundHot(e)
	w.settled(t)
	if w.hotTime(t, "p/a").IsZero() {
		t.Error("it is not recorded")
	}
}

// refusing is an API that writes no status.
type refusing struct{ client.Client }

func (r refusing) Status() client.SubResourceWriter { return refusedStatus{r.Client.Status()} }

type refusedStatus struct{ client.SubResourceWriter }

func (refusedStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errors.New("no answer")
}
