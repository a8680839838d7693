package instance

import (
	"path/filepath"
	"strconv"

	"github.com/howdah/howdah/internal/naming"
)

// layout is where things are on the volumes.
type layout struct {
	// root has a directory for each volume: root/0, root/1, and so on.
	root string
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
