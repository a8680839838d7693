package ganesha

import "testing"

func TestMounts(t *testing.T) {
	inCeph := func(id uint16, user, path string) Export {
		return Export{ID: id, Path: path, Pseudo: "/" + user, CephFS: &CephFS{FileSystem: "fs", User: user}}
	}
	ceph := &Ceph{ConfigFile: "/run/ceph.conf", NodeID: "node"}
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"no Ceph":                 {Config{Exports: []Export{{ID: 1, Path: "/volumes/0/s", Pseudo: "/s"}}}, ""},
		"no exports":              {Config{Ceph: ceph}, ""},
		"in the order of the ids": {Config{Ceph: ceph, Exports: []Export{inCeph(300, "b", "/v/b c"), inCeph(2, "a", "/v/a")}}, "/run/ceph.conf\x00node\x00a\x00fs\x00/v/a\x00b\x00fs\x00/v/b c\x00"},
	} {
		if got := string(Mounts(test.config)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
