package benchmark

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNFSMountsAreFoundWithTheirConnections(t *testing.T) {
	const mountinfo = `22 1 0:20 / / rw,relatime - ext4 /dev/vda rw
40 22 0:41 / /data rw,relatime master:12 - nfs4 10.96.0.7:/unet3d rw,vers=4.1,rsize=1048576,hard,proto=tcp,nconnect=16,timeo=600,clientaddr=10.0.0.2,addr=10.96.0.7
41 40 0:42 / /data/train/0 rw,relatime - nfs4 10.96.0.9:/unet3d/0/train/0 rw,vers=4.1,hard,addr=10.96.0.9
42 22 0:43 / /database rw,relatime - nfs4 10.96.0.8:/other rw,vers=4.2,nconnect=4,addr=10.96.0.8
43 22 0:44 / /data/tmp rw,relatime - tmpfs tmpfs rw
broken line
`
	want := []NFSMount{
		{Path: "/data", Address: "10.96.0.7", Version: "4.1", Nconnect: 16},
		{Path: "/data/train/0", Address: "10.96.0.9", Version: "4.1", Nconnect: 1},
	}
	if diff := cmp.Diff(want, NFSMounts(mountinfo, "/data")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzNFSMounts(f *testing.F) {
	f.Add("1 2 0:3 / /data rw - nfs4 a:/b vers=4.1,nconnect=16,addr=a\n", "/data")
	f.Fuzz(func(t *testing.T, text, below string) {
		for _, m := range NFSMounts(text, below) {
			if m.Path == "" {
				t.Errorf("a mount without a path: %+v", m)
			}
		}
	})
}
