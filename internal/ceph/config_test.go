package ceph

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfig(t *testing.T) {
	got, err := Config("6f0c2a9e-0000-4000-8000-000000000001", []string{"10.0.0.1:3300", "[fd00::2]:3300", "10.0.0.3:6789"}, "/etc/ceph/secrets")
	if err != nil {
		t.Fatal(err)
	}
	want := `# Written by howdah; changes are overwritten.
[global]
fsid = 6f0c2a9e-0000-4000-8000-000000000001
mon_host = v2:10.0.0.1:3300,v2:[fd00::2]:3300,v1:10.0.0.3:6789
[client]
client_mount_timeout = 30
keyring = /etc/ceph/secrets/$name.keyring
client_mount_uid = 0
client_mount_gid = 0
admin_socket =
log_file =
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeInAConfigIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		fsid     string
		monitors []string
		want     string
	}{
		"no monitor":          {"f", nil, "no monitors"},
		"a name":              {"f", []string{"mon-a:3300"}, `monitor "mon-a:3300" is not an IP address with a port`},
		"no port":             {"f", []string{"10.0.0.1"}, "is not an IP address with a port"},
		"a line in the fsid":  {"f\n[client]", []string{"10.0.0.1:3300"}, "can't be in ceph.conf"},
		"a line in a monitor": {"f", []string{"10.0.0.1:3300\nkeyring = /x"}, "is not an IP address with a port"},
		"no fsid":             {"", []string{"10.0.0.1:3300"}, "can't be in ceph.conf"},
	} {
		if got, err := Config(tc.fsid, tc.monitors, "/etc/ceph/secrets"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
