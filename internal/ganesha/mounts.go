package ganesha

import (
	"cmp"
	"slices"
)

// Mounts are the exports in CephFS that ganesha mounts side by side when it starts (build/patches/0410-ceph-mounts-side-by-side.patch). Without the list
// it mounts them one after the other, and takes no calls before the last. Strings that end with a NUL: the path of ceph.conf, the node
// ID, and for each export, in the order of the ids, its user, its file system and its path. Empty if there are none.
// The configuration must be one that Render takes: no value has a NUL.
func Mounts(config Config) []byte {
	if config.Ceph == nil {
		return nil
	}
	exports := slices.DeleteFunc(config.Served(), func(export Export) bool { return export.CephFS == nil })
	if len(exports) == 0 {
		return nil
	}
	slices.SortFunc(exports, func(a, b Export) int { return cmp.Compare(a.ID, b.ID) })
	var text []byte
	write := func(values ...string) {
		for _, value := range values {
			text = append(append(text, value...), 0)
		}
	}
	write(config.Ceph.ConfigFile, config.Ceph.NodeID)
	for _, export := range exports {
		write(export.CephFS.User, export.CephFS.FileSystem, export.Path)
	}
	return text
}
