package namespace

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
)

// scaleDirectories is the size that docs/design/2026-11-21-directory-objects.md has figures for.
const scaleDirectories = 10_000

// readyDirectory is a ShareDirectory as a namespace server leaves it after a client's mkdir.
func (w *world) readyDirectory(share string, i int) *internalv1.ShareDirectory {
	volume, id := int32(0), int64(1000)
	path, server := fmt.Sprintf("%04d/%05d", i/100, i), naming.DataServer(fileServer, int32(i%len(w.owners)))
	return &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: naming.Directory(fileServer, share, path),
			Labels: map[string]string{
				v1alpha1.FileServerLabel: fileServer, v1alpha1.FileShareLabel: share, v1alpha1.DataServerLabel: server,
			},
			Annotations: map[string]string{tree.MadeByAnnotation: "fs-namespace-7d9f8b6c5-abcde"},
		},
		Spec: internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer}, FileShareRef: internalv1.FileShareReference{Name: share}, Path: path, DataServerRef: internalv1.DataServerReference{Name: server}, Volume: &volume,
			UID: &id, GID: &id, Mode: "0755",
		},
	}
}

// TestTenThousandDirectories prints the figures for an object per directory. It takes minutes: it
// runs with HOWDAH_SCALE=1 only.
func TestTenThousandDirectories(t *testing.T) {
	if os.Getenv("HOWDAH_SCALE") == "" {
		t.Skip("set HOWDAH_SCALE=1 to create 10,000 ShareDirectories")
	}
	w := newWorld(t, 3)
	w.share("data", 2)
	began := time.Now()
	var workers sync.WaitGroup
	const parallel = 16
	for k := range parallel {
		workers.Go(func() {
			for i := k; i < scaleDirectories; i += parallel {
				if err := w.api.Create(t.Context(), w.readyDirectory("data", i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	t.Logf("%d ShareDirectories were created in %v by %d workers: %.0f/s", scaleDirectories, took.Round(time.Millisecond), parallel, scaleDirectories/took.Seconds())

	began = time.Now()
	list := &internalv1.ShareDirectoryList{}
	if err := w.api.List(t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.FileServerLabel: fileServer}); err != nil {
		t.Fatal(err)
	}
	t.Logf("one list of %d ShareDirectories took %v", len(list.Items), time.Since(began).Round(time.Millisecond))
	encoded, err := json.Marshal(&list.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	stripped := list.Items[0].DeepCopy()
	stripped.ManagedFields = nil
	small, err := json.Marshal(stripped)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a ShareDirectory has %d bytes in JSON, %d without managedFields", len(encoded), len(small))
	for i := range w.owners { // so that the leader finds what the ShareDirectories say
		for j := range list.Items {
			if r := &list.Items[j]; r.Spec.DataServerRef.Name == naming.DataServer(fileServer, int32(i)) {
				w.owners[i].Put(tree.ExportPath("data", 0, r.Spec.Path), ownertest.Directory{Mode: 0o755})
			}
		}
	}
	list = nil
	before := heap()
	began = time.Now()
	s := w.serve("a")
	t.Logf("a namespace server was ready %v after its start", time.Since(began).Round(time.Millisecond))
	t.Logf("it holds %.1f MB of heap, informer cache and tree", float64(heap()-before)/1e6)

	mount := w.mount(s)
	began = time.Now()
	parents, err := mount.ReadDir(t.Context(), user, "/data")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range parents {
		entries, err := mount.ReadDir(t.Context(), user, "/data/"+p.Name)
		if err != nil {
			t.Fatal(err)
		}
		n += len(entries)
	}
	t.Logf("a client listed %d directories in %v", n, time.Since(began).Round(time.Millisecond))
	if n != scaleDirectories {
		t.Errorf("a client sees %d directories", n)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
