package directories

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/test/builders"
)

// restoredWorld has two data servers, each with a volume of its own, and an API whose unfinished ShareDirectories were last written long ago. What the
// leader writes was written by now.
func restoredWorld(t *testing.T, written time.Duration) (w *world, second *ownertest.Owner) {
	t.Helper()
	w = newWorld(t, v1alpha1.LayoutDistributed, true)
	second = ownertest.Start(t, "owner", "fs-0")
	second.Put("/s/0", ownertest.Directory{Mode: 0o777})
	server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: "fs-1"}}
	server.Spec = internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: second.Address, Volumes: 1}
	server.Status.Conditions = builders.ReadyConditions()
	w.leader.Tree.SetServer(server)
	w.leader.Tree.SetExport(exportOn("fs-1"))
	if err := w.leader.Client.Create(t.Context(), exportOn("fs-1")); err != nil {
		t.Fatal(err)
	}
	restored := w.clock.Now()
	backup, now := metav1.NewTime(restored.Add(-written)), map[string]metav1.Time{}
	w.leader.Client = interceptor.NewClient(w.leader.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			at := backup
			if written, is := now[o.GetName()]; is {
				at = written
			}
			o.SetCreationTimestamp(backup)
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "namespace", Subresource: "status", Time: &at}})
			return err
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, part string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			err := c.SubResource(part).Update(ctx, o, opts...)
			if err == nil && w.clock.Now().After(restored) {
				now[o.GetName()] = metav1.NewTime(w.clock.Now())
			}
			return err
		},
	})
	return w, second
}

// A backup of the API is of the middle of a change. The change was ended since, and the directory was copied to another data server, more than an hour ago: its
// old owner has forgotten it. After a restore nothing empty takes its place, and no name is given away whose directory is there.
func TestWhatHasMovedSinceTheBackupOfAnUnfinishedChangeIsNotMadeAgain(t *testing.T) {
	const (
		creating = internalv1.DirectoryCreating
		removing = internalv1.DirectoryRemoving
		renaming = internalv1.DirectoryRenaming
	)
	// onto are the two ShareDirectories of a rename of p/a onto p/b.
	onto := func() []*internalv1.ShareDirectory {
		old := left("p/a", removing, func(o *internalv1.ShareDirectory) { o.Status.Replaces = "p/b" })
		target := left("p/b", removing, func(o *internalv1.ShareDirectory) {
			o.Status.ReplacedBy = internalv1.DirectoryReplacement{Path: "p/a", Identity: renamedSpec(old).Identity}
		})
		return []*internalv1.ShareDirectory{old, target}
	}
	neverWritten := func(o *internalv1.ShareDirectory) { o.Status.State = "" }
	for name, tc := range map[string]struct {
		directories []*internalv1.ShareDirectory
		written     time.Duration
		ignored     string
		// onFirst and onSecond are what the data servers have in p, silent has the second not say yet whether it has p/a, away not serve the share.
		onFirst, onSecond []string
		silent, away      bool
		want              []string
		// wantOnFirst is what the first has in the end.
		wantOnFirst []string
		fails       string
	}{
		"a mkdir": {directories: []*internalv1.ShareDirectory{left("p/a", creating)}, onSecond: []string{"a"}, want: []string{"p/a Missing"}},
		"a mkdir whose state was not written yet": {directories: []*internalv1.ShareDirectory{left("p/a", creating, neverWritten)}, onSecond: []string{"a"}, want: []string{"p/a Missing"}},
		"a declared directory":                    {directories: []*internalv1.ShareDirectory{left("p/a", creating, declared, neverWritten)}, onSecond: []string{"a"}, want: []string{"p/a Missing"}},
		"an rmdir that was refused":               {directories: []*internalv1.ShareDirectory{left("p/a", removing)}, onSecond: []string{"a"}, want: []string{"p/a Missing"}},
		"a rename that was made":                  {directories: []*internalv1.ShareDirectory{left("p/b", renaming, from("p/a")), left("p/a", removing)}, onSecond: []string{"b"}, want: []string{"p/b Missing"}},
		"a rename that was not made":              {directories: []*internalv1.ShareDirectory{left("p/b", renaming, from("p/a")), left("p/a", removing)}, onSecond: []string{"a"}, want: []string{"p/a Missing"}},
		"a rename onto an empty directory that was refused": {
			directories: onto(), onFirst: []string{"a"}, onSecond: []string{"b"}, want: []string{"p/a Ready", "p/b Missing"}, wantOnFirst: []string{"a"},
		},
		"one whose old name is free by now":            {directories: onto()[1:], onSecond: []string{"b"}, want: []string{"p/b Missing"}},
		"one whose target is nowhere is undone":        {directories: onto(), onFirst: []string{"a"}, want: []string{"p/a Ready", "p/b Ready"}, wantOnFirst: []string{"a", "b"}},
		"one whose target may be on another one":       {directories: onto()[1:], away: true, want: []string{"p/b Removing"}, fails: "data server fs-1 does not serve share s"},
		"one that is nowhere is made, as before":       {directories: []*internalv1.ShareDirectory{left("p/a", creating)}, want: []string{"p/a Ready"}, wantOnFirst: []string{"a"}},
		"one that is nowhere was removed":              {directories: []*internalv1.ShareDirectory{left("p/a", removing)}},
		"one that is on its owner is Ready":            {directories: []*internalv1.ShareDirectory{left("p/a", creating)}, onFirst: []string{"a"}, onSecond: []string{"a"}, want: []string{"p/a Ready"}, wantOnFirst: []string{"a"}},
		"another data server does not answer":          {directories: []*internalv1.ShareDirectory{left("p/a", creating)}, silent: true, want: []string{"p/a Creating"}, fails: "data server fs-1"},
		"another data server does not serve the share": {directories: []*internalv1.ShareDirectory{left("p/a", creating)}, away: true, want: []string{"p/a Creating"}, fails: "data server fs-1 does not serve share s"},
		"its data there is given up":                   {directories: []*internalv1.ShareDirectory{left("p/a", creating)}, away: true, ignored: "fs-1", want: []string{"p/a Ready"}, wantOnFirst: []string{"a"}},
		"a change of a moment ago asks its owner alone": {
			directories: []*internalv1.ShareDirectory{left("p/a", creating)}, written: time.Minute, silent: true, want: []string{"p/a Ready"}, wantOnFirst: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.written == 0 {
				tc.written = 25 * time.Hour
			}
			w, second := restoredWorld(t, tc.written)
			if tc.ignored != "" {
				share, _ := w.leader.Tree.Share("s")
				share.IgnoreDataOn = []string{tc.ignored}
			}
			if tc.away {
				w.leader.Tree.DeleteExport("fs-1", "s")
			}
			if tc.silent {
				second.Freeze("/s/0/p/a", true) // It moves on from there.
			}
			for owner, names := range map[*ownertest.Owner][]string{w.owner: tc.onFirst, second: tc.onSecond} {
				owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
				for _, name := range names {
					owner.Put("/s/0/p/"+name, ownertest.Directory{Mode: 0o755})
				}
			}
			for _, o := range tc.directories {
				w.know(t, o)
				w.leader.DirectoryChanged("s", o.Spec.Path)
			}
			var failed []string
			for range 3 {
				for _, o := range tc.directories {
					w.clock.Step(2 * abandonedAfter)
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					err := w.leader.complete(ctx, task{share: "s", path: o.Spec.Path})
					cancel()
					if err != nil {
						failed = append(failed, err.Error())
					}
				}
			}
			w.has(t, tc.want, tc.wantOnFirst)
			if all := strings.Join(failed, "\n"); tc.fails == "" && all != "" || !strings.Contains(all, tc.fails) {
				t.Errorf("failed: %s", all)
			}
		})
	}
}

// has compares the API's ShareDirectories, as "path state", and what the first data server has.
func (w *world) has(t *testing.T, want, wantOnOwner []string) {
	t.Helper()
	list := &internalv1.ShareDirectoryList{}
	if err := w.leader.Client.List(t.Context(), list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range list.Items {
		if path := list.Items[i].Spec.Path; path != tree.RootPath {
			got = append(got, path+" "+string(list.Items[i].State()))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the ShareDirectories are %v, want %v", got, want)
	}
	if got := w.owner.Names("/s/0/p"); !slices.Equal(got, wantOnOwner) {
		t.Errorf("the first data server has %v, want %v", got, wantOnOwner)
	}
}
