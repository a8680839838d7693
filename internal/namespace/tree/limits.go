package tree

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Full is a limit on directories that leaves no room for another, FullNot if none is reached.
type Full string

// Limits on directories.
const (
	FullNot Full = ""
	// FullShare is the share's spec.maxDirectories, the others are spec.limits of its FileServer.
	FullShare     Full = "spec.maxDirectories of the share"
	FullNamespace Full = "spec.limits.perNamespace.directories of the FileServer"
	FullTotal     Full = "spec.limits.total.directories of the FileServer"
)

// Full tells whether a share has room for another directory. Directories that deleted shares left count for the FileServer's limits.
func (t *Tree) Full(share *Share) Full {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if number := t.number(share.Name); number >= share.MaxDirectories && number-t.renaming(share.Name) >= share.MaxDirectories {
		return FullShare
	}
	if t.limits.Total == 0 {
		return FullNot // The operator that wrote the DataServers is of before there were limits.
	}
	total, own := 0, 0
	for name, directories := range t.directories {
		n := len(directories)
		if directories[RootPath] != nil {
			n--
		}
		total += n
		tenant, _ := naming.ShareOfKey("", name)
		if other := t.shares[name]; other != nil {
			tenant = other.Tenant
		}
		if tenant == share.Tenant {
			own += n
		}
	}
	switch {
	case share.Tenant != "" && own >= int(t.limits.PerNamespace):
		return FullNamespace
	case total >= int(t.limits.Total):
		return FullTotal
	}
	return FullNot
}

// renaming is how many ShareDirectories of a share are the second ones of directories that are getting another name. t.mu is held.
func (t *Tree) renaming(share string) (n int) {
	for _, r := range t.directories[share] {
		if r.State == internalv1.DirectoryRenaming {
			n++
		}
	}
	return n
}

// Limits are those of the FileServer; zero: there are none.
func (t *Tree) Limits() internalv1.DirectoryLimits {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.limits
}

// setLimits takes the limits of a DataServer; all of a FileServer's have the same. t.mu is held.
func (t *Tree) setLimits(o *internalv1.DataServer) {
	t.limits = o.Spec.DirectoryLimits
}
