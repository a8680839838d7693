package volumes

import (
	"path/filepath"
	"strconv"

	"github.com/howdah/howdah/internal/naming"
)

const (
	// MetaDir is Howdah's own directory on each volume, beside the shares'
	// directories. No share can have this name: share names start with a letter or digit.
	MetaDir = ".howdah"
	// RecoveryDir is the part of MetaDir of volume 0 that has ganesha's recovery
	// records (RecoveryRoot). It is on a volume because a lost one lets another
	// client take a lock that a client still holds; it is an option and not a
	// subPath mount so that nothing is written to a volume before its marker is checked.
	RecoveryDir = "ganesha"
	// TrashDir is the part of MetaDir to which the data of removed shares is moved before it is deleted.
	TrashDir = "trash"
	// exportIDsFile is the part of MetaDir that remembers Export_Ids and the attributes last given to export roots.
	exportIDsFile = "exports.json"
)

// layout is where things are on the volumes.
type layout struct {
	// root has a directory for each volume: root/0, root/1, and so on.
	root string
	// before, unless nil, is called before each change of a volume: tests end the instance manager there.
	before func(change string)
}

// about tells who asks that a volume is about to be changed.
func (l layout) about(change string) {
	if l.before != nil {
		l.before(change)
	}
}

func (l layout) volume(index int32) string {
	return filepath.Join(l.root, strconv.Itoa(int(index)))
}

// meta is a path in Howdah's own directory of a volume.
func (l layout) meta(index int32, elements ...string) string {
	return filepath.Join(append([]string{l.volume(index), MetaDir}, elements...)...)
}

func (l layout) share(share string, index int32) string {
	return naming.ExportDirectory(l.root, share, index)
}

func (l layout) recovery() string { return l.meta(0, RecoveryDir) }
