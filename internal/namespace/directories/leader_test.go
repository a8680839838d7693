package directories

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/owners"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// world is a leader with one data server in memory.
type world struct {
	leader *Leader
	owner  *ownertest.Owner
	clock  *clocktesting.FakeClock
}

func newWorld(t *testing.T, layout v1alpha1.ShareLayout, serves bool) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), internalv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{owner: ownertest.Start(t, "owner", "fs-0"), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	w.owner.Put("/s/0", ownertest.Directory{Mode: 0o777})
	tr := tree.New("fs")
	share := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}
	share.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: "/s", Layout: layout, Depth: 2}
	share.Status.Conditions = builders.InventoriedConditions()
	tr.SetShare(fleet.ShareOf(builders.Defaulted(share)))
	server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: "fs-0"}}
	server.Spec = internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: w.owner.Address, Volumes: 1}
	server.Status.Conditions = builders.ReadyConditions()
	tr.SetServer(server)
	if serves {
		tr.SetExport(exportOn("fs-0"))
	}
	dial := owners.MutualTLS(ownertest.Identities(t), func(string) string { return naming.DataServerTLSName(ownertest.FileServerUID, "fs-0") })
	pool := owners.NewPool("test", func(string) string { return "owner" }, dial, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { pool.Close(context.Background()) })
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&internalv1.ShareDirectory{}, &internalv1.ShareExport{})
	w.leader = NewLeader(NewService(Config{
		Tree: tr, Client: api.WithInterceptorFuncs(w.watched()).Build(), Owners: pool, KubeNamespace: "ns", FileServer: "fs",
		Replica: "me", Clock: w.clock, Log: slog.New(slog.DiscardHandler), Concurrent: 4, Timeout: 10 * time.Second,
	}))
	w.leader.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[task]())
	t.Cleanup(w.leader.queue.ShutDown)
	if err := w.leader.Client.Create(t.Context(), exportOn("fs-0")); err != nil {
		t.Fatal(err)
	}
	w.leader.unfinished, w.leader.scanned = map[task]unfinished{}, map[task]string{}
	return w
}

// exportOn is the export of the share on a data server, as the API has it.
func exportOn(server string) *internalv1.ShareExport {
	export := builders.ShareExport("ns", "fs", "s", server)
	export.UID = types.UID("export-" + server)
	return export
}

// watched has the leader learn of each change of a ShareDirectory, as from a watch.
func (w *world) watched() interceptor.Funcs {
	tell := func(o client.Object) {
		if directory, ok := o.(*internalv1.ShareDirectory); ok && w.leader != nil {
			w.leader.Confirm(directory)
		}
	}
	return interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			err := c.Update(ctx, o, opts...)
			tell(o)
			return err
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, part string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			err := c.SubResource(part).Update(ctx, o, opts...)
			tell(o)
			return err
		},
	}
}

// left is a ShareDirectory as it was left.
func left(path string, state internalv1.DirectoryState, edit ...func(*internalv1.ShareDirectory)) *internalv1.ShareDirectory {
	volume, id := int32(0), int64(7)
	o := &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: naming.Directory("fs", "s", path), UID: types.UID(path),
			Annotations: map[string]string{tree.MadeByAnnotation: "another"},
		},
		Spec: internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: "fs"}, FileShareRef: internalv1.FileShareReference{Name: "s"}, Path: path, DataServerRef: internalv1.DataServerReference{Name: "fs-0"}, Volume: &volume,
			UID: &id, GID: &id, Mode: "0750",
		},
		Status: internalv1.ShareDirectoryStatus{State: state},
	}
	for _, e := range edit {
		e(o)
	}
	return o
}

func from(path string) func(*internalv1.ShareDirectory) {
	return func(o *internalv1.ShareDirectory) { o.Spec.RenamedFrom = path }
}

func above(o *internalv1.ShareDirectory) { o.Spec.DataServerRef.Name, o.Spec.Volume = "", nil }

func declared(o *internalv1.ShareDirectory) { o.Annotations = nil }

func whenEmpty(o *internalv1.ShareDirectory) { o.Spec.Removal = internalv1.RemovalWhenEmpty }

func TestTheLeaderFinishesOrUndoesWhatOthersLeft(t *testing.T) {
	const (
		creating = internalv1.DirectoryCreating
		ready    = internalv1.DirectoryReady
		removing = internalv1.DirectoryRemoving
		renaming = internalv1.DirectoryRenaming
	)
	for name, tc := range map[string]struct {
		layout      v1alpha1.ShareLayout
		idle        bool // the owner does not serve
		after       time.Duration
		directories []*internalv1.ShareDirectory
		onOwner     []string
		// want are the ShareDirectories as "path state", wantOnOwner what the owner has in p.
		want        []string
		wantOnOwner []string
	}{
		"a mkdir that is under way is left alone": {
			after: time.Second, directories: []*internalv1.ShareDirectory{left("p/a", creating)}, want: []string{"p/a Creating"},
		},
		"a mkdir that was left before the owner was asked is finished": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", creating)}, want: []string{"p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"a mkdir that was left after the owner was asked is finished": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", creating)}, onOwner: []string{"a"},
			want: []string{"p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"a declared directory is made at once": {
			directories: []*internalv1.ShareDirectory{left("p/a", creating, declared)}, want: []string{"p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"a declared directory waits for its owner": {
			idle: true, after: time.Hour, directories: []*internalv1.ShareDirectory{left("p/a", creating, declared)}, want: []string{"p/a Creating"},
		},
		"a declared directory above the depth is on no owner": {
			directories: []*internalv1.ShareDirectory{left("p", creating, declared, above)}, want: []string{"p Ready"},
		},
		"the root of a Single share is there": {
			layout: v1alpha1.LayoutSingle, directories: []*internalv1.ShareDirectory{left(".", creating, declared)}, want: []string{". Ready"},
		},
		"an rmdir that is under way is left alone": {
			after: time.Second, directories: []*internalv1.ShareDirectory{left("p/a", removing)}, onOwner: []string{"a"},
			want: []string{"p/a Removing"}, wantOnOwner: []string{"a"},
		},
		"an rmdir that was left before the owner was asked is undone": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", removing)}, onOwner: []string{"a"},
			want: []string{"p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"an rmdir that was left after the owner was asked is finished": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", removing)},
		},
		"a removal that the operator asks for is done at once": {
			directories: []*internalv1.ShareDirectory{left("p/a", ready, whenEmpty)}, onOwner: []string{"a"},
		},
		"a removal that the operator asks for is refused if there is data": {
			directories: []*internalv1.ShareDirectory{left("p/a", ready, whenEmpty)}, onOwner: []string{"a", "a/file"},
			want: []string{"p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"a directory whose rename was left when part of what is below had moved is moved": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{
				left("p", ready, above), left("p/b", ready), left("q", renaming, from("p"), above), left("q/a", ready, from("p/a")),
			},
			onOwner: []string{"b"}, want: []string{". Ready", "q Ready", "q/a Ready", "q/b Ready"},
		},
		"a directory above the depth goes from the owner, too": {
			directories: []*internalv1.ShareDirectory{left("p", ready, whenEmpty, above)}, onOwner: []string{""},
			want: []string{". Ready"}, // the root keeps when that was
		},
		"a directory above the depth stays while something is below": {
			directories: []*internalv1.ShareDirectory{left("p", ready, whenEmpty, above), left("p/a", ready)}, onOwner: []string{"a"},
			want: []string{"p Ready", "p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"a rename that was left before the owner was asked is undone": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", ready), left("p/b", renaming, from("p/a"))}, onOwner: []string{"a"},
			want: []string{"p/a Ready"}, wantOnOwner: []string{"a"},
		},
		"a rename that was left after the owner was asked is finished": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", ready), left("p/b", renaming, from("p/a"))}, onOwner: []string{"b"},
			want: []string{"p/b Ready"}, wantOnOwner: []string{"b"},
		},
		"a rename that was left after the old ShareDirectory was gone is finished": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/b", renaming, from("p/a"))}, onOwner: []string{"b"},
			want: []string{"p/b Ready"}, wantOnOwner: []string{"b"},
		},
		"a rename to what the owner had already is undone": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p/a", ready), left("p/b", renaming, from("p/a"))}, onOwner: []string{"a", "b"},
			want: []string{"p/a Ready"}, wantOnOwner: []string{"a", "b"},
		},
		"a rename above the depth is finished if the old ShareDirectory is gone": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("q", renaming, from("p"), above)}, want: []string{"q Ready"},
		},
		"a rename above the depth is undone if the old ShareDirectory is there": {
			after: time.Minute, directories: []*internalv1.ShareDirectory{left("p", ready, above), left("q", renaming, from("p"), above)}, want: []string{"p Ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.layout, !tc.idle)
			k := w.leader
			for _, o := range tc.directories {
				state := o.Status.State
				if err := k.Client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				o.Status.State = state
				if err := k.Client.Status().Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				k.Tree.SetDirectory(o)
				k.DirectoryChanged(o.Spec.FileShareRef.Name, o.Spec.Path)
			}
			for _, p := range tc.onOwner {
				if p == "" {
					w.owner.Put("/s/0/p", ownertest.Directory{Mode: 0o755})
				} else {
					w.owner.Put("/s/0/p/"+p, ownertest.Directory{Mode: 0o755})
				}
			}
			w.clock.Step(tc.after)
			for _, o := range tc.directories {
				if err := k.complete(t.Context(), task{share: "s", path: o.Spec.Path}); err != nil {
					t.Fatal(err)
				}
			}
			list := &internalv1.ShareDirectoryList{}
			if err := k.Client.List(t.Context(), list, client.InNamespace("ns")); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range list.Items {
				got = append(got, fmt.Sprintf("%s %s", o.Spec.Path, o.State()))
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("the ShareDirectories are %v, want %v", got, tc.want)
			}
			if got := w.owner.Names("/s/0/p"); !slices.Equal(got, tc.wantOnOwner) {
				t.Errorf("the owner has %v, want %v", got, tc.wantOnOwner)
			}
		})
	}
}

func TestARefusedRemovalIsTriedAgainSlowlyAndWrittenOnce(t *testing.T) {
	w := newWorld(t, "", true)
	k := w.leader
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.owner.Put("/s/0/p/a/file", ownertest.Directory{Mode: 0o755})
	o := left("p/a", internalv1.DirectoryReady, whenEmpty)
	mustDo := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	mustDo("create", k.Client.Create(t.Context(), o))
	o.Status.State = internalv1.DirectoryReady
	mustDo("status", k.Client.Status().Update(t.Context(), o))
	try := func() (version string, there bool) {
		t.Helper()
		now := &internalv1.ShareDirectory{}
		err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(o), now)
		if apierrors.IsNotFound(err) {
			return "", false
		}
		mustDo("get", err)
		k.Tree.SetDirectory(now) // as the watch does
		k.DirectoryChanged("s", "p/a")
		mustDo("complete", k.complete(t.Context(), task{share: "s", path: "p/a"}))
		mustDo("get", client.IgnoreNotFound(k.Client.Get(t.Context(), client.ObjectKeyFromObject(o), now)))
		return now.ResourceVersion, true
	}
	first, _ := try()
	refused := &internalv1.ShareDirectory{}
	mustDo("get", k.Client.Get(t.Context(), client.ObjectKeyFromObject(o), refused))
	if refused.Status.RemovalRefusedTime == nil {
		t.Fatal("nothing says that the directory holds data")
	}
	w.clock.Step(retryRemoval)
	if again, _ := try(); again != first {
		t.Error("a second refusal is written, too")
	}
	w.owner.Drop("/s/0/p/a/file")
	w.clock.Step(retryRemoval - time.Second)
	try()
	if names := w.owner.Names("/s/0/p"); !slices.Equal(names, []string{"a"}) {
		t.Errorf("it is tried again before its time: the owner has %v", names)
	}
	w.clock.Step(time.Second)
	try()
	if _, there := try(); there {
		t.Error("the directory is empty now, and its object stays")
	}
}
