package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/test/cluster"
)

// nfsMount is a line of /proc/mounts.
type nfsMount struct {
	address, path, point, options string
}

func nfsMounts(text, below string) []nfsMount {
	var found []nfsMount
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2] != "nfs4" || !strings.HasPrefix(fields[1]+"/", below+"/") {
			continue
		}
		address, path := cluster.MountSource(fields[0])
		found = append(found, nfsMount{address: address, path: path, point: fields[1], options: fields[3]})
	}
	return found
}

var _ = Describe("A pod that mounts a share", Label("smoke"), func() {
	It("read its first byte within 20 s of apply", func() {
		expectWithin("apply to first byte", firstByte, 20*time.Second)
	})

	It("reaches every directory by a submount of its own, over three servers, with nconnect=16", func(ctx SpecContext) {
		shell(ctx, clientA, "for d in /share/train/*/; do ls $d > /dev/null || exit 1; done")
		mounts := nfsMounts(shell(ctx, clientA, "cat /proc/mounts"), shareMount)

		points, servers := map[string]bool{}, map[string]bool{}
		for _, mount := range mounts {
			points[mount.point] = true
			Expect(mount.options).To(Or(ContainSubstring("vers=4.1"), ContainSubstring("vers=4.2")), mount.point)
			Expect(strings.Split(mount.options, ",")).To(ContainElement("nconnect=16"), mount.point)
			if mount.point != shareMount {
				servers[mount.address] = true
			}
		}
		Expect(points).To(HaveKey(shareMount))
		for _, directory := range []string{"0", "1", "2", "3", "4", "5"} {
			Expect(points).To(HaveKey(shareMount + "/train/" + directory))
		}
		Expect(len(servers)).To(BeNumerically(">=", serverCount), "addresses of data servers in %v", mounts)
		Expect(servers).NotTo(HaveKey(namespaceServers(ctx)), "no data goes through namespace servers")
	}, SpecTimeout(bound(time.Minute)))
})
