package tree

import (
	"slices"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Credentials are those of a caller, after squashing.
type Credentials struct {
	UID    uint32
	GID    uint32
	Groups []uint32
}

// Permission bits of a directory.
const (
	Execute = 1
	Write   = 2
	Read    = 4
)

// Squash maps a caller as ganesha's Squash option does: Root maps uid 0 (and gid 0 with it), All everybody.
// Groups that a mapped caller brought along do not count.
func Squash(c Credentials, how v1alpha1.Squash) Credentials {
	if how == v1alpha1.SquashAll || (how == v1alpha1.SquashRoot && c.UID == 0) {
		return Credentials{UID: SquashedID, GID: SquashedID}
	}
	if how == v1alpha1.SquashRoot {
		if c.GID == 0 {
			c.GID = SquashedID
		}
		c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(g uint32) bool { return g == 0 })
	}
	return c
}

// Permitted are the permission bits that a caller has on a directory, by its mode,
// as POSIX has it: the first class that the caller belongs to counts; uid 0 may do everything.
func (e *Entry) Permitted(c Credentials) uint32 {
	switch {
	case c.UID == 0:
		return Read | Write | Execute
	case c.UID == e.Owner:
		return e.Mode >> 6 & 7
	case c.GID == e.Group || slices.Contains(c.Groups, e.Group):
		return e.Mode >> 3 & 7
	}
	return e.Mode & 7
}

// MayUnlink tells whether a caller may take a child out of a directory, or rename it: write and search permission, and
// in a sticky directory ownership of the child or of the directory.
func (e *Entry) MayUnlink(c Credentials, childOwner uint32) bool {
	const sticky = 0o1000
	if e.Permitted(c)&(Write|Execute) != Write|Execute {
		return false
	}
	return e.Mode&sticky == 0 || c.UID == 0 || c.UID == e.Owner || c.UID == childOwner
}

// NewAttributes are group and mode of a directory that a caller makes here with a mode: below a
// setgid directory the group and the bit are inherited.
func (e *Entry) NewAttributes(c Credentials, mode uint32) (group, newMode uint32) {
	const setgid = 0o2000
	if e.Mode&setgid != 0 {
		return e.Group, mode&0o7777 | setgid
	}
	return c.GID, mode & 0o7777
}
