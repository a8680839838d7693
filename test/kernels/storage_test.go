package kernels

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// oneStorage has all data servers have the same files of a share that is made later: the same directory of the first one's disk is mounted in the place
// of each one's own. It stands for CephFS; the data servers know nothing of it, and take it for their volumes. It gives where a directory of
// the share is, for the test.
func (w *world) oneStorage(t *testing.T, share, directory string) string {
	t.Helper()
	first := filepath.Join(w.ownerFolder(0), "volume", share)
	if err := os.MkdirAll(first, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(w.owners); i++ {
		folder := w.ownerFolder(i)
		if err := os.MkdirAll(filepath.Join(folder, "volume", share), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{"root", filepath.Join("root", serverpod.GaneshaRoot)} {
			host(t, "nsenter --mount=/proc/%d/ns/mnt mount --bind %s %s", w.owners[i].Process.Pid, first, filepath.Join(folder, root, "volumes", "0", share))
		}
	}
	return filepath.Join(first, directory)
}

// layFlat makes files in a directory, of some bytes each, that begin with their names: 0, 1 and so on.
func layFlat(t *testing.T, directory string, files, bytes int) {
	t.Helper()
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, bytes)
	_, _ = rand.Read(content) // It never fails.
	for i := range files {
		name := strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(directory, name), append([]byte(name+"\n"), content[len(name)+1:]...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host(t, "sync --file-system %s", directory)
}

// shareStorage has namespace servers believe that the data servers share their storage, or no longer. As with the operator, they read it in the
// DataServers' spec.ceph. A data server's process chose its back end when it started, by what was there then, so it stays at its volume. What else is on one
// data server's disk is not on the others', so they believe it only as long as that is needed.
func (w *world) shareStorage(t *testing.T, shared bool) {
	t.Helper()
	in := internalv1.CephFileSystem{}
	if shared {
		in = internalv1.CephFileSystem{Monitors: []string{"192.0.2.1:3300"}, FSID: "model", FileSystem: "model", RecoveryPool: "model", RecoveryUser: "model", SecretName: "model"}
	}
	for i := range w.owners {
		server, name := &internalv1.DataServer{}, naming.DataServer(fileServer, int32(i))
		w.edit(t, server, name, func() { server.Spec.Ceph = in })
		w.ownerKnows(t, i)
	}
}

// ownerKnows waits until a data server has seen its object as it is now.
func (w *world) ownerKnows(t *testing.T, i int) {
	t.Helper()
	server, name := &internalv1.DataServer{}, naming.DataServer(fileServer, int32(i))
	w.eventually(name+" has seen its object", func() bool {
		if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: kubeNamespace, Name: name}, server); err != nil {
			t.Fatal(err)
		}
		return server.Status.ObservedGeneration != nil && *server.Status.ObservedGeneration == server.Generation
	})
}

// directoryOf is the object of a directory of a share; nil if there is none that is ready.
func (w *world) directoryOf(t *testing.T, share, path string) *internalv1.ShareDirectory {
	t.Helper()
	var directories internalv1.ShareDirectoryList
	if err := w.api.List(t.Context(), &directories); err != nil {
		t.Fatal(err)
	}
	for i := range directories.Items {
		if d := &directories.Items[i]; d.Spec.FileShareRef.Name == share && d.Spec.Path == path && d.Status.State == internalv1.DirectoryReady {
			return d
		}
	}
	return nil
}

// directoryOwner is the address of the data server that owns a directory; "" if none does yet.
func (w *world) directoryOwner(t *testing.T, share, path string) string {
	t.Helper()
	d := w.directoryOf(t, share, path)
	if d == nil {
		return ""
	}
	ordinal, _ := naming.DataServerOrdinal(fileServer, d.Spec.DataServerRef.Name) // They are all this FileServer's.
	return ownerAddress(int(ordinal))
}
