package ceph

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("The Ceph of a lab", Label("ceph"), func() {
	It("is healthy, with an OSD on each node and two active MDS", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) string {
			return admin.must(ctx, toMon("health", request{"detail": "detail"}))
		}).Should(ContainSubstring(`"status":"HEALTH_OK"`))
		var status struct {
			OSDs struct {
				Up int `json:"num_up_osds"`
			} `json:"osdmap"`
			FS struct {
				Up      int   `json:"up"`
				Ranks   []any `json:"by_rank"`
				Standby int   `json:"up:standby"`
			} `json:"fsmap"`
		}
		Expect(json.Unmarshal([]byte(admin.must(ctx, toMon("status", request{}))), &status)).To(Succeed())
		Expect(status.OSDs.Up).To(Equal(3))
		Expect(status.FS.Ranks).To(HaveLen(2))
		Expect(status.FS.Standby).To(Equal(1))
		pods := &corev1.PodList{}
		Expect(c.List(ctx, pods, client.InNamespace(cephNamespace), client.MatchingLabels{"app": "ceph-osd"})).To(Succeed())
		nodes := map[string]bool{}
		for _, pod := range pods.Items {
			nodes[pod.Spec.NodeName] = true
		}
		Expect(nodes).To(HaveLen(3))
	}, SpecTimeout(limit))

	It("shows a file that libcephfs wrote in one pod to ceph-fuse in another pod", func(ctx SpecContext) {
		share := newSubvolume(ctx, "files")
		files(ctx, "files", clientFiles(share.account))
		run(ctx, "writer", cephImage, "files", "/etc/ceph", func(*corev1.Container) {}, "sleep", "infinity")
		privileged := true
		run(ctx, "reader", cephImage, "files", "/etc/ceph", func(container *corev1.Container) {
			container.SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
		}, "sleep", "infinity")
		const write = `import cephfs, os
fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf", auth_id="%s")
fs.mount(mount_root=b"%s", filesystem_name=b"%s")
fd = fs.open("/file", "w", 0o644)
fs.write(fd, b"written by libcephfs\n", 0)
fs.close(fd)
fs.unmount()
os._exit(0)
`
		_, err := c.Shell(ctx, "writer", fmt.Sprintf("exec python3 -c '%s'", fmt.Sprintf(write, share.user, share.path, filesystem)))
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Shell(ctx, "reader", fmt.Sprintf("mkdir -p /mnt/share && ceph-fuse --id %s --client_fs %s -r %s /mnt/share", share.user, filesystem, share.path))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Shell(ctx, "reader", "cat /mnt/share/file")).To(Equal("written by libcephfs\n"))
		// The account belongs to the share: nothing else can be mounted with it.
		_, err = c.Shell(ctx, "reader", fmt.Sprintf("mkdir -p /mnt/all && ceph-fuse --id %s --client_fs %s -r /volumes /mnt/all", share.user, filesystem))
		Expect(err).To(HaveOccurred())
	}, SpecTimeout(limit))
})
