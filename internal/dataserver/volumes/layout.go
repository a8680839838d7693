package volumes

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/howdah/howdah/internal/naming"
)

const (
	// MetaDir is Howdah's own directory on each volume, beside the shares' directories. No share can have this name: share
	// names start with a letter or digit.
	MetaDir = ".howdah"
	// RecoveryDir is the directory in MetaDir of volume 0 that has ganesha's recovery records (RecoveryRoot). It is on a
	// volume, because without a recovery record another client could take a lock that a client still holds. Ganesha gets
	// it as an option and not as a subPath mount, so that nothing is written to a volume before its marker is checked.
	RecoveryDir = "ganesha"
	// TrashDir is the directory in MetaDir that has the data of removed shares until it is deleted.
	TrashDir = "trash"
	// exportIDsFile is the file in MetaDir that has the Export_Ids and the attributes last given to export roots.
	exportIDsFile = "exports.json"
)

// layout has the paths on the volumes.
type layout struct {
	// root has a directory for each volume: root/0, root/1, and so on.
	root string
	// before, unless nil, is called before each change of a volume. Tests end the process there.
	before func(change string)
}

// about calls before: a volume is about to be changed.
func (l layout) about(change string) {
	if l.before != nil {
		l.before(change)
	}
}

// open opens a volume. What is done through it stays on the volume: an attacker who took ganesha over can put symbolic links in the places of
// directories, Howdah's own among them.
func (l layout) open(index int32) (*os.Root, error) { return os.OpenRoot(l.volume(index)) }

// metaName is the name of something in Howdah's own directory, on any volume.
func metaName(elements ...string) string {
	return filepath.Join(append([]string{MetaDir}, elements...)...)
}

func (l layout) volume(index int32) string {
	return filepath.Join(l.root, strconv.Itoa(int(index)))
}

// meta returns a path in Howdah's own directory of a volume.
func (l layout) meta(index int32, elements ...string) string {
	return filepath.Join(l.volume(index), metaName(elements...))
}

func (l layout) share(share string, index int32) string {
	return naming.ExportDirectory(l.root, share, index)
}

func (l layout) recovery() string { return l.meta(0, RecoveryDir) }
