package ceph

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
)

// When ganesha starts, it mounts its shares in Ceph, and clients wait for the last mount. It mounts them in parallel: one
// after the other, each would add more than a second (1.2 to 1.4 s in the lab). underLoad checks that no client gets an
// error and that no line is lost.
var _ = Describe("A data server with many shares in Ceph", Ordered, Label("ceph", "many-shares"), func() {
	const (
		name   = "laden"
		user   = "laden-user"
		shares = 12
		most   = 500 * time.Millisecond // For each additional share.
	)
	nameOf := func(i int) string { return fmt.Sprintf("laden-%d", i) }
	add := func(ctx SpecContext, from, to int) {
		GinkgoHelper()
		for i := from; i < to; i++ {
			Expect(c.Create(ctx, &v1alpha1.FileShare{
				ObjectMeta: metav1.ObjectMeta{Name: nameOf(i), Namespace: c.Namespace},
				Spec: v1alpha1.FileShareSpec{
					FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + nameOf(i), Directories: []string{"d0"}, Mode: "0777",
					ReclaimPolicy: v1alpha1.ReclaimDelete,
				},
			})).To(Succeed())
		}
		for i := from; i < to; i++ {
			Eventually(ctx, func() error { return c.ShareReady(ctx, nameOf(i)) }).Should(Succeed())
		}
	}

	BeforeAll(func(ctx SpecContext) {
		stewarded(ctx, name, 1)
		DeferCleanup(func(ctx SpecContext) { // Before the FileServer's, which is deferred first.
			output, err := c.Kubectl(ctx, "delete", "pod", user, "--ignore-not-found", "--grace-period=1", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			for i := range shares {
				output, err := c.Kubectl(ctx, "delete", "fileshare", nameOf(i), "--ignore-not-found", "--wait=false")
				Expect(err).NotTo(HaveOccurred(), output)
			}
			for i := range shares {
				output, err := c.Kubectl(ctx, "wait", "--for=delete", "fileshare/"+nameOf(i), "--timeout=5m")
				Expect(err).NotTo(HaveOccurred(), output)
			}
		}, NodeTimeout(limit))
		add(ctx, 0, 1)
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: user, Claims: map[string]string{mountPoint: nameOf(0)}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, user)).To(Succeed())
	}, NodeTimeout(limit))

	It("serves again after a kill once it has mounted all shares, without an error at a client", func(ctx SpecContext) {
		killed := func() pauses {
			GinkgoHelper()
			found := underLoad(ctx, map[string]string{user: mountPoint + "/d0"}, func() {
				sh(ctx, name+"-0", "kill -9 $(cat %s/ganesha.pid)", serverpod.RunDir)
			})
			Eventually(ctx, fileServerReady(name)).Should(Succeed())
			return found[user] // A load that is stopped ends after its pending write, however long that takes.
		}
		one := killed()
		add(ctx, 1, shares)
		many := killed()
		more := many.io - one.io
		AddReportEntry("ganesha killed with SIGKILL: longest write and sync of its client, with one share and with "+fmt.Sprint(shares),
			fmt.Sprintf("%.1f and %.1f s: %.2f s for each share more, at most %.1f s", one.io.Seconds(), many.io.Seconds(), more.Seconds()/(shares-1), most.Seconds()), ReportEntryVisibilityAlways)
		if room := (spare.Room{Share: 1, Stolen: max(one.stolen, many.stolen)}); room.Busy() != "" {
			AddReportEntry("not judged", room.Busy(), ReportEntryVisibilityAlways)
			return
		}
		Expect(more).To(BeNumerically("<", (shares-1)*most), "each additional share adds too much to the pause of all clients")
	}, SpecTimeout(limit))
})
