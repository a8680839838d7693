package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// holders returns how many Ceph clients hold capabilities of an inode. The metadata server that has the inode reports it.
func holders(ctx context.Context, inode string) int {
	GinkgoHelper()
	for name := range cephPods(ctx) {
		if !strings.HasPrefix(name, "ceph-mds-") {
			continue
		}
		output, err := c.Kubectl(ctx, "-n", cephNamespace, "exec", name, "--", "ceph", "daemon", "mds."+name, "dump", "inode", inode)
		var dumped struct {
			Auth    bool `json:"is_auth"`
			Clients []struct {
				ID int64 `json:"client_id"`
			} `json:"client_caps"`
		}
		// A standby has no inodes, and an MDS of another rank does not have this one.
		if at := strings.Index(output, "{"); err != nil || at < 0 || json.Unmarshal([]byte(output[at:]), &dumped) != nil || !dumped.Auth {
			continue
		}
		return len(dumped.Clients)
	}
	Fail("no metadata server has inode " + inode)
	return 0
}

// If only one data server holds capabilities of a directory, the metadata server asks no other client before it changes
// the directory. Changes are then two to three times as fast.
var _ = Describe("Directories that namespace servers have scanned", Ordered, Label("ceph"), func() {
	const name, share, user = "alone", "looked-for", "looked-for-client"

	It("are held by their data server only", func(ctx SpecContext) {
		fs := newFileServer(ctx, name, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = servers })
		removeAfterwards(fs, share)
		fmt.Fprint(GinkgoWriter, cephShares(ctx, "secret", name, share))
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + share, Depth: 2, Directories: []string{"train/{0..5}"}, Mode: "0777",
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: user, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, user)).To(Succeed())
		inodes := strings.Fields(sh(ctx, user, "cd %s/train && for d in ?; do echo data >$d/file || exit 1; done; stat -c %%i ?/.", mountPoint))
		Expect(inodes).To(HaveLen(6))

		By("losing what is known of each data server, and the namespace servers: the leader scans every data server")
		exports := func(ctx context.Context) []internalv1.ShareExport {
			list := &internalv1.ShareExportList{}
			Expect(c.List(ctx, list, client.InNamespace(c.Namespace))).To(Succeed())
			return slices.DeleteFunc(list.Items, func(e internalv1.ShareExport) bool { return e.Spec.FileShareRef.Name != share })
		}
		Expect(exports(ctx)).To(HaveLen(servers))
		for _, export := range exports(ctx) {
			Expect(c.Client.Status().Patch(ctx, &export, client.RawPatch(types.MergePatchType, []byte(`{"status":{"inventory":null}}`)))).To(Succeed())
		}
		selector := []string{}
		for key, value := range naming.SelectNamespaceServers(name) {
			selector = append(selector, key+"="+value)
		}
		output, err := c.Kubectl(ctx, "delete", "pods", "-l", strings.Join(selector, ","), "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		// A scan of a data server ends with its inventory.
		Eventually(ctx, exports).WithTimeout(3 * time.Minute).Should(HaveEach(HaveField("Status.Inventory.FileShareUID", Not(BeEmpty()))))
		for _, inode := range inodes {
			Expect(holders(ctx, inode)).To(Equal(1), "clients of Ceph with capabilities of inode %s of %v", inode, inodes)
		}
	}, SpecTimeout(limit))
})
