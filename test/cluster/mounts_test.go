package cluster

import "testing"

func TestMountSource(t *testing.T) {
	for device, want := range map[string][2]string{
		"10.96.0.7:/share/0":       {"10.96.0.7", "/share/0"},
		"[fd00:10:96::7]:/share/0": {"fd00:10:96::7", "/share/0"},
		"fd00:10:96::7:/share/0":   {"fd00:10:96::7", "/share/0"},
		"fd00:10:96:::/":           {"fd00:10:96::", "/"},
		"nfs.example.com:/a:/b":    {"nfs.example.com", "/a:/b"},
		"tmpfs":                    {"tmpfs", ""},
	} {
		if server, path := MountSource(device); server != want[0] || path != want[1] {
			t.Errorf("%s: %q, %q, want %q", device, server, path, want)
		}
	}
}
