package integration

import (
	"context"
	"log/slog"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/directories"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/builders"
)

// afterRead is a client that does something once after an object was read.
type afterRead struct {
	client.Client
	do func()
}

func (c *afterRead) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	if do := c.do; do != nil {
		c.do = nil
		do()
	}
	return err
}

// emptyServers have no directories.
type emptyServers struct{ directories.Owners }

func (emptyServers) Entries(context.Context, string, string, nfs.Credentials, func(nfs.DirEntry) bool) error {
	return nil
}

var _ = Describe("A namespace server", func() {
	var (
		namespace string
		known     *tree.Tree
		api       *afterRead
		service   *directories.Service
	)
	BeforeEach(func() {
		namespace = newNamespace()
		known = tree.New("training")
		share := builders.FileShare(namespace, "data", "training").Depth(2).Build()
		share.UID = "share"
		known.SetShare(fleet.ShareOf(share))
		server := &internalv1.DataServer{}
		server.Namespace, server.Name = namespace, "training-0"
		server.Spec = internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "training"}, Address: "10.0.0.1", Volumes: 1}
		server.Status.Conditions = builders.ReadyConditions()
		known.SetServer(server)
		api = &afterRead{Client: admin}
		service = directories.NewService(directories.Config{
			Tree: known, Client: api, Owners: emptyServers{}, KubeNamespace: namespace, FileServer: "training", Replica: "r", Clock: clock.RealClock{},
			Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil)), Concurrent: 1, Timeout: time.Minute,
		})
	})

	It("sets no times of a directory that was removed and made again meanwhile", func() {
		above := func() *internalv1.ShareDirectory {
			directory := builders.ShareDirectory(namespace, "training", "data", "p", "")
			directory.Spec.Volume, directory.Labels = nil, nil
			return directory
		}
		first := above()
		createDirectory(first)
		known.SetDirectory(first)
		second := above()
		api.do = func() {
			Expect(admin.Delete(ctx, first)).To(Succeed())
			createDirectory(second)
		}
		long := time.Unix(1_000_000_000, 0)
		set := func() nfsv4.Nfsstat4 {
			entry, ok := known.At("/data/p")
			Expect(ok).To(BeTrue())
			return service.SetAttributes(ctx, entry, tree.Settings{Modify: &tree.TimeSetting{Time: long}}, tree.Credentials{})
		}
		Expect(set()).To(BeEquivalentTo(nfsv4.NFS4ERR_DELAY))
		now := exists(&internalv1.ShareDirectory{}, namespace, first.Name)
		Expect(now.UID).To(And(Equal(second.UID), Not(Equal(first.UID))))
		Expect(now.Status).To(Equal(internalv1.ShareDirectoryStatus{State: internalv1.DirectoryReady}))

		By("those of the one that is there, and nothing else of it")
		known.DeleteDirectory("data", "p", string(first.UID))
		known.SetDirectory(second)
		Expect(set()).To(BeEquivalentTo(nfsv4.NFS4_OK))
		now = exists(&internalv1.ShareDirectory{}, namespace, first.Name)
		Expect(now.Status.State).To(Equal(internalv1.DirectoryReady))
		Expect(now.Status.ModifiedTime).To(Equal(tree.FormatTime(long)))
	})

	It("sets the times of a directory that has no status", func() {
		directory := builders.ShareDirectory(namespace, "training", "data", "p", "")
		directory.Spec.Volume, directory.Labels = nil, nil
		create(directory)
		known.SetDirectory(directory)
		entry, ok := known.At("/data/p")
		Expect(ok).To(BeTrue())
		long := time.Unix(1_000_000_000, 0)
		Expect(service.SetAttributes(ctx, entry, tree.Settings{Modify: &tree.TimeSetting{Time: long}}, tree.Credentials{})).To(BeEquivalentTo(nfsv4.NFS4_OK))
		now := exists(&internalv1.ShareDirectory{}, namespace, directory.Name)
		Expect(now.State()).To(Equal(internalv1.DirectoryReady))
		Expect(now.Status.ModifiedTime).To(Equal(tree.FormatTime(long)))
	})

	It("tells what it found on a data server to the export of that, and not to a newer one", func() {
		export := builders.ShareExport(namespace, "training", "data", "training-0")
		status := export.Status
		export.Labels = nil
		create(export)
		export.Status = status
		Expect(admin.Status().Update(ctx, export)).To(Succeed())
		before := export.DeepCopy()
		before.UID = types.UID("earlier")
		known.SetExport(before)
		leading, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			directories.NewLeader(service).Run(leading)
		}()
		found := func() string {
			return exists(&internalv1.ShareExport{}, namespace, export.Name).Status.Inventory.FileShareUID
		}
		Consistently(found, "2s", "100ms").Should(BeEmpty())
		known.SetExport(export)
		Eventually(found, timeout, "100ms").Should(Equal("share"))
		Expect(exists(&internalv1.ShareExport{}, namespace, export.Name).Status.ExportIDs).To(Equal(status.ExportIDs))
		stop()
		Eventually(ended, timeout).Should(BeClosed())
	})
})
