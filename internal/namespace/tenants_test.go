package namespace

import (
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// attach shows the world's namespace servers a share of another Kubernetes namespace, as the operator does.
func (w *world) attach(namespace, name, path string) *internalv1.ShareAttachment {
	w.t.Helper()
	uid, key := int64(0), naming.ShareKey(w.namespace, namespace, name)
	attachment := &internalv1.ShareAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: key, Labels: naming.ShareLabels(w.namespace, fileServer, key), Finalizers: []string{v1alpha1.AttachmentFinalizer},
		},
		Spec: internalv1.ShareAttachmentSpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer}, FileShareRef: internalv1.FileShareReference{Name: key},
			FileShareUID: "uid-of-" + key, Path: path, Layout: "Distributed", Depth: 1, MaxDirectories: 100, UID: &uid, GID: &uid, Mode: "0777",
			InventoryGeneration: 1, Inventory: internalv1.InventoryComplete,
			Access: []v1alpha1.AccessRule{{Clients: []string{"0.0.0.0/0", "::/0"}, AccessType: v1alpha1.AccessReadWrite, Squash: v1alpha1.SquashNone}},
		},
	}
	w.create(attachment)
	for i := range w.owners {
		w.owners[i].Put(naming.ExportPseudo(key, 0), ownertest.Directory{Mode: 0o777})
		w.serves(i, key)
	}
	return attachment
}

func TestSharesOfTwoNamespacesWithOneNameAreTwoShares(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	// This one is in the FileServer's namespace and names a FileServer of the same name elsewhere.
	w.create(builders.FileShare(w.namespace, "elsewhere", fileServer).OnNamespace("elsewhere").Build())
	w.attach("tenant-a", "data", "/a/data")
	b := w.attach("tenant-b", "data", "/b/data")
	server := w.serve("a")
	mount, c := w.mount(server), boot(t, server.address)
	sees := func(path string) bool {
		_, err := mount.Stat(t.Context(), user, path)
		return err == nil
	}

	for _, path := range []string{"/data", "/a/data", "/b/data"} {
		want(t, "mkdir in "+path, nfsv4.NFS4_OK, c.mkdir(user, path+"/d"))
	}
	for _, key := range []string{"data", "tenant-a.data", "tenant-b.data"} {
		directory := w.directory(key, "d")
		if directory == nil || len(w.ownersOf(key, "d")) != 1 {
			t.Fatalf("there is no directory d of %s on its owner: %v", key, directory)
		}
		labels := naming.ShareLabels(w.namespace, fileServer, key)
		for name, value := range labels {
			if directory.Labels[name] != value {
				t.Errorf("the ShareDirectory of %s has the label %s=%q, not %q", key, name, directory.Labels[name], value)
			}
		}
	}

	// Being deleted it is hidden, though its finalizer holds it.
	if err := w.api.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.eventually("the share is hidden", func() bool { return !sees("/b") })
	if !sees("/a/data/d") || !sees("/data/d") || sees("/elsewhere") {
		t.Error("the tree must have /a and /data, and not /elsewhere")
	}
}

// limit gives the FileServer's data servers limits on directories, as the operator does.
func (w *world) limit(limits internalv1.DirectoryLimits) {
	w.t.Helper()
	for i := range w.owners {
		o := &internalv1.DataServer{}
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, int32(i))}, o); err != nil {
			w.t.Fatal(err)
		}
		o.Spec.DirectoryLimits = limits
		if err := w.api.Update(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// What clients make counts for the limits of the FileServer as what is declared does: those of one namespace can't fill it for the others.
func TestMkdirEndsAtTheLimitsOfTheFileServer(t *testing.T) {
	w := newWorld(t, 1)
	w.limit(internalv1.DirectoryLimits{Total: 6, PerNamespace: 3})
	w.share("data", 1)
	w.attach("tenant-a", "one", "/a/one")
	w.attach("tenant-a", "two", "/a/two")
	w.attach("tenant-b", "one", "/b/one")
	c := boot(t, w.serve("a").address)
	for _, made := range []struct {
		path string
		want nfsv4.Nfsstat4
	}{
		{"/a/one/1", nfsv4.NFS4_OK},
		{"/a/one/2", nfsv4.NFS4_OK},
		{"/a/two/1", nfsv4.NFS4_OK},
		{"/a/two/2", nfsv4.NFS4ERR_DQUOT},
		{"/a/one/3", nfsv4.NFS4ERR_DQUOT},
		{"/b/one/1", nfsv4.NFS4_OK},
		{"/data/1", nfsv4.NFS4_OK},
		{"/data/2", nfsv4.NFS4_OK},
		{"/data/3", nfsv4.NFS4ERR_DQUOT},
		{"/b/one/2", nfsv4.NFS4ERR_DQUOT},
	} {
		want(t, "mkdir "+made.path, made.want, c.mkdir(user, made.path))
	}
	if len(w.ownersOf("tenant-a.two", "2")) != 0 || w.directory("tenant-a.two", "2") != nil {
		t.Error("the directory that was refused exists")
	}
	w.limit(internalv1.DirectoryLimits{Total: 100, PerNamespace: 50})
	w.eventually("there is room once the limits are raised", func() bool { return c.mkdir(user, "/a/two/2") == nfsv4.NFS4_OK })
}
